//! Which of the commands at risk survive a cut: any subset is legal, and each is drawn with a probability above zero,
//! but the draw prefers those at which software fails: all lost, all there, a prefix, all but one, one alone, a tear.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;
use serde::{Deserialize, Serialize};

use super::keep::Keep;
use super::planted::{Bug, planted};

/// A command that may survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    /// How many logical blocks it has.
    pub blocks: u64,
    /// Whether it survives whole or not at all.
    pub is_atomic: bool,
    /// Whether it was answered.
    pub is_completed: bool,
}

/// How to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Survival {
    /// By a strategy that is drawn, too.
    #[default]
    Mixed,
    /// What was answered, and nothing that was in flight.
    Answered,
    /// Always by this strategy.
    By(Strategy),
}

/// One way to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Nothing survives.
    #[default]
    AllLost,
    /// Everything does.
    AllSurvive,
    /// What was answered does.
    AnsweredSurvive,
    /// The first so many in the order of submission.
    Prefix,
    /// The same but one of them.
    PrefixMinusOne,
    /// One alone.
    OnlyOne,
    /// A prefix, the last of which is torn.
    SingleTear,
    /// Each with one probability, drawn once; those that survive may be torn.
    Random,
    /// Each block of each by the toss of a coin.
    RandomBlocks,
}

/// The choice: one entry for each contender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// How it came about.
    pub strategy: Strategy,
    /// What survives of each.
    pub keep: Vec<Keep>,
}

const DRAWN: [Strategy; 8] = [
    Strategy::AllLost,
    Strategy::AllSurvive,
    Strategy::Prefix,
    Strategy::PrefixMinusOne,
    Strategy::OnlyOne,
    Strategy::SingleTear,
    Strategy::Random,
    Strategy::RandomBlocks,
];

/// Chooses what survives of the commands at risk, given in the order of submission.
pub fn draw(chance: &mut Xoshiro256PlusPlus, contenders: &[Contender], survival: Survival) -> Chosen {
    let mut strategy = match survival {
        Survival::Mixed => DRAWN[below(chance, DRAWN.len() as u64) as usize],
        Survival::Answered => Strategy::AnsweredSurvive,
        Survival::By(strategy) => strategy,
    };
    if planted(Bug::AllOrNothing) {
        strategy = DRAWN[below(chance, 2) as usize];
    }
    let mut keep = by_strategy(chance, contenders, strategy);
    for (keep, contender) in keep.iter_mut().zip(contenders) {
        *keep = legal(*keep, *contender);
    }
    Chosen { strategy, keep }
}

/// An atomic command is not torn: a part becomes nothing or all, by its own coin.
fn legal(keep: Keep, contender: Contender) -> Keep {
    if planted(Bug::InFlightNeverSurvives) && !contender.is_completed {
        return Keep::Nothing;
    }
    let is_whole = contender.is_atomic && !planted(Bug::AtomicTorn) || planted(Bug::NeverTorn);
    match keep {
        Keep::Nothing | Keep::All => keep,
        part if is_whole => {
            if part.keeps(0, contender.blocks) {
                Keep::All
            } else {
                Keep::Nothing
            }
        }
        part => part,
    }
}

fn by_strategy(chance: &mut Xoshiro256PlusPlus, contenders: &[Contender], strategy: Strategy) -> Vec<Keep> {
    let count = contenders.len();
    let all = |keep| vec![keep; count];
    if count == 0 {
        return Vec::new();
    }
    match strategy {
        Strategy::AllLost => all(Keep::Nothing),
        Strategy::AllSurvive => all(Keep::All),
        Strategy::AnsweredSurvive => {
            let answered = |one: &Contender| if one.is_completed { Keep::All } else { Keep::Nothing };
            contenders.iter().map(answered).collect()
        }
        Strategy::Prefix => prefix(count, below(chance, count as u64 + 1) as usize),
        Strategy::PrefixMinusOne => {
            let length = 1 + below(chance, count as u64) as usize;
            let mut keep = prefix(count, length);
            keep[below(chance, length as u64) as usize] = Keep::Nothing;
            keep
        }
        Strategy::OnlyOne => {
            let mut keep = all(Keep::Nothing);
            keep[below(chance, count as u64) as usize] = Keep::All;
            keep
        }
        Strategy::SingleTear => {
            let torn = below(chance, count as u64) as usize;
            let mut keep = prefix(count, torn);
            keep[torn] = tear(chance, contenders[torn].blocks);
            keep
        }
        Strategy::Random => random(chance, contenders),
        Strategy::RandomBlocks => (0..count).map(|_| Keep::Some { seed: chance.next_u64() }).collect(),
    }
}

fn prefix(count: usize, length: usize) -> Vec<Keep> {
    (0..count).map(|index| if index < length { Keep::All } else { Keep::Nothing }).collect()
}

fn random(chance: &mut Xoshiro256PlusPlus, contenders: &[Contender]) -> Vec<Keep> {
    let odds = 1 + below(chance, 15);
    let mut one = |contender: &Contender| {
        if below(chance, 16) >= odds {
            Keep::Nothing
        } else if below(chance, 4) == 0 {
            tear(chance, contender.blocks)
        } else {
            Keep::All
        }
    };
    contenders.iter().map(&mut one).collect()
}

/// The tears that are found most often: the end is missing, the beginning, one block, or any.
fn tear(chance: &mut Xoshiro256PlusPlus, blocks: u64) -> Keep {
    if blocks < 2 {
        return if below(chance, 2) == 0 { Keep::Nothing } else { Keep::All };
    }
    match below(chance, 4) {
        0 => Keep::First(1 + below(chance, blocks - 1)),
        1 => Keep::AllButFirst(1 + below(chance, blocks - 1)),
        2 => Keep::Without(below(chance, blocks)),
        _ => Keep::Some { seed: chance.next_u64() },
    }
}

/// A number below `bound`, which is not 0. The bias is below 2^-40 for what is drawn here.
pub(crate) fn below(chance: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(chance.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Whether something of this probability happens.
pub(crate) fn happens(chance: &mut Xoshiro256PlusPlus, probability: f64) -> bool {
    // 53 bits: what a double holds.
    probability > 0.0 && ((chance.next_u64() >> 11) as f64) < probability * 9_007_199_254_740_992.0
}
