//! Parser of everything that a server sent.

use std::collections::{BTreeMap, BTreeSet};

use crate::nbd::wire::{
    Chunk, ChunkKind, Cookie, Info, MetaContext, OptionCode, OptionReplyHeader, OptionReplyKind, ReplyHead,
    ServerEntry, ServerHello,
};

/// Checks that `sent` is well-formed to its last byte; with `expected`, also that exactly these requests were
/// answered, once each.
///
/// The length of the bytes behind a simple reply to a read is known to the client only, so in sessions
/// without structured replies only the handshake is parsed.
pub(super) fn check(sent: &[u8], expected: Option<&BTreeSet<Cookie>>) -> Result<(), String> {
    let Some((hello, mut rest)) = sent.split_first_chunk() else { return Err("no greeting".to_owned()) };
    ServerHello::decode(hello).map_err(|error| error.to_string())?;
    let mut is_structured = false;
    while let Some((head, data)) = rest.split_first_chunk::<{ OptionReplyHeader::BYTES }>() {
        let Ok(header) = OptionReplyHeader::decode(head) else {
            // EXPORT_NAME has no header: transmission has begun at an unknown position.
            return Ok(());
        };
        let data = data.get(..header.length as usize).ok_or("an option reply is cut off")?;
        rest = &rest[OptionReplyHeader::BYTES + data.len()..];
        check_option(&header, data)?;
        if header.kind == OptionReplyKind::ACK {
            is_structured |= header.code == OptionCode::STRUCTURED_REPLY;
            if header.code == OptionCode::GO {
                return if is_structured { check_replies(rest, expected) } else { Ok(()) };
            }
        }
    }
    if rest.is_empty() || rest.len() >= 10 { Ok(()) } else { Err(format!("{} bytes too many", rest.len())) }
}

fn check_option(header: &OptionReplyHeader, data: &[u8]) -> Result<(), String> {
    let is_whole = match header.kind {
        OptionReplyKind::ACK => data.is_empty(),
        OptionReplyKind::INFO => Info::decode(data).is_ok(),
        OptionReplyKind::SERVER => ServerEntry::decode(data).is_ok(),
        OptionReplyKind::META_CONTEXT => MetaContext::decode(data).is_ok(),
        kind if kind.is_error() => std::str::from_utf8(data).is_ok(),
        _ => false,
    };
    if is_whole { Ok(()) } else { Err(format!("a malformed reply to an option: {header:?}")) }
}

fn check_replies(mut rest: &[u8], expected: Option<&BTreeSet<Cookie>>) -> Result<(), String> {
    let mut answered: BTreeMap<Cookie, u32> = BTreeMap::new();
    while !rest.is_empty() {
        let head = ReplyHead::decode(rest).map_err(|error| error.to_string())?;
        // A connection that breaks may break within a reply.
        let Some((head, taken)) = head else { return cut_off(expected) };
        rest = &rest[taken..];
        let (cookie, is_last) = match head {
            ReplyHead::Simple(reply) => (reply.cookie, true),
            ReplyHead::Chunk(chunk) => {
                let Some(content) = rest.get(..chunk.length as usize) else { return cut_off(expected) };
                rest = &rest[content.len()..];
                if chunk.kind != ChunkKind::OFFSET_DATA {
                    Chunk::decode(chunk.kind, content).map_err(|error| error.to_string())?;
                }
                (chunk.cookie, chunk.is_last)
            }
        };
        *answered.entry(cookie).or_default() += u32::from(is_last);
    }
    let Some(expected) = expected else { return Ok(()) };
    if answered.keys().eq(expected.iter()) && answered.values().all(|count| *count == 1) {
        return Ok(());
    }
    Err(format!("answered {answered:?}, expected {expected:?}"))
}

fn cut_off(expected: Option<&BTreeSet<Cookie>>) -> Result<(), String> {
    if expected.is_some() { Err("a reply is cut off".to_owned()) } else { Ok(()) }
}
