//! Wrong drives: each class of mistake is found by `streams` or `reach`. A mistake is simulated by reporting
//! a different event to the contents, or by giving them a promise or damage unknown to the oracles; the
//! contents themselves are correct.

use plumb_block::{LbaRange, Op};
use plumb_crash::{Atomicity, FlushKept, FuaKept, Promise, Strategy, Survival};

use super::{reach, streams};
use crate::contents::Damage;

/// A mistake of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A flush covers nothing, or is missing in the account of promises.
    FlushIsDropped,
    /// A flush covers commands submitted before it, answered or not.
    FlushCoversSubmitted,
    /// A flush covers commands answered before its own answer.
    FlushCoversUntilItsAnswer,
    /// One of the last flushes that are lies takes effect.
    LyingOneTooFew,
    /// FUA is a plain write, or is missing in the account of promises.
    FuaIsPlain,
    /// FUA makes everything before it durable too.
    FuaIsBarrier,
    /// Destaged data is not durable.
    DestagedIsLost,
    /// A discard is durable when it is answered.
    DiscardIsDurable,
    /// A discard leaves its last block.
    DiscardTooShort,
    /// A write also overwrites the block behind it.
    WriteTooLong,
    ZeroesAreIgnored,
    /// An answered write takes effect after the next answered one.
    OverwritesReordered,
    /// Reads and extents show flushed data, not answered data.
    VisibleAtFlush,
    InFlightNeverSurvives,
    FailedNeverLands,
    AtomicIsTorn,
    BoundaryIsIgnored,
    /// A cut loses all data at risk, or none.
    AllOrNothing,
    /// A write of several blocks never tears.
    NeverTorn,
    /// A logical block is torn inside.
    TornInside,
    /// Survivors land in the reverse of their order.
    Unserialized,
}

const ALL: [Mistake; 21] = [
    Mistake::FlushIsDropped,
    Mistake::FlushCoversSubmitted,
    Mistake::FlushCoversUntilItsAnswer,
    Mistake::LyingOneTooFew,
    Mistake::FuaIsPlain,
    Mistake::FuaIsBarrier,
    Mistake::DestagedIsLost,
    Mistake::DiscardIsDurable,
    Mistake::DiscardTooShort,
    Mistake::WriteTooLong,
    Mistake::ZeroesAreIgnored,
    Mistake::OverwritesReordered,
    Mistake::VisibleAtFlush,
    Mistake::InFlightNeverSurvives,
    Mistake::FailedNeverLands,
    Mistake::AtomicIsTorn,
    Mistake::BoundaryIsIgnored,
    Mistake::AllOrNothing,
    Mistake::NeverTorn,
    Mistake::TornInside,
    Mistake::Unserialized,
];

impl Mistake {
    /// Returns the promise that the contents get instead of the true one.
    pub(super) fn promise(self, promise: Promise) -> Promise {
        let atomicity = match self {
            Self::AtomicIsTorn => Atomicity::BLOCK,
            Self::BoundaryIsIgnored => Atomicity { boundary: 0, ..promise.atomicity },
            _ => promise.atomicity,
        };
        let flush = match (self, promise.flush) {
            (Self::LyingOneTooFew, FlushKept::AllButLast(last)) => FlushKept::AllButLast(last - 1),
            (_, flush) => flush,
        };
        let fua = if self == Self::FuaIsPlain { FuaKept::Ignored } else { promise.fua };
        Promise { atomicity, flush, fua, ..promise }
    }

    /// Returns the command that the contents get instead of the true one; `None` for none.
    pub(super) fn command(self, op: Op, range: LbaRange, blocks: u64) -> Option<(Op, LbaRange)> {
        let is_zeroes = matches!(op, Op::WriteZeroes { .. });
        match (self, op) {
            (Self::FlushIsDropped | Self::FlushCoversUntilItsAnswer, Op::Flush) => None,
            (Self::ZeroesAreIgnored, _) if is_zeroes => None,
            (Self::InFlightNeverSurvives | Self::OverwritesReordered, op) if op != Op::Flush => None,
            (Self::FuaIsPlain, Op::Write { .. }) => Some((Op::Write { fua: false }, range)),
            (Self::DiscardTooShort, Op::Discard) => Some((op, LbaRange::new(range.lba, range.nlb - 1))),
            (Self::WriteTooLong, Op::Write { .. }) if range.end().0 < blocks => {
                Some((op, LbaRange::new(range.lba, range.nlb + 1)))
            }
            _ => Some((op, range)),
        }
    }

    /// Returns the damage of the cut instead of the requested one.
    pub(super) fn damage(self, damage: &Damage, seed: u64) -> Damage {
        let survival = match self {
            Self::AllOrNothing if seed.is_multiple_of(2) => Survival::By(Strategy::AllLost),
            Self::AllOrNothing => Survival::By(Strategy::AllSurvive),
            Self::NeverTorn if seed.is_multiple_of(2) => Survival::By(Strategy::PrefixMinusOne),
            Self::NeverTorn => Survival::By(Strategy::OnlyOne),
            _ => damage.survival,
        };
        let torn = if self == Self::TornInside { 0.5 } else { damage.torn };
        let unserialized = if self == Self::Unserialized { 1.0 } else { damage.unserialized };
        Damage { survival, torn, unserialized, ..*damage }
    }

    /// Returns the failure that reveals the mistake, if anything does.
    fn found_by(self) -> Option<String> {
        let kinds = streams::kinds();
        let in_streams = |mut seeds: std::ops::Range<u64>| {
            seeds.find_map(|seed| kinds.iter().find_map(|kind| streams::run(*kind, seed, Some(self)).err()))
        };
        let in_reach = || {
            let scripts = reach::scripts();
            let mut small = scripts.iter().filter(|script| reach::is_small(script));
            small.find_map(|script| reach::run(script, 4_000, Some(self)).err())
        };
        in_streams(0..30).or_else(in_reach).or_else(|| in_streams(30..300))
    }
}

#[test]
fn each_mistake_is_found() {
    let missed: Vec<_> = ALL.iter().filter(|mistake| mistake.found_by().is_none()).collect();
    assert!(missed.is_empty(), "nothing finds {missed:?}");
}
