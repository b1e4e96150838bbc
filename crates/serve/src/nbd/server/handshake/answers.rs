//! The answer to each option.

use std::sync::Arc;

use plumb_block::Bytes;

use super::{Encryption, Handshake, Session, Step, refuse};
use crate::nbd::server::export::{Served, block_size_info, export_info};
use crate::nbd::wire::{
    BASE_ALLOCATION, GoRequest, Info, InfoKind, MetaContext, MetaContextRequest, OptionCode, OptionReplyKind,
    STRING_MAX_BYTES, ServerEntry, encode_option_reply,
};
use crate::served_device::KnownLosses;

/// The number of `base:allocation` in block status: there is no other context.
pub(in crate::nbd::server) const ALLOCATION_ID: u32 = 1;

/// What a client that says nothing of block sizes keeps to ("Block size constraints").
const ASSUMED_BLOCK: Bytes = Bytes(512);

impl Handshake {
    /// Answers one whole option.
    pub(super) fn answer(&mut self, code: OptionCode, data: &[u8], output: &mut Vec<u8>) -> Step {
        if code == OptionCode::ABORT {
            acknowledge(code, output);
            return Step::Close;
        }
        if self.terms.encryption == Encryption::Required && code != OptionCode::STARTTLS {
            if code == OptionCode::EXPORT_NAME {
                return Step::Close;
            }
            refuse(code, OptionReplyKind::ERR_TLS_REQD, "this server wants TLS first", output);
            return Step::Continue;
        }
        if let Some(why) = self.terms.refusal.as_deref() {
            if code == OptionCode::EXPORT_NAME {
                return Step::Close;
            }
            refuse(code, OptionReplyKind::ERR_POLICY, why, output);
            return Step::Continue;
        }
        match code {
            OptionCode::EXPORT_NAME => self.export_name(data, output),
            OptionCode::LIST => self.list(data, output),
            OptionCode::STARTTLS => self.start_tls(data, output),
            OptionCode::INFO | OptionCode::GO => self.go(code, data, output),
            OptionCode::STRUCTURED_REPLY => self.structured_reply(data, output),
            OptionCode::LIST_META_CONTEXT | OptionCode::SET_META_CONTEXT => {
                self.meta_context(code, data, output);
                Step::Continue
            }
            _ => {
                refuse(code, OptionReplyKind::ERR_UNSUP, "this server does not know the option", output);
                Step::Continue
            }
        }
    }

    /// The export of this name; the empty name is that of the only export.
    fn find(&self, name: &str) -> Option<Arc<Served>> {
        let exports = &self.terms.exports;
        let only = || exports.first().filter(|_| name.is_empty() && exports.len() == 1);
        exports.iter().find(|served| served.export.name == name).or_else(only).cloned()
    }

    /// Transmission, with a client that knows of the losses of power in `known`.
    fn session(&self, served: Arc<Served>, known: Arc<KnownLosses>) -> Step {
        let has_allocation = self.allocation_of.as_ref().is_some_and(|chosen| Arc::ptr_eq(chosen, &served));
        Step::Transmit(Session { served, known, is_structured: self.is_structured, has_allocation })
    }

    fn export_name(&self, data: &[u8], output: &mut Vec<u8>) -> Step {
        let found = std::str::from_utf8(data).ok().and_then(|name| self.find(name));
        let Some(served) = found.filter(|served| served.export.device.power().is_on) else {
            return Step::Close;
        };
        let known = KnownLosses::of(&*served.export.device);
        let info = served.export.device.info();
        output.extend_from_slice(&info.size.0.to_be_bytes());
        output.extend_from_slice(&served.flags(&info, self.is_structured).0.to_be_bytes());
        if !self.has_no_zeroes {
            output.extend_from_slice(&[0; 124]);
        }
        self.session(served, known)
    }

    fn list(&self, data: &[u8], output: &mut Vec<u8>) -> Step {
        let code = OptionCode::LIST;
        if !data.is_empty() {
            refuse(code, OptionReplyKind::ERR_INVALID, "LIST has no data", output);
            return Step::Continue;
        }
        for served in self.terms.exports.iter() {
            let entry = ServerEntry {
                name: served.export.name.clone(),
                description: clipped(&served.export.description).to_owned(),
            };
            encode_option_reply(code, OptionReplyKind::SERVER, &entry.encode(), output);
        }
        acknowledge(code, output);
        Step::Continue
    }

    fn start_tls(&self, data: &[u8], output: &mut Vec<u8>) -> Step {
        let code = OptionCode::STARTTLS;
        let (kind, why) = match self.terms.encryption {
            Encryption::Established => (OptionReplyKind::ERR_INVALID, "the connection is encrypted already"),
            Encryption::Unavailable => (OptionReplyKind::ERR_POLICY, "this server has no certificate"),
            _ if !data.is_empty() => (OptionReplyKind::ERR_INVALID, "STARTTLS has no data"),
            Encryption::Offered | Encryption::Required => {
                acknowledge(code, output);
                return Step::StartTls;
            }
        };
        refuse(code, kind, why, output);
        Step::Continue
    }

    fn structured_reply(&mut self, data: &[u8], output: &mut Vec<u8>) -> Step {
        let code = OptionCode::STRUCTURED_REPLY;
        if data.is_empty() {
            self.is_structured = true;
            acknowledge(code, output);
        } else {
            refuse(code, OptionReplyKind::ERR_INVALID, "STRUCTURED_REPLY has no data", output);
        }
        Step::Continue
    }

    fn go(&self, code: OptionCode, data: &[u8], output: &mut Vec<u8>) -> Step {
        let request = match GoRequest::decode(data) {
            Ok(request) => request,
            Err(malformed) => {
                refuse(code, OptionReplyKind::ERR_INVALID, &malformed.to_string(), output);
                return Step::Continue;
            }
        };
        let Some(served) = self.find(&request.name) else {
            refuse(code, OptionReplyKind::ERR_UNKNOWN, "there is no export of this name", output);
            return Step::Continue;
        };
        let known = KnownLosses::of(&*served.export.device);
        if !served.export.device.power().is_on {
            let name = &served.export.name;
            let why = format!("the power of {name} is off: `plumb drive power-on {name}` turns it on");
            refuse(code, OptionReplyKind::ERR_POLICY, &why, output);
            return Step::Continue;
        }
        let info = served.export.device.info();
        let wants = |kind| request.wants.contains(&kind);
        if code == OptionCode::GO && info.logical_block > ASSUMED_BLOCK && !wants(InfoKind::BLOCK_SIZE) {
            let why = "the blocks of this export are larger than 512 bytes: ask for the block size";
            refuse(code, OptionReplyKind::ERR_BLOCK_SIZE_REQD, why, output);
            return Step::Continue;
        }
        let mut tell = |info: Info| encode_option_reply(code, OptionReplyKind::INFO, &info.encode(), output);
        tell(export_info(&served, &info, self.is_structured));
        // Told unasked too: a client may ignore what it did not ask for.
        tell(block_size_info(&info));
        if wants(InfoKind::NAME) {
            tell(Info::Name(served.export.name.clone()));
        }
        if wants(InfoKind::DESCRIPTION) {
            tell(Info::Description(clipped(&served.export.description).to_owned()));
        }
        acknowledge(code, output);
        if code == OptionCode::GO { self.session(served, known) } else { Step::Continue }
    }

    fn meta_context(&mut self, code: OptionCode, data: &[u8], output: &mut Vec<u8>) {
        let is_set = code == OptionCode::SET_META_CONTEXT;
        if is_set {
            // Whatever the answer: a new choice replaces the old one.
            self.allocation_of = None;
        }
        if !self.is_structured {
            let why = "metadata contexts need structured replies";
            return refuse(code, OptionReplyKind::ERR_INVALID, why, output);
        }
        let request = match MetaContextRequest::decode(data) {
            Ok(request) => request,
            Err(malformed) => {
                return refuse(code, OptionReplyKind::ERR_INVALID, &malformed.to_string(), output);
            }
        };
        let Some(served) = self.find(&request.export) else {
            return refuse(code, OptionReplyKind::ERR_UNKNOWN, "there is no export of this name", output);
        };
        // A list of nothing asks for everything; a choice of nothing chooses nothing. `base:` names the whole
        // namespace, which only a list may ask for.
        let matches = |query: &String| query == BASE_ALLOCATION || (!is_set && query == "base:");
        if request.queries.iter().any(matches) || (!is_set && request.queries.is_empty()) {
            let context = MetaContext { id: ALLOCATION_ID, name: BASE_ALLOCATION.to_owned() };
            encode_option_reply(code, OptionReplyKind::META_CONTEXT, &context.encode(), output);
            if is_set {
                self.allocation_of = Some(served);
            }
        }
        acknowledge(code, output);
    }
}

fn acknowledge(code: OptionCode, output: &mut Vec<u8>) {
    encode_option_reply(code, OptionReplyKind::ACK, &[], output);
}

/// At most as much of `text` as a string of the protocol may have.
fn clipped(text: &str) -> &str {
    let end = (0..=text.len().min(STRING_MAX_BYTES)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
