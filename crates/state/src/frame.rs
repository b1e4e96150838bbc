//! Frames: what goes over a connection between a controller and an agent.
//!
//! ```text
//!   length of the body   4 bytes, big endian, 1 to 1 MiB
//!   body                 one message as JSON
//! ```
//!
//! A length beyond the bound ends the connection before anything of the body is kept: so also a shell that
//! greets on stdout.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest body.
pub const BODY_MAX: usize = 1 << 20;
/// Number of bytes that are shown of a body that is not a message.
const EXCERPT: usize = 60;
/// Number of characters of a reason that are kept.
pub(crate) const SHORT_MAX: usize = 400;

/// Error for bytes that are not a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length of the first frame is out of range.
    #[error(
        "it does not speak plumb's protocol; it began with `{began}`. If the shell of the host prints a \
         greeting, make it do so on interactive terminals only"
    )]
    Greeting {
        /// The first bytes, ready to print.
        began: String,
    },
    /// The length of a frame after the first is out of range.
    #[error("it does not speak plumb's protocol: a frame of {length} bytes, expected 1 to {BODY_MAX}")]
    Length {
        /// Expected length.
        length: usize,
    },
    /// The body is not a message.
    #[error("it sent a message that this version does not know: {why}: `{body}`")]
    Body {
        /// Reason why not.
        why: String,
        /// The beginning of the body, ready to print.
        body: String,
    },
}

/// Appends a message as a frame to `out`. One that is too long for a frame is a mistake of the caller, and is
/// left out.
pub fn encode(message: &impl Serialize, out: &mut Vec<u8>) {
    let body = serde_json::to_vec(message).unwrap_or_default();
    debug_assert!((1..=BODY_MAX).contains(&body.len()), "a message of {} bytes", body.len());
    if let (Ok(length), 1..=BODY_MAX) = (u32::try_from(body.len()), body.len()) {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&body);
    }
}

/// Bytes that arrived, until they are whole frames. Holds one frame and one read at most.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// True if a frame was among what arrived: the other side speaks, and no shell greets any more.
    has_begun: bool,
}

impl Decoder {
    /// Takes in what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message, if all of it is there.
    ///
    /// # Errors
    /// If what arrived is no frame: nothing after it can be read either.
    pub fn take<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(1..=BODY_MAX).contains(&length) {
            let began = || FrameError::Greeting { began: excerpt(&self.bytes) };
            return Err(if self.has_begun { FrameError::Length { length } } else { began() });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(body)
            .map_err(|error| FrameError::Body { why: short(&error.to_string()), body: excerpt(body) })?;
        self.bytes.drain(..4 + length);
        self.has_begun = true;
        Ok(Some(message))
    }
}

/// Shortens what the other side said, ready to print, to no more than a person reads: it is said on stderr
/// and several times in a report.
pub(crate) fn short(text: &str) -> String {
    bounded(text, SHORT_MAX)
}

/// Shortens `text` as [`short`] does, to `longest` characters.
pub(crate) fn bounded(text: &str, longest: usize) -> String {
    let mut short = plumb_report::printable::printable(&text.chars().take(longest).collect::<String>());
    if text.chars().nth(longest).is_some() {
        short.push_str("...");
    }
    short
}

/// Returns the beginning of what was said, ready to print.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT)]);
    plumb_report::printable::printable(text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{FromAgent, ToAgent};

    #[test]
    fn frames_arrive_in_any_pieces() {
        let mut sent = Vec::new();
        (0..5).for_each(|number| encode(&ToAgent::Ping { number }, &mut sent));
        for piece in [1, 3, 7, sent.len()] {
            let mut decoder = Decoder::default();
            let mut numbers = Vec::new();
            for bytes in sent.chunks(piece) {
                decoder.push(bytes);
                while let Some(message) = decoder.take::<ToAgent>().unwrap() {
                    let ToAgent::Ping { number } = message else { panic!("{message:?}") };
                    numbers.push(number);
                }
            }
            assert_eq!(numbers, [0, 1, 2, 3, 4], "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_frame_is_told_and_nothing_of_it_kept() {
        let mut decoder = Decoder::default();
        decoder.push(b"Welcome to \x1b[31mhost\n");
        let error = decoder.take::<FromAgent>().unwrap_err().to_string();
        assert!(error.contains(r"`Welcome to \u{1b}[31mhost`"), "{error}");
        let mut decoder = Decoder::default();
        decoder.push(&[0, 0, 0, 3, b'{', b'1', b'}']);
        assert!(matches!(decoder.take::<FromAgent>(), Err(FrameError::Body { .. })));
        let mut decoder = Decoder::default();
        decoder.push(&(u32::MAX).to_be_bytes());
        assert!(matches!(decoder.take::<FromAgent>(), Err(FrameError::Greeting { .. })));
        let mut decoder = Decoder::default();
        let mut frame = Vec::new();
        encode(&FromAgent::Ready, &mut frame);
        decoder.push(&frame);
        assert!(matches!(decoder.take(), Ok(Some(FromAgent::Ready))));
        decoder.push(&(u32::MAX).to_be_bytes());
        let error = decoder.take::<FromAgent>().unwrap_err();
        assert!(error.to_string().ends_with("a frame of 4294967295 bytes, expected 1 to 1048576"), "{error}");
    }
}
