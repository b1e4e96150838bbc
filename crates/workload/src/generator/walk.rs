//! Sequential access: consecutive places, starting over after the last that fits.
//!
//! A walk that starts inside the range continues, after the last place, at the first place that is a multiple
//! of the stride before its own start (DiskSpd 2.2, `-T`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::access::{Sequential, Walk};
use crate::byte_range::ByteRange;
use crate::grid::Grid;

/// Position shared by interlocked workers: create one for each target and clone it for each worker.
#[derive(Debug, Clone, Default)]
pub struct Cursor(Arc<AtomicU64>);

/// A walk through a range.
#[derive(Debug, Clone)]
pub(crate) struct Walker {
    start: u64,
    end: u64,
    /// `None`: each operation advances by its length.
    stride: Option<u64>,
    position: Position,
    /// Position after the last place, from the start of the range.
    again: u64,
    /// Divisor of which `again` is the remainder, if no stride is given.
    longest: u64,
}

/// Next place, in bytes from the start of the walk; owned or shared.
#[derive(Debug, Clone)]
enum Position {
    Own(u64),
    Interlocked(Cursor),
    Lockstep { walked: u64, offset: u64, depth: u32, left: u32, longest: u64 },
}

impl Walker {
    /// Creates a walk through `range`, from its start; `depth` requests in flight.
    pub(crate) fn new(
        sequential: Sequential,
        range: ByteRange,
        grid: Grid,
        depth: u32,
        cursor: &Cursor,
    ) -> Self {
        let position = match sequential.walk {
            Walk::Each => Position::Own(0),
            Walk::Interlocked => Position::Interlocked(cursor.clone()),
            Walk::Parallel => {
                Position::Lockstep { walked: 0, offset: 0, depth, left: 0, longest: grid.longest }
            }
        };
        Self {
            start: range.offset.0,
            end: range.offset.0 + range.length.0,
            stride: sequential.stride.map(|stride| stride.0),
            position,
            again: 0,
            longest: grid.longest,
        }
    }

    /// Moves the walker to `first`, counted from the start of the range. A shared position does not change.
    pub(crate) fn starting_at(mut self, first: u64) -> Self {
        let step = self.stride.unwrap_or(self.longest);
        self.again = first.checked_rem(step).unwrap_or(first);
        match &mut self.position {
            Position::Own(walked) | Position::Lockstep { walked, .. } => *walked = first,
            Position::Interlocked(_) => {}
        }
        self
    }

    /// Returns the offset of the next operation, of `length` bytes.
    #[inline]
    pub(crate) fn next(&mut self, length: u64) -> u64 {
        let (room, stride, again) = (self.end - self.start, self.stride, self.again);
        let walked = match &mut self.position {
            Position::Own(walked) => advance(walked, length, room, stride, again),
            Position::Interlocked(cursor) => cursor.advance(length, room, stride),
            Position::Lockstep { walked, offset, depth, left, longest } => {
                if *left == 0 {
                    *offset = advance(walked, *longest, room, stride, again);
                    *left = *depth;
                }
                *left -= 1;
                *offset
            }
        };
        self.start + walked
    }
}

impl Cursor {
    fn advance(&self, length: u64, room: u64, stride: Option<u64>) -> u64 {
        // Relaxed: workers share nothing but the position.
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            let mut walked = before;
            let place = advance(&mut walked, length, room, stride, 0);
            match self.0.compare_exchange_weak(before, walked, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return place,
                Err(now) => before = now,
            }
        }
    }
}

/// Returns the place for `length` bytes at `walked`, or at `again` if they do not fit into `room`, and
/// advances.
#[inline]
fn advance(walked: &mut u64, length: u64, room: u64, stride: Option<u64>, again: u64) -> u64 {
    let place = if walked.saturating_add(length) > room { again } else { *walked };
    *walked = place.saturating_add(stride.unwrap_or(length));
    place
}
