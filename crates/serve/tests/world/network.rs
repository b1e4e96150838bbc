//! Streams of bytes in memory, in virtual time: they deliver in pieces, late, and break.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plumb_block::{Clock as _, EventSource, Nanos, VirtualClock};
use plumb_crash::below;
use plumb_serve::nbd::Transport;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

/// Maximum number of bytes in a stream that its reader has not read.
const CAPACITY: usize = 64 << 10;

/// All streams of a world.
pub(super) struct Network {
    clock: Arc<VirtualClock>,
    state: Mutex<State>,
}

struct State {
    chance: Xoshiro256PlusPlus,
    pipes: Vec<Pipe>,
    /// Number of bytes sent and received.
    traffic: u64,
}

/// One direction of a stream.
#[derive(Default)]
struct Pipe {
    /// Pieces in order, each with the time of its delivery.
    pieces: VecDeque<(Nanos, VecDeque<u8>)>,
    bytes: usize,
    /// Time at which the reader sees the end.
    ends_at: Option<Nanos>,
    is_broken: bool,
}

impl Network {
    /// Creates a network without streams, with delays determined by `seed`.
    pub(super) fn new(clock: &Arc<VirtualClock>, seed: u64) -> Arc<Self> {
        let state = State { chance: Xoshiro256PlusPlus::seed_from_u64(seed), pipes: Vec::new(), traffic: 0 };
        let network = Arc::new(Self { clock: Arc::clone(clock), state: Mutex::new(state) });
        let source = Arc::downgrade(&network);
        clock.register(source as Weak<dyn EventSource>);
        network
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of bytes sent and received so far.
    pub(super) fn traffic(&self) -> u64 {
        self.state().traffic
    }

    /// Creates a stream. Returns the ends of the client and of the server.
    pub(super) fn stream(self: &Arc<Self>) -> (End, End) {
        let mut state = self.state();
        let first = state.pipes.len();
        state.pipes.extend([Pipe::default(), Pipe::default()]);
        let end = |inbound, outbound| End { network: Arc::clone(self), inbound, outbound };
        (end(first, first + 1), end(first + 1, first))
    }

    /// Breaks every stream: bytes in transit are lost.
    pub(super) fn break_all(&self) {
        self.state().pipes.iter_mut().for_each(Pipe::break_off);
    }
}

impl Pipe {
    fn break_off(&mut self) {
        self.pieces.clear();
        (self.bytes, self.is_broken) = (0, true);
    }

    fn next(&self) -> Option<Nanos> {
        self.pieces.front().map(|(due, _)| *due).or(self.ends_at)
    }
}

impl EventSource for Network {
    fn next_event(&self) -> Option<Nanos> {
        let now = self.clock.now();
        self.state().pipes.iter().filter_map(Pipe::next).filter(|due| *due > now).min()
    }

    fn advance(&self, now: Nanos) -> bool {
        self.state().pipes.iter().filter_map(Pipe::next).any(|due| due <= now)
    }
}

/// One end of a stream.
pub(super) struct End {
    network: Arc<Network>,
    inbound: usize,
    outbound: usize,
}

impl Transport for End {
    fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let now = self.network.clock.now();
        let mut state = self.network.state();
        let State { chance, pipes, traffic } = &mut *state;
        let pipe = &mut pipes[self.inbound];
        if pipe.is_broken {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let room: usize = into.iter().map(|slice| slice.len()).sum();
        let Some((due, piece)) = pipe.pieces.front_mut() else {
            let is_over = pipe.ends_at.is_some_and(|at| at <= now);
            return if is_over { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        };
        if *due > now {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let most = room.min(piece.len());
        let count = if below(chance, 4) == 0 { 1 + below(chance, most as u64) as usize } else { most };
        let mut bytes = piece.drain(..count);
        for slice in into {
            for (place, byte) in slice.iter_mut().zip(&mut bytes) {
                *place = byte;
            }
        }
        drop(bytes);
        pipe.bytes -= count;
        *traffic += count as u64;
        if piece.is_empty() {
            pipe.pieces.pop_front();
        }
        Ok(count)
    }

    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        let now = self.network.clock.now();
        let mut state = self.network.state();
        let State { chance, pipes, traffic } = &mut *state;
        let pipe = &mut pipes[self.outbound];
        if pipe.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let all: usize = from.iter().map(|slice| slice.len()).sum();
        let most = all.min(CAPACITY.saturating_sub(pipe.bytes));
        if most == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = if below(chance, 4) == 0 { 1 + below(chance, most as u64) as usize } else { most };
        let delay = match below(chance, 16) {
            0 => Nanos::millis(1 + below(chance, 20)),
            _ => Nanos::micros(5 + below(chance, 200)),
        };
        let last = pipe.pieces.back().map_or(Nanos::ZERO, |(due, _)| *due);
        let piece = from.iter().flat_map(|slice| slice.iter().copied()).take(count).collect();
        pipe.pieces.push_back((last.max(now.saturating_add(delay)), piece));
        pipe.bytes += count;
        *traffic += count as u64;
        Ok(count)
    }

    fn cut(&mut self) {
        let mut state = self.network.state();
        state.pipes[self.inbound].break_off();
        state.pipes[self.outbound].break_off();
    }
}

/// The other side reads the sent bytes, and then the end.
impl Drop for End {
    fn drop(&mut self) {
        let now = self.network.clock.now();
        let mut state = self.network.state();
        let pipe = &mut state.pipes[self.outbound];
        let last = pipe.pieces.back().map_or(now, |(due, _)| *due);
        pipe.ends_at = Some(last.max(now.saturating_add(Nanos::micros(1))));
        state.pipes[self.inbound].break_off();
    }
}
