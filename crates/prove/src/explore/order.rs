//! Order in which the states of a window are shown.

use std::ops::ControlFlow;

use plumb_crash::{Keep, below};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::coverage::{Coverage, Limits};
use super::cursor::{Cursor, Show};
use super::cut::Cut;

/// Maximum number of landing orders tried for one choice of survivors.
const ORDERS_MAX: usize = 64;
/// Maximum number of commands in a window for which every pair of them is left out.
const PAIRS_MAX: usize = 64;
/// Number of random states in each window.
const DRAWN: u64 = 256;

/// Windows with at most this many pieces are explored exhaustively before others are explored in part.
const FEW_PIECES: u32 = 6;

/// Pass through the states of a window. Earlier passes find more failures for their cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Nothing survives, or everything does.
    Edges,
    /// The first commands in the order of submission, all commands but one, and one command alone.
    Prefixes,
    /// All states of a window that has only a few dozen.
    Few,
    /// A prefix whose last command is torn, and all commands with one torn.
    Tears,
    /// All commands but two.
    Pairs,
    /// Random subsets, with one command torn.
    Drawn,
    /// All subsets of commands, if there are few commands.
    Subsets,
    /// All states, if the limits permit.
    Whole,
    /// All states that a check can distinguish, if at most this many visits are enough.
    ToldApart(u64),
}

impl Pass {
    /// All passes in order.
    pub(super) const ALL: [Self; 11] = [
        Self::Edges,
        Self::Prefixes,
        Self::Few,
        Self::Tears,
        Self::Pairs,
        Self::Drawn,
        Self::Subsets,
        Self::Whole,
        // Each limit starts over, so that one window does not take the time of all.
        Self::ToldApart(1 << 10),
        Self::ToldApart(1 << 15),
        Self::ToldApart(Limits::VISITS_MAX),
    ];

    /// Shows the states of this pass. Returns the coverage of the window by this pass and the earlier ones.
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

/// Search through the states that a check can distinguish: a choice is varied only if the check of a state
/// has read a block that it affects.
struct ToldApart {
    alternatives: Vec<Vec<usize>>,
    /// By piece: the index of its group among the alternatives.
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

    /// Shows the states that agree with the decided groups; initially nothing survives of the other groups.
    /// Returns false if not all states could be visited.
    ///
    /// If the groups that the check has read are left as they are, all other groups make no difference. So
    /// the remaining states are those in which the first of these groups differs, those in which the second
    /// differs and the first does not, and so on.
    fn visit(&mut self, cursor: &mut Cursor<'_>, show: Show<'_>) -> ControlFlow<(), bool> {
        if self.visits_left == 0 {
            return ControlFlow::Continue(false);
        }
        self.visits_left -= 1;
        let undecided: Vec<usize> = match cursor.unmet() {
            // No cut leaves this state. The needed piece may survive, unless it was decided that it is lost.
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

    /// Shows the states to be visited next without waiting for the reads of their checks, so that several
    /// checks run in parallel.
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

/// Returns the number of ways in which at most one piece of each group survives, capped at `u64::MAX`.
fn choices(alternatives: &[Vec<usize>]) -> u64 {
    alternatives.iter().fold(1, |all, pieces| all.saturating_mul(pieces.len() as u64 + 1))
}

/// Shows the states in which at most one piece of each group survives, counting like an odometer.
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

/// Shows all subsets in Gray code order, each one flip away from the previous one. Returns true if all
/// landing orders were shown too.
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

/// Shows the state with the fate of these commands inverted.
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
    // Longest prefix first: the last operations of an application usually depend on those just before.
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

/// Returns the ways to tear a command: only the first blocks, all but the last, all but the first, and all
/// but one in the middle.
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

/// Shows the state in which a surviving command is torn and only the blocks in `keep` survive.
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
