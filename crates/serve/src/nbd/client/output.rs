//! What is to be sent: the headers of requests, and the payloads between them, sent many at a time.
//!
//! ```text
//! staged    header header │ header header header │ header     one run of bytes
//!                         ▲                      ▲
//! buffers                 a                      b            sent in between, not copied
//! ```

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use plumb_block::Buffer;

use super::transport::Transport;

/// How many parts go into one call.
const PARTS_AT_ONCE: usize = 128;
/// With more bytes than this staged, nothing further is staged until some are sent.
const STAGED_MAX_BYTES: usize = 1 << 20;
/// More buffers than this between the staged bytes are not kept either.
const BUFFERS_MAX: usize = 512;
/// A payload up to this size is copied: a part of its own would cost more.
const COPIED_MAX_BYTES: usize = 512;

enum Payload {
    Shared(Buffer),
    /// A copy, because its owner wanted the buffer back.
    Copied(Vec<u8>),
}

struct Insert {
    /// Before this staged byte.
    at: usize,
    job: u32,
    payload: Payload,
}

impl Insert {
    fn bytes(&self) -> &[u8] {
        match &self.payload {
            Payload::Shared(buffer) => buffer,
            Payload::Copied(bytes) => bytes,
        }
    }
}

/// What is to be sent, in order.
#[derive(Default)]
pub(super) struct Output {
    staged: Vec<u8>,
    staged_sent: usize,
    inserts: VecDeque<Insert>,
    insert_sent: usize,
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.staged.len() == self.staged_sent && self.inserts.is_empty()
    }

    /// Whether to send before staging more.
    pub(super) fn is_full(&self) -> bool {
        self.staged.len() - self.staged_sent > STAGED_MAX_BYTES || self.inserts.len() > BUFFERS_MAX
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.staged.extend_from_slice(bytes);
    }

    /// Room for `length` bytes, all zero.
    pub(super) fn room(&mut self, length: usize) -> &mut [u8] {
        let start = self.staged.len();
        self.staged.resize(start + length, 0);
        &mut self.staged[start..]
    }

    /// A payload of `job`.
    pub(super) fn payload(&mut self, job: u32, buffer: Buffer) {
        if buffer.len() <= COPIED_MAX_BYTES {
            return self.bytes(&buffer);
        }
        self.inserts.push_back(Insert { at: self.staged.len(), job, payload: Payload::Shared(buffer) });
    }

    /// Lets go of the buffers of `job`: what of them is still to be sent is copied.
    pub(super) fn disown(&mut self, job: u32) {
        for insert in self.inserts.iter_mut().filter(|insert| insert.job == job) {
            if let Payload::Shared(buffer) = &insert.payload {
                insert.payload = Payload::Copied(buffer.to_vec());
            }
        }
    }

    /// Sends as much as the transport takes; whether all is sent.
    pub(super) fn send(&mut self, transport: &mut Transport) -> io::Result<bool> {
        while !self.is_empty() {
            let mut slices = [IoSlice::new(&[]); PARTS_AT_ONCE];
            let count = self.fill(&mut slices);
            match transport.send(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.took(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        transport.hand_over()
    }

    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut put = |bytes: &'a [u8]| {
            let fits = count < slices.len();
            if fits && !bytes.is_empty() {
                slices[count] = IoSlice::new(bytes);
                count += 1;
            }
            fits
        };
        let mut at = self.staged_sent;
        let mut skip = self.insert_sent;
        for insert in &self.inserts {
            if !put(&self.staged[at..insert.at]) || !put(&insert.bytes()[skip..]) {
                return count;
            }
            (at, skip) = (insert.at, 0);
        }
        put(&self.staged[at..]);
        count
    }

    /// `sent` more bytes are on their way.
    fn took(&mut self, mut sent: usize) {
        while sent > 0 {
            let run_end = self.inserts.front().map_or(self.staged.len(), |insert| insert.at);
            let run = (run_end - self.staged_sent).min(sent);
            self.staged_sent += run;
            sent -= run;
            let Some(insert) = self.inserts.front() else { break };
            let part = (insert.bytes().len() - self.insert_sent).min(sent);
            self.insert_sent += part;
            sent -= part;
            if self.staged_sent == insert.at && self.insert_sent == insert.bytes().len() {
                self.inserts.pop_front();
                self.insert_sent = 0;
            }
        }
        if self.is_empty() {
            self.staged.clear();
            self.staged_sent = 0;
            self.staged.shrink_to(4 * STAGED_MAX_BYTES);
        } else if self.staged_sent > STAGED_MAX_BYTES {
            self.staged.drain(..self.staged_sent);
            self.inserts.iter_mut().for_each(|insert| insert.at -= self.staged_sent);
            self.staged_sent = 0;
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
        for job in 0..2000 {
            let header = [job as u8; 28];
            output.bytes(&header);
            expected.extend_from_slice(&header);
            if random.next_u64().is_multiple_of(2) {
                let length = 1 + random.next_u64() % 4096;
                let mut buffer = pool.take(Bytes(length)).unwrap();
                buffer.fill(random.next_u64() as u8);
                expected.extend_from_slice(&buffer);
                output.payload(job, buffer.freeze());
            }
            if random.next_u64().is_multiple_of(3) {
                output.disown(job);
            }
            while !random.next_u64().is_multiple_of(3) && !output.is_empty() {
                let mut slices = [IoSlice::new(&[]); 8];
                let count = output.fill(&mut slices);
                let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
                let part = 1 + random.next_u64() as usize % all.len();
                seen.extend_from_slice(&all[..part]);
                output.took(part);
            }
        }
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 8];
            let count = output.fill(&mut slices);
            let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            seen.extend_from_slice(&all);
            output.took(all.len());
        }
        assert!(seen == expected, "seed {seed}");
        assert_eq!(pool.available(), 512);
    }
}
