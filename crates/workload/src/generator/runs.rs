//! Random access: places drawn from a distribution, and sequential runs from them.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::access::Runs;
use crate::generator::mix::{Kind, Lengths, Mix};
use crate::generator::places::Places;

/// Drawn places and the runs from them.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    places: Places,
    runs: Runs,
    /// Distance between two operations of a run; `None`: the length of the operation.
    stride: Option<u64>,
    run: Option<Run>,
}

/// A run in progress, with operations of one kind.
#[derive(Debug, Clone, Copy)]
struct Run {
    kind: Kind,
    next: u64,
    end: u64,
    /// Number of remaining operations, for runs of fixed length.
    left: u32,
}

impl Drawn {
    /// Creates random access with `runs` from `places`. In runs of geometric length, operations stay on the
    /// grid of drawn places, `align` apart, as in DiskSpd.
    pub(crate) fn new(places: Places, runs: Runs, align: Option<u64>) -> Self {
        let stride = align.filter(|_| matches!(runs, Runs::Geometric { .. }));
        Self { places, runs, stride, run: None }
    }

    /// Returns the next operation: kind, offset and length.
    pub(crate) fn next(
        &mut self,
        mix: &Mix,
        lengths: &Lengths,
        random: &mut Xoshiro256PlusPlus,
    ) -> (Kind, u64, u64) {
        if let Some(run) = self.run.filter(|run| goes_on(self.runs, *run, random)) {
            let length = lengths.draw(run.kind, random);
            if run.next.checked_add(length).is_some_and(|end| end <= run.end) {
                let next = run.next.saturating_add(self.stride.unwrap_or(length));
                self.run = Some(Run { next, left: run.left.saturating_sub(1), ..run });
                return (run.kind, run.next, length);
            }
        }
        let place = self.places.draw(random);
        let kind = mix.kind(place.fraction);
        let length = lengths.draw(kind, random);
        let left = match self.runs {
            Runs::Fixed(count) => count - 1,
            Runs::Single | Runs::Geometric { .. } => 0,
        };
        let next = place.offset.saturating_add(self.stride.unwrap_or(length));
        self.run = Some(Run { kind, next, end: place.end, left });
        (kind, place.offset, length)
    }
}

/// Returns true if the run continues with another operation, provided that it fits.
fn goes_on(runs: Runs, run: Run, random: &mut Xoshiro256PlusPlus) -> bool {
    match runs {
        Runs::Single => false,
        Runs::Fixed(_) => run.left > 0,
        Runs::Geometric { random_percent } => {
            let draws_below = (u128::from(random_percent) << 64) / 100;
            u128::from(random.next_u64()) >= draws_below
        }
    }
}
