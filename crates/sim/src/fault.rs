//! Injected errors: which commands of a drive fail, hang or are slowed.
//!
//! A fault is written as `WHAT:EFFECT[:WHEN]...`:
//!
//! | WHAT | EFFECT | WHEN |
//! |---|---|---|
//! | `read`, `write`, `flush`, `discard`, `any` | `eio`, `enospc`, `timeout`, `slow=50ms` | `nth=7`, `every=100`, `p=0.01`, `lba=1000-1999`, `times=3` |
//!
//! All conditions must hold, and each may be given once. Without conditions every command of the kind is
//! affected. `lba` is a range of logical blocks, of which a command must touch one. `nth` and `every` count
//! since the fault was set, and with `lba` only commands that touch it.

use std::fmt;
use std::str::FromStr;

use plumb_block::{Errno, LbaRange, Nanos, Op};
use plumb_crash::happens;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::model::Time;

/// Maximum delay by a fault: an hour.
const SLOW_MAX: Nanos = Nanos::secs(3600);

/// Kind of command that triggers a fault or a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// Reads.
    Read,
    /// Writes and write-zeroes.
    Write,
    /// Flushes.
    Flush,
    /// Discards.
    Discard,
    /// All commands.
    Any,
}

impl CommandKind {
    /// Returns true if `op` is of this kind.
    pub const fn is(self, op: Op) -> bool {
        match self {
            Self::Any => true,
            Self::Read => matches!(op, Op::Read),
            Self::Write => matches!(op, Op::Write { .. } | Op::WriteZeroes { .. }),
            Self::Flush => matches!(op, Op::Flush),
            Self::Discard => matches!(op, Op::Discard),
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Any => "any",
        }
    }
}

impl FromStr for CommandKind {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        [Self::Read, Self::Write, Self::Flush, Self::Discard, Self::Any]
            .into_iter()
            .find(|kind| kind.word() == text)
            .ok_or_else(|| FaultError::new(text, "read, write, flush, discard or any"))
    }
}

/// Effect of a fault on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Fails with this error after the usual time.
    Fail(Errno),
    /// Gets no answer; a write may still land.
    Timeout,
    /// Takes this much longer.
    Slow(Nanos),
}

/// A fault: its effect, and the affected commands.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    kind: CommandKind,
    effect: Effect,
    /// Number of the only affected command, from 1.
    nth: Option<u64>,
    /// Number of commands from one fault to the next.
    every: Option<u64>,
    /// Probability that the fault occurs.
    probability: Option<f64>,
    /// Blocks of which the command must touch one: first and last.
    lba: Option<(u64, u64)>,
    /// Maximum number of times that it strikes.
    times: Option<u64>,
    seen: u64,
    struck: u64,
}

/// Error of an invalid fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The text cannot be parsed, or describes no possible fault.
    #[error(
        "`{found}` is not a part of a fault: expected {expected}, as in `write:eio:nth=100` or `flush:slow=50ms:p=0.1`"
    )]
    Senseless {
        /// Invalid part of the text.
        found: String,
        /// Description of valid text.
        expected: &'static str,
    },
    /// The fault refers to blocks beyond the end of the drive.
    #[error("`{fault}` names blocks that the drive does not have: its logical blocks are 0 to {last}")]
    Beyond {
        /// The fault.
        fault: String,
        /// Last block of the drive.
        last: u64,
    },
}

impl FaultError {
    fn new(found: impl Into<String>, expected: &'static str) -> Self {
        Self::Senseless { found: found.into(), expected }
    }
}

impl Fault {
    /// Returns the number of times that the fault has struck.
    pub const fn struck(&self) -> u64 {
        self.struck
    }

    /// Creates a fault that affects the next command of `kind` once.
    pub const fn next(kind: CommandKind, effect: Effect) -> Self {
        Self {
            kind,
            effect,
            nth: Some(1),
            every: None,
            probability: None,
            lba: None,
            times: None,
            seen: 0,
            struck: 0,
        }
    }

    /// Checks that the fault suits a drive with this many blocks.
    ///
    /// # Errors
    /// If it refers to blocks at or beyond `blocks`.
    pub fn fits(&self, blocks: u64) -> Result<(), FaultError> {
        match self.lba {
            Some((_, last)) if last >= blocks => {
                Err(FaultError::Beyond { fault: self.to_string(), last: blocks.saturating_sub(1) })
            }
            _ => Ok(()),
        }
    }

    /// Counts a command and returns the effect on it, if any.
    pub(crate) fn strike(
        &mut self,
        op: Op,
        range: LbaRange,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Option<Effect> {
        let touches = |(first, last): (u64, u64)| range.lba.0 <= last && first < range.end().0;
        if !self.kind.is(op) || !self.lba.is_none_or(touches) {
            return None;
        }
        self.seen += 1;
        let due = self.nth.is_none_or(|nth| nth == self.seen)
            && self.every.is_none_or(|every| self.seen.is_multiple_of(every))
            && self.times.is_none_or(|times| self.struck < times)
            && self.probability.is_none_or(|probability| happens(chance, probability));
        self.struck += u64::from(due);
        due.then_some(self.effect)
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default().parse()?;
        let effect = effect(parts.next().unwrap_or_default())?;
        let mut fault = Self { nth: None, ..Self::next(kind, effect) };
        let mut given: Vec<&str> = Vec::new();
        for part in parts {
            fault.read_condition(part)?;
            let word = part.split('=').next().unwrap_or_default();
            if given.contains(&word) {
                return Err(FaultError::new(part, "each condition once"));
            }
            given.push(word);
        }
        if fault.kind == CommandKind::Flush && fault.lba.is_some() {
            return Err(FaultError::new(text, "no lba: a flush is of the whole drive"));
        }
        Ok(fault)
    }
}

fn effect(text: &str) -> Result<Effect, FaultError> {
    let expected = "eio, enospc, timeout or slow=TIME";
    match text {
        "eio" => Ok(Effect::Fail(Errno::EIO)),
        "enospc" => Ok(Effect::Fail(Errno::ENOSPC)),
        "timeout" => Ok(Effect::Timeout),
        _ => {
            let time = text.strip_prefix("slow=").and_then(|time| time.parse::<Time>().ok());
            let time = time.filter(|time| time.0 <= SLOW_MAX);
            time.map(|time| Effect::Slow(time.0)).ok_or_else(|| FaultError::new(text, expected))
        }
    }
}

impl Fault {
    fn read_condition(&mut self, text: &str) -> Result<(), FaultError> {
        let expected = "nth=N, every=N, p=0..1, lba=FIRST-LAST or times=N";
        let wrong = || FaultError::new(text, expected);
        let (word, value) = text.split_once('=').ok_or_else(wrong)?;
        let number = || value.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong);
        match word {
            "nth" => self.nth = Some(number()?),
            "every" => self.every = Some(number()?),
            "times" => self.times = Some(number()?),
            "p" => {
                let probability = value.parse().ok().filter(|p| (0.0..=1.0).contains(p));
                self.probability = Some(probability.ok_or_else(wrong)?);
            }
            "lba" => {
                let (first, last) = value.split_once('-').unwrap_or((value, value));
                let range = first.parse().ok().zip(last.parse().ok()).filter(|(first, last)| first <= last);
                self.lba = Some(range.ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind.word())?;
        match self.effect {
            Effect::Fail(Errno::ENOSPC) => write!(f, "enospc")?,
            Effect::Fail(_) => write!(f, "eio")?,
            Effect::Timeout => write!(f, "timeout")?,
            Effect::Slow(time) => write!(f, "slow={}us", time.0 / 1000)?,
        }
        let numbers = [("nth", self.nth), ("every", self.every), ("times", self.times)];
        for (word, number) in numbers.into_iter().filter_map(|(word, number)| Some((word, number?))) {
            write!(f, ":{word}={number}")?;
        }
        if let Some(probability) = self.probability {
            write!(f, ":p={probability}")?;
        }
        if let Some((first, last)) = self.lba {
            write!(f, ":lba={first}-{last}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_block::Lba;
    use rand_xoshiro::rand_core::SeedableRng as _;

    fn strikes(fault: &str, op: Op) -> Vec<u64> {
        let mut fault: Fault = fault.parse().unwrap();
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
        (1..=12)
            .filter(|n| fault.strike(op, LbaRange::new(Lba(*n * 10), 10), &mut chance).is_some())
            .collect()
    }

    #[test]
    fn each_condition_narrows_what_a_fault_strikes() {
        let write = Op::Write { fua: false };
        assert_eq!(strikes("write:eio:nth=3", write), [3]);
        assert_eq!(strikes("write:eio:nth=3", Op::Read), []);
        assert_eq!(strikes("any:timeout:every=5", Op::Read), [5, 10]);
        assert_eq!(strikes("read:eio:lba=35-52", Op::Read), [3, 4, 5]);
        assert_eq!(strikes("read:eio:lba=35-52:times=2", Op::Read), [3, 4]);
        assert_eq!(strikes("flush:slow=2ms", Op::Flush).len(), 12);
        let some = strikes("flush:eio:p=0.5", Op::Flush).len();
        assert!((1..12).contains(&some), "{some}");
    }

    #[test]
    fn a_fault_of_blocks_that_are_not_there_is_refused() {
        let fault: Fault = "write:eio:lba=7-15".parse().unwrap();
        assert_eq!(fault.fits(16), Ok(()));
        let error = fault.fits(15).unwrap_err().to_string();
        assert!(error.contains("lba=7-15") && error.contains("0 to 14"), "{error}");
        assert_eq!("any:eio".parse::<Fault>().unwrap().fits(1), Ok(()));
    }

    #[test]
    fn with_lba_only_commands_that_touch_it_are_counted() {
        let write = Op::Write { fua: false };
        assert_eq!(strikes("write:eio:lba=40-69:nth=2", write), [5]);
        assert_eq!(strikes("write:eio:lba=40-69:every=3", write), [6]);
    }

    #[test]
    fn what_is_written_reads_back_and_what_makes_no_sense_is_named() {
        for text in
            ["write:eio:nth=3", "any:timeout:every=5:p=0.25", "read:enospc:lba=3-9", "flush:slow=1500us"]
        {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        let wrong =
            ["", "write", "wrote:eio", "write:eoi", "write:eio:nth=0", "write:eio:p=2", "read:eio:lba=9-3"];
        for text in wrong.into_iter().chain(["flush:slow=9h", "flush:slow=NaNs", "read:eio:often"]) {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
        for text in ["write:eio:nth=1:nth=2", "read:eio:lba=1:p=0.5:lba=2", "flush:eio:lba=3-9"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
        let error = "write:eoi".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("`eoi`") && error.contains("expected eio"), "{error}");
    }
}
