//! What is to be sent: heads of replies and the buffers that follow them, sent many at a time without being copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use plumb_block::BufferMut;

use super::buffers::Share;
use super::transport::Transport;

/// The longest head of a reply.
const HEAD_MAX_BYTES: usize = 28;
/// How many parts go into one call.
const PARTS_AT_ONCE: usize = 128;
/// With more parts than this, no more requests are taken: the client does not read its replies.
const PARTS_MAX: usize = 1024;

/// A part of what is to be sent.
enum Part {
    Head([u8; HEAD_MAX_BYTES], u8),
    Buffer(BufferMut),
    Bytes(Vec<u8>, Option<Share>),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Head(bytes, length) => &bytes[..usize::from(*length)],
            Self::Buffer(buffer) => buffer,
            Self::Bytes(bytes, _) => bytes,
        }
    }
}

/// What is to be sent, in order.
#[derive(Default)]
pub(super) struct Output {
    parts: VecDeque<Part>,
    /// How much of the first part has been sent.
    sent: usize,
    /// How many gathered reads the parts hold.
    gathered: usize,
}

impl Output {
    pub(super) fn head(&mut self, head: &[u8]) {
        let mut bytes = [0; HEAD_MAX_BYTES];
        let length = head.len().min(HEAD_MAX_BYTES);
        bytes[..length].copy_from_slice(&head[..length]);
        self.parts.push_back(Part::Head(bytes, length as u8));
    }

    pub(super) fn buffer(&mut self, buffer: BufferMut) {
        self.parts.push_back(Part::Buffer(buffer));
    }

    pub(super) fn bytes(&mut self, bytes: Vec<u8>) {
        self.parts.push_back(Part::Bytes(bytes, None));
    }

    /// Bytes that have a share of the budget, until they are sent.
    pub(super) fn shared_bytes(&mut self, bytes: Vec<u8>, share: Share) {
        self.gathered += 1;
        self.parts.push_back(Part::Bytes(bytes, Some(share)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.parts.len() > PARTS_MAX
    }

    /// Whether the bytes of a gathered read are still to be sent.
    pub(super) const fn is_gathered_out(&self) -> bool {
        self.gathered > 0
    }

    /// Sends as much as the transport takes; whether anything was sent.
    pub(super) fn send(&mut self, transport: &mut impl Transport) -> io::Result<bool> {
        let mut has_sent = false;
        while !self.parts.is_empty() {
            let mut slices = [IoSlice::new(&[]); PARTS_AT_ONCE];
            let mut count = 0;
            for (slice, part) in slices.iter_mut().zip(&self.parts) {
                let skip = if count == 0 { self.sent } else { 0 };
                *slice = IoSlice::new(part.bytes().get(skip..).unwrap_or_default());
                count += 1;
            }
            match transport.send(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.took(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_sent),
                Err(error) => return Err(error),
            }
            has_sent = true;
        }
        Ok(has_sent)
    }

    /// `sent` more bytes are on their way.
    fn took(&mut self, sent: usize) {
        self.sent += sent;
        while let Some(first) = self.parts.front() {
            let length = first.bytes().len();
            if self.sent < length {
                return;
            }
            self.gathered -= usize::from(matches!(first, Part::Bytes(_, Some(_))));
            self.sent -= length;
            self.parts.pop_front();
        }
    }
}
