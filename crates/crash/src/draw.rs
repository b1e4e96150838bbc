//! A random cut: every legal outcome has a probability above zero, but the draw prefers those that reveal
//! software bugs: all lost, all present, a prefix, all but one, only one, a tear.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;
use serde::{Deserialize, Serialize};

use crate::chance::below;
use crate::command::{Kind, Moment};
use crate::keep::Keep;
use crate::window::Window;

/// Selection of the commands that survive, among those at risk and in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Survival {
    /// Random strategy.
    #[default]
    Mixed,
    /// All acknowledged commands survive, and none in flight.
    Acknowledged,
    /// Always this strategy.
    By(Strategy),
}

/// Strategy to select survivors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Nothing survives.
    #[default]
    AllLost,
    /// Everything survives.
    AllSurvive,
    /// Everything acknowledged survives.
    AcknowledgedSurvive,
    /// The first commands in the order of submission survive.
    Prefix,
    /// The first commands in the order of submission survive, except one of them.
    PrefixMinusOne,
    /// A single command survives.
    OnlyOne,
    /// A prefix survives, and the last command of it is torn.
    SingleTear,
    /// Each command survives with a common random probability, and may be torn.
    Random,
    /// Each block of each command survives with probability 1/2.
    RandomBlocks,
}

/// Outcome of a drawn cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnCut {
    /// Strategy used.
    pub strategy: Strategy,
    /// All commands of the window in the order in which their surviving parts landed: a block holds the last
    /// command that keeps it.
    pub remainders: Vec<Remainder>,
}

/// Surviving part of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remainder {
    /// Number of the command.
    pub id: u64,
    /// Blocks of the command that survive.
    pub keep: Keep,
    /// True if the command survives completely or not at all.
    pub is_atomic: bool,
    /// Time of landing.
    landed: Moment,
    /// Time of submission.
    submitted: Moment,
}

/// A command that may survive.
struct Contender {
    id: u64,
    blocks: u64,
    is_atomic: bool,
    is_acknowledged: bool,
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

impl<T: Clone> Window<T> {
    /// Draws a cut at this moment, determined only by `chance`.
    pub fn draw(&self, chance: &mut Xoshiro256PlusPlus, survival: Survival) -> DrawnCut {
        let contenders = self.contenders();
        let strategy = match survival {
            Survival::Mixed => DRAWN[below(chance, DRAWN.len() as u64) as usize],
            Survival::Acknowledged => Strategy::AcknowledgedSurvive,
            Survival::By(strategy) => strategy,
        };
        let keeps = by_strategy(chance, &contenders, strategy);
        let drawn = contenders.iter().zip(keeps).map(|(one, keep)| {
            let command = &self.commands[&one.id];
            Remainder {
                id: one.id,
                keep: legal(keep, one),
                is_atomic: one.is_atomic,
                landed: command.landed(),
                submitted: command.span.submitted,
            }
        });
        let mut remainders: Vec<Remainder> = drawn.collect();
        // A command in flight may have landed at any time between its submission and now.
        for one in remainders.iter_mut().filter(|one| !self.commands[&one.id].span.is_completed()) {
            one.landed = one.submitted + below(chance, self.now - one.submitted + 1);
        }
        let durable = self.commands.iter().filter(|(_, command)| command.is_durable);
        remainders.extend(durable.map(|(id, command)| Remainder {
            id: *id,
            keep: Keep::All,
            is_atomic: false,
            landed: command.landed(),
            submitted: command.span.submitted,
        }));
        remainders.sort_by_key(|one| (one.landed, one.submitted, one.id));
        DrawnCut { strategy, remainders }
    }

    /// Returns the commands that may survive, in order of submission.
    fn contenders(&self) -> Vec<Contender> {
        let at_risk = self.commands.iter().filter(|(_, command)| !command.is_durable);
        let mut at_risk: Vec<_> = at_risk.collect();
        at_risk.sort_by_key(|(id, command)| (command.span.submitted, **id));
        let contender = |(id, command): (&u64, &crate::Command<T>)| Contender {
            id: *id,
            blocks: command.range.nlb,
            is_atomic: self.is_atomic(command),
            is_acknowledged: command.is_acknowledged(),
        };
        at_risk.into_iter().map(contender).collect()
    }

    pub(crate) fn is_atomic(&self, command: &crate::Command<T>) -> bool {
        matches!(command.kind, Kind::Write { .. }) && self.promise.atomicity.is_atomic(command.range)
    }
}

/// Makes a selection legal: an atomic command is not torn, so a part becomes nothing or all at random.
const fn legal(keep: Keep, contender: &Contender) -> Keep {
    match keep {
        Keep::Nothing | Keep::All => keep,
        part if !contender.is_atomic => part,
        part if part.keeps(0, contender.blocks) => Keep::All,
        _ => Keep::Nothing,
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
        Strategy::AcknowledgedSurvive => {
            let keep = |one: &Contender| if one.is_acknowledged { Keep::All } else { Keep::Nothing };
            contenders.iter().map(keep).collect()
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

/// Draws a tear, preferring common ones: the end missing, the start missing, one block missing, or arbitrary.
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
