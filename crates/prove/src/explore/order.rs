//! Order in which the states of a window are shown.

use std::ops::ControlFlow;

use plumb_crash::{Keep, below};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::coverage::{Coverage, Limits};
use super::cursor::{Cursor, Show};
use super::cut::Cut;

/// Maximum number of orders of landing that are tried for one choice of survivors.
const ORDERS_MAX: usize = 64;
/// In a window with more commands not every pair of them is left out.
const PAIRS_MAX: usize = 64;
/// Number of states drawn in each window.
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
    /// Everything that a check tells apart, where at most this many visits are enough.
    ToldApart(u64),
}

impl Pass {
    /// All, in their order.
    pub(super) const ALL: [Self; 11] = [
        Self::Edges,
        Self::Prefixes,
        Self::Few,
        Self::Tears,
        Self::Pairs,
        Self::Drawn,
        Self::Subsets,
        Self::Whole,
        // Each again from its start, so that one window does not take the time of all.
        Self::ToldApart(1 << 10),
        Self::ToldApart(1 << 15),
        Self::ToldApart(Limits::VISITS_MAX),
    ];

    /// Shows the states of this pass. Returns how far this pass and those before it have explored the window.
    pub(super) fn explore(
        self,
        cut: &Cut<'_>,
        limits: Limits,
        seed: u64,
        show: Show<'_>,
    ) -> ControlFlow<(), Coverage> {
        let mut cursor = Cursor::new(cut);
        let count = cut.commands.len();
        let pieces_max = if self == Self::Few { limits.pieces.min(FEW_PIECES) } else { limits.pieces };
        match self {
            Self::Edges => {
                cursor.each_order(1, true, show)?;
                cursor.flip_commands(0..count);
                cursor.each_order(ORDERS_MAX, true, show)?;
            }
            Self::Prefixes => prefixes(&mut cursor, count, show)?,
            Self::Few | Self::Whole => {
                let alternatives = cut.alternatives();
                if choices(&alternatives) <= 1 << pieces_max {
                    each_choice(&mut cursor, &alternatives, show)?;
                    return ControlFlow::Continue(Coverage::Exhaustive);
                }
            }
            Self::Tears => tears(&mut cursor, cut, show)?,
            Self::Pairs if count <= PAIRS_MAX => pairs(&mut cursor, count, show)?,
            Self::Drawn => drawn(&mut cursor, cut, seed, show)?,
            Self::Subsets if count <= limits.commands as usize => {
                let has_all =
                    subsets(&mut cursor, count, &mut |cursor| cursor.each_order(ORDERS_MAX, true, show))?;
                if has_all {
                    return ControlFlow::Continue(Coverage::Bounded);
                }
            }
            Self::ToldApart(visits) => {
                let mut told_apart = ToldApart::new(cut, visits.min(limits.visits));
                if told_apart.visit(&mut cursor, show)? {
                    return ControlFlow::Continue(Coverage::Exhaustive);
                }
            }
            Self::Pairs | Self::Subsets => {}
        }
        ControlFlow::Continue(Coverage::Sampled)
    }
}

/// Search through the states that a check tells apart: a choice is made only where the check of a state has
/// read one of the blocks that it is about.
struct ToldApart {
    alternatives: Vec<Vec<usize>>,
    /// By piece: the place of its group among the alternatives.
    group_of: Vec<usize>,
    is_decided: Vec<bool>,
    visits_left: u64,
}

impl ToldApart {
    fn new(cut: &Cut<'_>, visits_left: u64) -> Self {
        let alternatives = cut.alternatives();
        let mut group_of = vec![0; cut.pieces.len()];
        for (group, pieces) in alternatives.iter().enumerate() {
            pieces.iter().for_each(|piece| group_of[*piece] = group);
        }
        Self { is_decided: vec![false; alternatives.len()], alternatives, group_of, visits_left }
    }

    /// Shows the states that agree with the groups that are decided, in which nothing survives of the others
    /// at first. Returns false if not all could be visited.
    ///
    /// With the groups that the check has read left as they are, all others make no difference. So the rest
    /// are the states in which the first of them is another way, those in which the second is and the first
    /// is not, and so on.
    fn visit(&mut self, cursor: &mut Cursor<'_>, show: Show<'_>) -> ControlFlow<(), bool> {
        if self.visits_left == 0 {
            return ControlFlow::Continue(false);
        }
        self.visits_left -= 1;
        let undecided: Vec<usize> = match cursor.unmet() {
            // No cut leaves this. What is needed may survive, unless it was decided that it does not.
            Some(needed) => vec![self.group_of[needed]],
            None => {
                cursor.follow();
                cursor.each_order(usize::MAX, false, show)?;
                let was_read = |pieces: &[usize]| pieces.iter().any(|piece| cursor.was_read(*piece));
                let groups = self.alternatives.iter().enumerate();
                groups.filter(|(_, pieces)| was_read(pieces)).map(|(group, _)| group).collect()
            }
        };
        let undecided: Vec<usize> = undecided.into_iter().filter(|group| !self.is_decided[*group]).collect();
        self.announce(cursor, &undecided, show)?;
        let mut is_whole = true;
        for group in &undecided {
            self.is_decided[*group] = true;
            for place in 0..self.alternatives[*group].len() {
                let piece = self.alternatives[*group][place];
                cursor.flip(piece);
                is_whole &= self.visit(cursor, show)?;
                cursor.flip(piece);
            }
        }
        undecided.iter().for_each(|group| self.is_decided[*group] = false);
        ControlFlow::Continue(is_whole)
    }

    /// Shows the states that are visited next without waiting for what their checks read, so that several
    /// checks run side by side.
    fn announce(&self, cursor: &mut Cursor<'_>, groups: &[usize], show: Show<'_>) -> ControlFlow<()> {
        cursor.unfollow();
        for piece in
            groups.iter().flat_map(|group| &self.alternatives[*group]).take(self.visits_left as usize)
        {
            cursor.flip(*piece);
            cursor.each_order(usize::MAX, false, show)?;
            cursor.flip(*piece);
        }
        ControlFlow::Continue(())
    }
}

/// Returns the number of ways to let at most one of each group survive; `u64::MAX` if it is larger.
fn choices(alternatives: &[Vec<usize>]) -> u64 {
    alternatives.iter().fold(1, |all, pieces| all.saturating_mul(pieces.len() as u64 + 1))
}

/// Shows the states in which at most one piece of each group survives: an odometer.
fn each_choice(cursor: &mut Cursor<'_>, alternatives: &[Vec<usize>], show: Show<'_>) -> ControlFlow<()> {
    let mut survivors = vec![0; alternatives.len()];
    loop {
        cursor.each_order(usize::MAX, false, show)?;
        let mut place = 0;
        loop {
            let Some(pieces) = alternatives.get(place) else { return ControlFlow::Continue(()) };
            if survivors[place] > 0 {
                cursor.flip(pieces[survivors[place] - 1]);
            }
            if survivors[place] < pieces.len() {
                cursor.flip(pieces[survivors[place]]);
                survivors[place] += 1;
                break;
            }
            survivors[place] = 0;
            place += 1;
        }
    }
}

/// Shows all subsets, each one flip away from the one before: a Gray code. Whether all orders of landing were
/// shown, too.
fn subsets(
    cursor: &mut Cursor<'_>,
    count: usize,
    each_order: &mut dyn FnMut(&Cursor<'_>) -> ControlFlow<(), bool>,
) -> ControlFlow<(), bool> {
    let mut has_all = each_order(cursor)?;
    for number in 1_u64..1 << count {
        cursor.flip_command(number.trailing_zeros() as usize);
        has_all &= each_order(cursor)?;
    }
    ControlFlow::Continue(has_all)
}

/// Shows the state with these commands flipped.
fn flipped(cursor: &mut Cursor<'_>, commands: &[usize], show: Show<'_>) -> ControlFlow<()> {
    commands.iter().for_each(|command| cursor.flip_command(*command));
    cursor.each_order(1, true, show)?;
    commands.iter().for_each(|command| cursor.flip_command(*command));
    ControlFlow::Continue(())
}

fn prefixes(cursor: &mut Cursor<'_>, count: usize, show: Show<'_>) -> ControlFlow<()> {
    (0..count).try_for_each(|command| flipped(cursor, &[command], show))?;
    for length in 0..count {
        cursor.flip_command(length);
        cursor.each_order(ORDERS_MAX, true, show)?;
    }
    (0..count).try_for_each(|command| flipped(cursor, &[command], show))?;
    // The last of them first: what an application does last depends on what it did just before.
    for length in (2..count).rev() {
        cursor.flip_command(length);
        flipped(cursor, &[length - 2], show)?;
    }
    ControlFlow::Continue(())
}

fn pairs(cursor: &mut Cursor<'_>, count: usize, show: Show<'_>) -> ControlFlow<()> {
    cursor.flip_commands(0..count);
    let mut all = (0..count).flat_map(|first| (first + 1..count).map(move |second| [first, second]));
    all.try_for_each(|pair| flipped(cursor, &pair, show))
}

/// Returns the ways in which one command is torn: the first blocks alone, all but the last, all but the
/// first, and one in the middle missing.
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

/// Shows the state in which a surviving command is torn, so that only the blocks that `keep` keeps survive.
fn torn(
    cursor: &mut Cursor<'_>,
    cut: &Cut<'_>,
    command: usize,
    keep: Keep,
    show: Show<'_>,
) -> ControlFlow<()> {
    let pieces = cut.commands[command].pieces.clone();
    let range = cut.command(u64::from(cut.pieces[pieces.start].command.0)).range;
    let first = |piece: &usize| cut.spots[cut.pieces[*piece].spots[0]].lba - range.lba.0;
    let lost: Vec<usize> = pieces.filter(|piece| !keep.keeps(first(piece), range.nlb)).collect();
    lost.iter().for_each(|piece| cursor.flip(*piece));
    cursor.show(show)?;
    lost.iter().for_each(|piece| cursor.flip(*piece));
    ControlFlow::Continue(())
}

fn tears(cursor: &mut Cursor<'_>, cut: &Cut<'_>, show: Show<'_>) -> ControlFlow<()> {
    let mut all_torn = |cursor: &mut Cursor<'_>, command: usize| {
        let pieces = &cut.commands[command].pieces;
        let blocks = cut.command(u64::from(cut.pieces[pieces.start].command.0)).range.nlb;
        let ways = if pieces.len() > 1 { ways_to_tear(blocks) } else { Vec::new() };
        ways.into_iter().try_for_each(|keep| torn(cursor, cut, command, keep, show))
    };
    for command in 0..cut.commands.len() {
        cursor.flip_command(command);
        all_torn(cursor, command)?;
    }
    (0..cut.commands.len()).try_for_each(|command| all_torn(cursor, command))
}

fn drawn(cursor: &mut Cursor<'_>, cut: &Cut<'_>, seed: u64, show: Show<'_>) -> ControlFlow<()> {
    let count = cut.commands.len();
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ (cut.event as u64).rotate_left(32));
    let mut survive = vec![false; count];
    for _ in 0..DRAWN.min(1_u64.checked_shl(count as u32).unwrap_or(DRAWN)) {
        let odds = 1 + below(&mut chance, 15);
        let drawn: Vec<bool> = (0..count).map(|_| below(&mut chance, 16) < odds).collect();
        cursor.flip_commands((0..count).filter(|command| survive[*command] != drawn[*command]));
        survive = drawn;
        cursor.each_order(1, true, show)?;
        let command = below(&mut chance, count as u64) as usize;
        if cut.commands.get(command).is_some_and(|whole| whole.pieces.len() > 1) {
            if !std::mem::replace(&mut survive[command], true) {
                cursor.flip_command(command);
            }
            torn(cursor, cut, command, Keep::Some { seed: below(&mut chance, u64::MAX) }, show)?;
        }
    }
    ControlFlow::Continue(())
}
