//! Frames: the message format on connections between two plumb processes.
//!
//! ```text
//!   length of the body   4 bytes, big endian, 1 to 1 MiB
//!   body                 one message as JSON
//! ```
//!
//! A length beyond the limit ends the connection before any of the body is stored. The limit also catches a
//! shell that prints a greeting to stdout. If no message arrives, the error kind gives the reason, and its
//! text calls the other side "it":
//!
//! - `InvalidData`: the bytes are not a frame, or not a message that this version knows;
//! - `UnexpectedEof`: the other side hung up between two messages;
//! - `ConnectionAborted`: the other side hung up within a message;
//! - `TimedOut`: nothing arrived in time.

use std::io::{self, Read, Write};

use plumb_block::{Clock as _, RealClock};
use plumb_text::excerpt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest body in bytes.
pub const BODY_MAX: usize = 1 << 20;
/// Number of characters shown of a body that is not a message.
const EXCERPT: usize = 60;
/// Maximum length, in characters, of the reason why a body is not a message.
const REASON_MAX: usize = 400;
/// Number of bytes read at once.
const CHUNK: usize = 16 << 10;

/// Appends a message to `out` as a frame. A message too long for a frame is a bug of the caller and is
/// dropped.
pub fn encode(message: &impl Serialize, out: &mut Vec<u8>) {
    let body = serde_json::to_vec(message).unwrap_or_default();
    debug_assert!((1..=BODY_MAX).contains(&body.len()), "a message of {} bytes", body.len());
    if let (Ok(length), 1..=BODY_MAX) = (u32::try_from(body.len()), body.len()) {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&body);
    }
}

/// Sends a message as a frame.
///
/// # Errors
/// If the other side is gone, or does not accept the data within the timeout of `to`.
pub fn send(to: &mut (impl Write + ?Sized), message: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    encode(message, &mut frame);
    to.write_all(&frame)?;
    to.flush()
}

/// Buffer that splits received bytes into frames. Holds one frame and one read at most.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message once it is complete.
    ///
    /// # Errors
    /// If the bytes are not a message; nothing after them can be decoded either.
    pub fn take<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(1..=BODY_MAX).contains(&length) {
            let began = shown(&self.bytes);
            return Err(wrong(format!(
                "it does not speak plumb's protocol: `{began}` came, expected the length of a message. If a \
                 shell greets there, make it do so on interactive terminals only"
            )));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(body).map_err(|error| {
            let (why, body) = (excerpt(&error.to_string(), REASON_MAX), shown(body));
            wrong(format!("it sent a message that this version does not know: {why}: `{body}`"))
        })?;
        self.bytes.drain(..4 + length);
        Ok(Some(message))
    }

    /// Waits for the next message from `from`. Each read waits at most for the timeout of `from`.
    ///
    /// # Errors
    /// If no message arrives.
    pub fn receive<M: DeserializeOwned>(&mut self, from: &mut impl Read) -> io::Result<M> {
        let mut chunk = [0; CHUNK];
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            let clock = RealClock::start();
            match from.read(&mut chunk) {
                Ok(0) => return Err(self.end()),
                Ok(count) => self.push(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The socket's timeout expired.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(silence(clock.now().as_secs_f64()));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the error for a connection that the other side closed before a message was complete.
    pub fn end(&self) -> io::Error {
        match self.bytes.len() {
            0 => io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended"),
            arrived => io::Error::new(
                io::ErrorKind::ConnectionAborted,
                format!("the connection ended within a message, of which {arrived} bytes had arrived"),
            ),
        }
    }
}

/// Returns the error for a silence of this many seconds.
pub fn silence(seconds: f64) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it was silent for {seconds:.1} s"))
}

/// Returns the beginning of `bytes`, made printable.
fn shown(bytes: &[u8]) -> String {
    excerpt(String::from_utf8_lossy(&bytes[..bytes.len().min(4 * EXCERPT)]).trim(), EXCERPT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    enum Message {
        Ping { number: u64 },
        Ready,
    }

    #[test]
    fn frames_arrive_in_any_pieces() {
        let mut sent = Vec::new();
        (0..5).for_each(|number| encode(&Message::Ping { number }, &mut sent));
        for piece in [1, 3, 7, sent.len()] {
            let mut decoder = Decoder::default();
            let mut numbers = Vec::new();
            for bytes in sent.chunks(piece) {
                decoder.push(bytes);
                while let Some(message) = decoder.take().unwrap() {
                    let Message::Ping { number } = message else { panic!("{message:?}") };
                    numbers.push(number);
                }
            }
            assert_eq!(numbers, [0, 1, 2, 3, 4], "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_frame_is_told_and_nothing_of_it_kept() {
        let mut ready = Vec::new();
        encode(&Message::Ready, &mut ready);
        let torn = ready[..ready.len() - 2].to_vec();
        let long = [ready.clone(), vec![0, 16, 0, 1]].concat();
        for (sent, expected) in [
            (b"Welcome to \x1b[31mhost\n".to_vec(), r"`Welcome to \u{1b}[31mhost` came"),
            (vec![0; 4], r"it does not speak plumb's protocol: `\u{0}\u{0}\u{0}\u{0}` came"),
            (b"\0\0\0\x03{1}".to_vec(), "this version does not know: key must be a string"),
            (long, r"`\u{0}\u{10}\u{0}\u{1}` came, expected the length of a message"),
            (torn, "within a message, of which 9 bytes had arrived"),
            (ready, "the connection ended"),
        ] {
            let (mut decoder, mut from) = (Decoder::default(), &sent[..]);
            let error = loop {
                if let Err(error) = decoder.receive::<Message>(&mut from) {
                    break error.to_string();
                }
            };
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn silence_is_told_from_an_end() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let silent = Decoder::default().receive::<Message>(&mut ours);
        assert_eq!(silent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(theirs);
        let ended = Decoder::default().receive::<Message>(&mut ours);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
