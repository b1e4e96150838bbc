//! Output of a connection, for both sides: headers and buffers, sent many at a time without copying.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use plumb_block::Buffer;

use super::transport::Transport;

/// Maximum length of a header of a request or reply.
const HEAD_MAX_BYTES: usize = 28;
/// Maximum number of parts in one system call.
const PARTS_AT_ONCE: usize = 128;
/// Number of parts from which nothing more is queued, because the other side does not read.
const PARTS_MAX: usize = 1024;
/// Number of bytes outside of buffers from which nothing more is queued.
const BYTES_MAX: usize = 1 << 20;
/// Size up to which a buffer is copied, which is cheaper than a separate part.
const COPIED_MAX_BYTES: usize = 512;

/// A part to be sent.
enum Part {
    Head([u8; HEAD_MAX_BYTES], u8),
    /// A buffer of the request with this number.
    Buffer(Buffer, u32),
    Bytes(Vec<u8>),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Head(bytes, length) => &bytes[..usize::from(*length)],
            Self::Buffer(buffer, _) => buffer,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Queue of parts to be sent, in order.
#[derive(Default)]
pub(super) struct Output {
    parts: VecDeque<Part>,
    /// Number of bytes of the first part already sent.
    sent: usize,
    /// Total length of the parts that are not buffers.
    bytes: usize,
}

impl Output {
    pub(super) fn head(&mut self, head: &[u8]) {
        let mut bytes = [0; HEAD_MAX_BYTES];
        let length = head.len().min(HEAD_MAX_BYTES);
        bytes[..length].copy_from_slice(&head[..length]);
        self.parts.push_back(Part::Head(bytes, length as u8));
    }

    /// Adds a buffer of the request `number`.
    pub(super) fn buffer(&mut self, buffer: Buffer, number: u32) {
        if buffer.len() <= COPIED_MAX_BYTES {
            return self.bytes(buffer.to_vec());
        }
        self.parts.push_back(Part::Buffer(buffer, number));
    }

    pub(super) fn bytes(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.parts.push_back(Part::Bytes(bytes));
    }

    /// Releases the buffers of the request `number`: their unsent rest is copied.
    pub(super) fn disown(&mut self, number: u32) {
        for part in &mut self.parts {
            if let Part::Buffer(buffer, of) = part
                && *of == number
            {
                self.bytes += buffer.len();
                *part = Part::Bytes(buffer.to_vec());
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns true if data must be sent before more is added.
    pub(super) fn is_full(&self) -> bool {
        self.parts.len() > PARTS_MAX || self.bytes > BYTES_MAX
    }

    /// Sends as much as the transport accepts. Returns true if anything was sent.
    pub(super) fn send(&mut self, transport: &mut dyn Transport) -> io::Result<bool> {
        let mut has_sent = false;
        while !self.parts.is_empty() {
            let mut slices = [IoSlice::new(&[]); PARTS_AT_ONCE];
            let count = self.fill(&mut slices);
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

    /// Fills `slices` with the next parts. Returns their number.
    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut skip = self.sent;
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            *slice = IoSlice::new(part.bytes().get(std::mem::take(&mut skip)..).unwrap_or_default());
        }
        slices.len().min(self.parts.len())
    }

    /// Removes `sent` bytes that were sent.
    fn took(&mut self, sent: usize) {
        self.sent += sent;
        while let Some(first) = self.parts.front() {
            let length = first.bytes().len();
            if self.sent < length {
                return;
            }
            if let Part::Bytes(bytes) = first {
                self.bytes -= bytes.len();
            }
            self.sent -= length;
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Bytes, Pool, PoolShape};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn bytes_leave_in_order_however_few_are_taken_at_a_time() {
        let seed = 11;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let pool = Pool::new(PoolShape { buffer: Bytes(4096), count: 512, alignment: Bytes(512) }).unwrap();
        let mut output = Output::default();
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        let mut take = |output: &mut Output, random: Option<&mut Xoshiro256PlusPlus>| {
            let mut slices = [IoSlice::new(&[]); 8];
            let count = output.fill(&mut slices);
            let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            let part = random.map_or(all.len(), |random| 1 + random.next_u64() as usize % all.len());
            seen.extend_from_slice(&all[..part]);
            output.took(part);
        };
        for number in 0..2000 {
            let header = [number as u8; HEAD_MAX_BYTES];
            output.head(&header);
            expected.extend_from_slice(&header);
            if random.next_u64().is_multiple_of(2) {
                let length = 1 + random.next_u64() % 4096;
                let mut buffer = pool.take(Bytes(length)).unwrap();
                buffer.fill(random.next_u64() as u8);
                expected.extend_from_slice(&buffer);
                output.buffer(buffer.freeze(), number);
            }
            if random.next_u64().is_multiple_of(3) {
                output.disown(number);
            }
            while !random.next_u64().is_multiple_of(3) && !output.is_empty() {
                take(&mut output, Some(&mut random));
            }
        }
        while !output.is_empty() {
            take(&mut output, None);
        }
        assert!(seen == expected, "seed {seed}");
        assert_eq!((pool.available(), output.bytes), (512, 0));
    }
}
