//! A transport that delivers a script, and takes the answers, in pieces of any size.

use std::io::{self, IoSlice, IoSliceMut};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::nbd::transport::Transport;

/// Number of turns in a row without a byte in either direction after which the server counts as stuck.
const WAITS_MAX: u32 = 1000;

pub(super) struct Pipe {
    script: Vec<u8>,
    delivered: usize,
    sent: Vec<u8>,
    waits: u32,
    random: Xoshiro256PlusPlus,
}

impl Pipe {
    pub(super) fn new(script: Vec<u8>, random: Xoshiro256PlusPlus) -> Self {
        Self { script, delivered: 0, sent: Vec::new(), waits: 0, random }
    }

    pub(super) fn sent(&self) -> &[u8] {
        &self.sent
    }

    /// Counts a turn without progress. Returns true if there were too many of them.
    pub(super) const fn is_stuck(&mut self) -> bool {
        self.waits += 1;
        self.waits > WAITS_MAX
    }

    /// Returns mostly `most`, sometimes less.
    fn some_of(&mut self, most: usize) -> usize {
        if most > 1 && self.random.next_u64().is_multiple_of(4) {
            1 + (self.random.next_u64() % most as u64) as usize
        } else {
            most
        }
    }
}

impl Transport for Pipe {
    fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if self.random.next_u64().is_multiple_of(8) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.waits = 0;
        let room: usize = into.iter().map(|slice| slice.len()).sum();
        let left = self.script.len() - self.delivered;
        assert!(room > 0, "received into nothing");
        let count = self.some_of(room.min(left));
        let mut rest = &self.script[self.delivered..self.delivered + count];
        for slice in into {
            let here = rest.len().min(slice.len());
            slice[..here].copy_from_slice(&rest[..here]);
            rest = &rest[here..];
        }
        self.delivered += count;
        Ok(count)
    }

    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.random.next_u64().is_multiple_of(8) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.waits = 0;
        let all = from.iter().map(|slice| slice.len()).sum();
        let mut left = self.some_of(all);
        let count = left;
        for slice in from {
            let here = left.min(slice.len());
            self.sent.extend_from_slice(&slice[..here]);
            left -= here;
        }
        Ok(count)
    }

    fn cut(&mut self) {}
}
