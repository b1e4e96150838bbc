//! Choice between batches of half and of a quarter of the requests in flight, by trying both.
//!
//! The rate is compared over stretches of some thousand completions. Other users of the processor can only
//! make a stretch longer; so each way is judged by its best recent stretch, which slowly loses its effect.

use plumb_block::Nanos;

/// Number of completions in a stretch.
const STRETCH: u64 = 4096;
/// Number of stretches, of which one tries the other way.
const TURNS: u32 = 12;
/// Margin by which halves must be better to be preferred, as the denominator of a fraction: quarters give
/// more accurate latencies.
const MARGIN: u64 = 32;

/// Trial of the two ways in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    /// True if the pace allows more than a quarter; otherwise nothing is tried.
    pub(crate) is_open: bool,
    half: bool,
    began: Nanos,
    completed: u64,
    /// Shortest recent time for a stretch: with quarters, and with halves.
    best: [Option<u64>; 2],
    turn: u32,
}

impl Trial {
    pub(crate) fn starting_at(now: Nanos) -> Self {
        Self { is_open: false, half: false, began: now, completed: 0, best: [None; 2], turn: 0 }
    }

    /// Returns true if batches may now be half of the requests in flight.
    #[inline]
    pub(crate) fn takes_half(&self) -> bool {
        self.is_open && self.half
    }

    /// Records that `count` requests completed at `now`.
    #[inline]
    pub(crate) fn completed(&mut self, count: usize, now: Nanos) {
        self.completed += count as u64;
        if self.completed >= STRETCH || !self.is_open {
            self.end_stretch(now);
        }
    }

    fn end_stretch(&mut self, now: Nanos) {
        if self.is_open && self.completed >= STRETCH {
            let took = now.since(self.began).0.saturating_mul(STRETCH) / self.completed;
            let best = &mut self.best[usize::from(self.half)];
            *best = Some(best.map_or(took, |best| took.min(best + best / MARGIN)));
            self.choose();
        }
        self.began = now;
        self.completed = 0;
    }

    fn choose(&mut self) {
        self.turn = (self.turn + 1) % TURNS;
        self.half = match self.best {
            [None, _] => false,
            [_, None] => true,
            [Some(quarter), Some(half)] => {
                let prefers_half = half + half / MARGIN < quarter;
                prefers_half != (self.turn == 0)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of `stretches` with halves on a device that takes `quarter` for a stretch with
    /// quarters, and `half` for one with halves.
    fn halves(stretches: u32, quarter: u64, half: u64) -> u32 {
        let mut trial = Trial::starting_at(Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let mut halves = 0;
        for _ in 0..stretches {
            trial.is_open = true;
            halves += u32::from(trial.takes_half());
            now += Nanos(if trial.takes_half() { half } else { quarter });
            trial.completed(STRETCH as usize, now);
        }
        halves
    }

    #[test]
    fn the_better_share_stays_and_the_other_is_tried_now_and_then() {
        assert!(halves(1200, 10_000_000, 8_000_000) > 1090, "the processor is the limit");
        assert!(halves(1200, 10_000_000, 12_000_000) < 110, "the device is the limit");
        assert!(halves(1200, 10_000_000, 10_000_000) < 110, "without a difference latencies decide");
    }

    #[test]
    fn a_stretch_that_was_disturbed_decides_nothing_for_long() {
        let mut trial = Trial::starting_at(Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let mut halves = 0;
        for stretch in 0..1200 {
            trial.is_open = true;
            halves += u32::from(trial.takes_half());
            let disturbed = if stretch % 3 == 0 { 5_000_000 } else { 0 };
            now += Nanos(disturbed + if trial.takes_half() { 8_000_000 } else { 10_000_000 });
            trial.completed(STRETCH as usize, now);
        }
        assert!(halves > 1000, "{halves}");
    }

    #[test]
    fn nothing_is_tried_where_the_pace_allows_no_more_than_a_quarter() {
        let mut trial = Trial::starting_at(Nanos::ZERO);
        for stretch in 1..100 {
            trial.completed(STRETCH as usize, Nanos::millis(stretch));
            assert!(!trial.takes_half());
        }
    }
}
