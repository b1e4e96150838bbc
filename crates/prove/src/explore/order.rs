//! In which order the states of a window are shown.

use std::ops::ControlFlow;

use plumb_crash::{Grain, Keep, below};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::cursor::{Cursor, Show};
use super::cut::Cut;
use super::{Coverage, Explorer, Limits};

/// At most so many orders of landing are tried for one choice of survivors.
const ORDERS_MAX: usize = 64;
/// In a window with more commands not every pair of them is left out.
const PAIRS_MAX: usize = 64;
/// So many states are drawn in each window.
const DRAWN: u64 = 256;

/// A window with at most this many pieces is explored whole before others are explored in part.
const FEW_PIECES: u32 = 6;

/// One way through the states of a window; those before it find more failures for what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Nothing survives, or all does.
    Edges,
    /// The first so many in the order of submission, all of them but one, and one alone.
    Prefixes,
    /// Everything, where that is a few dozen states.
    Few,
    /// A prefix the last of which is torn, and all with one torn.
    Tears,
    /// All but two.
    Pairs,
    /// Drawn: any of them, one of them torn.
    Drawn,
    /// All subsets of commands, where these are few.
    Subsets,
    /// Everything, where the limits allow that.
    Whole,
}

impl Pass {
    /// All, in their order.
    pub(super) const ALL: [Self; 8] = [
        Self::Edges,
        Self::Prefixes,
        Self::Few,
        Self::Tears,
        Self::Pairs,
        Self::Drawn,
        Self::Subsets,
        Self::Whole,
    ];

    /// Up to how many pieces a window is divided in blocks; with more it is in commands.
    pub(super) fn pieces(self, limits: Limits) -> usize {
        let pieces = if self == Self::Whole { limits.pieces } else { limits.pieces.min(FEW_PIECES) };
        pieces as usize
    }

    /// Shows the states of this pass. How much of the window is explored by that, with the passes before.
    pub(super) fn explore(
        self,
        cut: &Cut<'_>,
        of: &Explorer<'_>,
        show: Show<'_>,
    ) -> ControlFlow<(), Coverage> {
        let mut cursor = Cursor::new(cut);
        let (is_whole, count) = (cut.grain == Grain::Blocks, cut.pieces.len());
        match self {
            Self::Edges => {
                cursor.each_order(1, show)?;
                (0..count).for_each(|piece| cursor.flip(piece));
                cursor.each_order(ORDERS_MAX, show)?;
            }
            Self::Prefixes => prefixes(&mut cursor, count, show)?,
            Self::Few | Self::Whole if is_whole => {
                let has_all = subsets(&mut cursor, count, usize::MAX, show)?;
                debug_assert!(has_all);
                return ControlFlow::Continue(Coverage::Exhaustive);
            }
            Self::Tears => tears(&mut cursor, cut, show)?,
            Self::Pairs if count <= PAIRS_MAX => pairs(&mut cursor, count, show)?,
            Self::Drawn => drawn(&mut cursor, cut, of.seed, show)?,
            Self::Subsets if count <= of.limits.commands as usize => {
                if subsets(&mut cursor, count, ORDERS_MAX, show)? {
                    return ControlFlow::Continue(Coverage::Bounded);
                }
            }
            Self::Few | Self::Whole | Self::Pairs | Self::Subsets => {}
        }
        ControlFlow::Continue(Coverage::Sampled)
    }
}

/// All subsets, each one piece away from the one before: a Gray code. Whether all orders of landing were shown, too.
fn subsets(cursor: &mut Cursor<'_>, count: usize, orders: usize, show: Show<'_>) -> ControlFlow<(), bool> {
    let mut has_all = cursor.each_order(orders, show)?;
    for number in 1_u64..1 << count {
        cursor.flip(number.trailing_zeros() as usize);
        has_all &= cursor.each_order(orders, show)?;
    }
    ControlFlow::Continue(has_all)
}

fn prefixes(cursor: &mut Cursor<'_>, count: usize, show: Show<'_>) -> ControlFlow<()> {
    for piece in 0..count {
        cursor.flip(piece);
        cursor.each_order(1, show)?;
        cursor.flip(piece);
    }
    for length in 0..count {
        cursor.flip(length);
        cursor.each_order(ORDERS_MAX, show)?;
    }
    for piece in 0..count {
        cursor.flip(piece);
        cursor.each_order(1, show)?;
        cursor.flip(piece);
    }
    // The last of them first: what an application does last depends on what it did just before.
    for length in (2..count).rev() {
        cursor.flip(length);
        cursor.flip(length - 2);
        cursor.each_order(1, show)?;
        cursor.flip(length - 2);
    }
    ControlFlow::Continue(())
}

fn pairs(cursor: &mut Cursor<'_>, count: usize, show: Show<'_>) -> ControlFlow<()> {
    (0..count).for_each(|piece| cursor.flip(piece));
    for first in 0..count {
        cursor.flip(first);
        for second in first + 1..count {
            cursor.flip(second);
            cursor.each_order(1, show)?;
            cursor.flip(second);
        }
        cursor.flip(first);
    }
    ControlFlow::Continue(())
}

/// The ways in which one command is torn: the first blocks alone, all but the last, all but the first, and one in the middle
/// missing.
fn ways_to_tear(blocks: u64) -> Vec<Keep> {
    let mut ways = vec![
        Keep::First(blocks / 2),
        Keep::First(blocks - 1),
        Keep::AllButFirst(1),
        Keep::First(1),
        Keep::Without(blocks / 2),
        Keep::AllButFirst(blocks / 2),
        Keep::AllButFirst(blocks - 1),
    ];
    let mut kept: Vec<Vec<(u64, u64)>> = Vec::new();
    ways.retain(|way| {
        let runs = way.runs(blocks);
        let is_new = !kept.contains(&runs);
        kept.push(runs);
        is_new
    });
    ways
}

fn tears(cursor: &mut Cursor<'_>, cut: &Cut<'_>, show: Show<'_>) -> ControlFlow<()> {
    let torn = |cursor: &Cursor<'_>, piece: usize, show: Show<'_>| {
        let one = &cut.pieces[piece];
        let blocks = cut.command(u64::from(one.command.0)).range.nlb;
        let ways = if one.may_tear { ways_to_tear(blocks) } else { Vec::new() };
        ways.into_iter().try_for_each(|keep| show(&cursor.torn(piece, keep)))
    };
    for piece in 0..cut.pieces.len() {
        cursor.flip(piece);
        torn(cursor, piece, show)?;
    }
    (0..cut.pieces.len()).try_for_each(|piece| torn(cursor, piece, show))
}

fn drawn(cursor: &mut Cursor<'_>, cut: &Cut<'_>, seed: u64, show: Show<'_>) -> ControlFlow<()> {
    let count = cut.pieces.len();
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ (cut.event as u64).rotate_left(32));
    for _ in 0..DRAWN.min(1_u64.checked_shl(count as u32).unwrap_or(DRAWN)) {
        let odds = 1 + below(&mut chance, 15);
        for piece in 0..count {
            cursor.set(piece, below(&mut chance, 16) < odds);
        }
        cursor.each_order(1, show)?;
        let torn = below(&mut chance, count as u64) as usize;
        if cut.pieces[torn].may_tear {
            cursor.set(torn, true);
            show(&cursor.torn(torn, Keep::Some { seed: below(&mut chance, u64::MAX) }))?;
        }
    }
    ControlFlow::Continue(())
}
