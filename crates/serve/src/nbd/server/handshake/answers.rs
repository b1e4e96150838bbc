//! Answers to each option.

use std::sync::Arc;

use plumb_block::Bytes;
use plumb_text::shell_word;

use super::{Encryption, Handshake, Session, Step, refuse};
use crate::nbd::server::export::{ServedExport, block_size_info, export_info};
use crate::nbd::wire::{
    BASE_ALLOCATION, GoRequest, Info, InfoKind, MetaContext, MetaContextRequest, OptionCode, OptionReplyKind,
    STRING_MAX_BYTES, ServerEntry, WireError, encode_option_reply,
};
use crate::served_device::KnownLosses;

/// Number of `base:allocation`, the only context, in block status.
pub(in crate::nbd::server) const ALLOCATION_ID: u32 = 1;

/// Block size that a client respects without negotiating block sizes ("Block size constraints").
const ASSUMED_BLOCK: Bytes = Bytes(512);

/// Reason why an option is refused, with a message for users.
type Refusal = (OptionReplyKind, String);

fn refusal<T>(kind: OptionReplyKind, why: impl Into<String>) -> Result<T, Refusal> {
    Err((kind, why.into()))
}

fn malformed(error: WireError) -> Refusal {
    (OptionReplyKind::ERR_INVALID, error.to_string())
}

impl Handshake {
    /// Answers a complete option.
    pub(super) fn answer(&mut self, code: OptionCode, data: &[u8], output: &mut Vec<u8>) -> Step {
        match self.try_answer(code, data, output) {
            Ok(step) => step,
            // NBD_OPT_EXPORT_NAME has no error reply: the server can only hang up.
            Err(_) if code == OptionCode::EXPORT_NAME => Step::Close,
            Err((kind, why)) => {
                refuse(code, kind, &why, output);
                Step::Continue
            }
        }
    }

    fn try_answer(&mut self, code: OptionCode, data: &[u8], output: &mut Vec<u8>) -> Result<Step, Refusal> {
        use OptionReplyKind as Kind;
        if code == OptionCode::ABORT {
            acknowledge(code, output);
            return Ok(Step::Close);
        }
        if self.terms.encryption == Encryption::Required && code != OptionCode::STARTTLS {
            return refusal(Kind::ERR_TLS_REQD, "this server wants TLS first");
        }
        if let Some(why) = &self.terms.refusal {
            return refusal(Kind::ERR_POLICY, why.as_str());
        }
        match code {
            OptionCode::EXPORT_NAME => return self.export_name(data, output),
            OptionCode::INFO | OptionCode::GO => return self.go(code, data, output),
            OptionCode::LIST_META_CONTEXT | OptionCode::SET_META_CONTEXT => {
                self.meta_context(code, data, output)?;
            }
            OptionCode::LIST | OptionCode::STARTTLS | OptionCode::STRUCTURED_REPLY if !data.is_empty() => {
                return refusal(Kind::ERR_INVALID, "this option has no data");
            }
            OptionCode::LIST => self.list(output),
            OptionCode::STRUCTURED_REPLY => self.is_structured = true,
            OptionCode::STARTTLS => match self.terms.encryption {
                Encryption::Established => {
                    return refusal(Kind::ERR_INVALID, "the connection is encrypted already");
                }
                Encryption::Unavailable => {
                    return refusal(Kind::ERR_POLICY, "this server has no certificate");
                }
                Encryption::Required => {
                    acknowledge(code, output);
                    return Ok(Step::StartTls);
                }
            },
            _ => return refusal(Kind::ERR_UNSUP, "this server does not know the option"),
        }
        acknowledge(code, output);
        Ok(Step::Continue)
    }

    /// Returns the export with this name; the empty name means the only export.
    fn find(&self, name: &str) -> Result<Arc<ServedExport>, Refusal> {
        let exports = &self.terms.exports;
        let only = || exports.first().filter(|_| name.is_empty() && exports.len() == 1);
        let found = exports.iter().find(|served| served.export.name == name).or_else(only).cloned();
        found.ok_or_else(|| (OptionReplyKind::ERR_UNKNOWN, "there is no export of this name".to_owned()))
    }

    /// Returns a session of `served`, which must have power, with a client that knows all of its losses so
    /// far.
    fn session(&self, served: &Arc<ServedExport>) -> Result<Session, Refusal> {
        let known = KnownLosses::for_device(&*served.export.device);
        if !served.export.device.power().is_on {
            let name = &served.export.name;
            let word = shell_word(name);
            let why = format!("the power of {name} is off: `plumb drive power-on {word}` turns it on");
            return refusal(OptionReplyKind::ERR_POLICY, why);
        }
        let has_allocation = self.allocation_of.as_ref().is_some_and(|chosen| Arc::ptr_eq(chosen, served));
        Ok(Session { served: Arc::clone(served), known, is_structured: self.is_structured, has_allocation })
    }

    fn export_name(&self, data: &[u8], output: &mut Vec<u8>) -> Result<Step, Refusal> {
        let name = std::str::from_utf8(data);
        let name = name.map_err(|_| (OptionReplyKind::ERR_INVALID, "the name is not UTF-8".to_owned()))?;
        let served = self.find(name)?;
        let session = self.session(&served)?;
        let info = served.export.device.info();
        output.extend_from_slice(&info.size.0.to_be_bytes());
        output.extend_from_slice(&served.flags(&info, self.is_structured).0.to_be_bytes());
        if !self.has_no_zeroes {
            output.extend_from_slice(&[0; 124]);
        }
        Ok(Step::Transmit(session))
    }

    fn list(&self, output: &mut Vec<u8>) {
        for served in self.terms.exports.iter() {
            let entry = ServerEntry {
                name: served.export.name.clone(),
                description: clipped(&served.export.description).to_owned(),
            };
            encode_option_reply(OptionCode::LIST, OptionReplyKind::SERVER, &entry.encode(), output);
        }
    }

    fn go(&self, code: OptionCode, data: &[u8], output: &mut Vec<u8>) -> Result<Step, Refusal> {
        let request = GoRequest::decode(data).map_err(malformed)?;
        let served = self.find(&request.name)?;
        let session = self.session(&served)?;
        let info = served.export.device.info();
        let wants = |kind| request.wants.contains(&kind);
        if code == OptionCode::GO && info.logical_block > ASSUMED_BLOCK && !wants(InfoKind::BLOCK_SIZE) {
            let why = "the blocks of this export are larger than 512 bytes: ask for the block size";
            return refusal(OptionReplyKind::ERR_BLOCK_SIZE_REQD, why);
        }
        let mut tell = |info: Info| encode_option_reply(code, OptionReplyKind::INFO, &info.encode(), output);
        tell(export_info(&served, &info, self.is_structured));
        // Block sizes are sent even without a request; a client may ignore them.
        tell(block_size_info(&info));
        if wants(InfoKind::NAME) {
            tell(Info::Name(served.export.name.clone()));
        }
        if wants(InfoKind::DESCRIPTION) {
            tell(Info::Description(clipped(&served.export.description).to_owned()));
        }
        acknowledge(code, output);
        Ok(if code == OptionCode::GO { Step::Transmit(session) } else { Step::Continue })
    }

    fn meta_context(&mut self, code: OptionCode, data: &[u8], output: &mut Vec<u8>) -> Result<(), Refusal> {
        let is_set = code == OptionCode::SET_META_CONTEXT;
        if is_set {
            // Whatever the answer, a new selection replaces the old one.
            self.allocation_of = None;
        }
        if !self.is_structured {
            return refusal(OptionReplyKind::ERR_INVALID, "metadata contexts need structured replies");
        }
        let request = MetaContextRequest::decode(data).map_err(malformed)?;
        let served = self.find(&request.export)?;
        // An empty list query means everything; an empty selection means nothing. `base:` is the whole
        // namespace, which is valid only for a list.
        let matches = |query: &String| query == BASE_ALLOCATION || (!is_set && query == "base:");
        if request.queries.iter().any(matches) || (!is_set && request.queries.is_empty()) {
            let context = MetaContext { id: ALLOCATION_ID, name: BASE_ALLOCATION.to_owned() };
            encode_option_reply(code, OptionReplyKind::META_CONTEXT, &context.encode(), output);
            if is_set {
                self.allocation_of = Some(served);
            }
        }
        Ok(())
    }
}

fn acknowledge(code: OptionCode, output: &mut Vec<u8>) {
    encode_option_reply(code, OptionReplyKind::ACK, &[], output);
}

/// Truncates `text` to the maximum string length of the protocol.
fn clipped(text: &str) -> &str {
    let end = (0..=text.len().min(STRING_MAX_BYTES)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
