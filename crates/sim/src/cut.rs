//! Time of a power cut: now, at a command, or between two events.
//!
//! Written as `now`, `write=7` (when the 7th write from now arrives), `flush=3`, or `EVENT..EVENT`, where an
//! event is `write:7:submitted` or `flush:3:completed`. Random times alone do not suffice: some losses occur
//! only in a specific window (openzfs #18996).

use std::str::FromStr;

use plumb_block::{Nanos, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;

use crate::fault::CommandKind;

/// Point in the life of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The drive has received the command.
    Submitted,
    /// The drive is about to answer the command.
    Completed,
}

/// The `number`th submission or completion of a kind of command since the cut was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Kind of the command.
    pub kind: CommandKind,
    /// Number of the command among those of its kind, from 1.
    pub number: u64,
    /// Submission or completion.
    pub edge: Edge,
}

impl Mark {
    /// Returns true if this mark never comes after `other`, whatever the host does. Since commands may be
    /// answered in any order, only counts decide: there are at least as many commands of any kind as of one
    /// kind, and at least as many submitted as answered.
    fn comes_no_later_than(self, other: Self) -> bool {
        let counts_all = self.kind == other.kind || self.kind == CommandKind::Any;
        let is_in_time = self.edge == other.edge || self.edge == Edge::Submitted;
        counts_all && is_in_time && self.number <= other.number
    }
}

/// Time of a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutWhen {
    /// Cut at once.
    Now,
    /// At the mark: a submitted command has arrived and is in flight, a completed one gets no answer.
    At(Mark),
    /// At a random time after the first mark and no later than the second.
    Between(Mark, Mark),
}

/// Error of an invalid time for a cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CutWhenError {
    /// The text cannot be parsed.
    #[error(
        "`{0}` does not say when to cut: expected now, write=N, flush=N, or a window such as \
         flush:3:submitted..flush:3:completed"
    )]
    Unknown(String),
    /// The window ends before it starts.
    #[error("in `{0}` the second event does not come after the first")]
    Backwards(String),
}

impl FromStr for CutWhen {
    type Err = CutWhenError;

    fn from_str(text: &str) -> Result<Self, CutWhenError> {
        let wrong = || CutWhenError::Unknown(text.to_owned());
        if text == "now" {
            return Ok(Self::Now);
        }
        if let Some((from, to)) = text.split_once("..") {
            let (from, to) = (mark(from).ok_or_else(wrong)?, mark(to).ok_or_else(wrong)?);
            let is_backwards = to.comes_no_later_than(from);
            return if is_backwards {
                Err(CutWhenError::Backwards(text.to_owned()))
            } else {
                Ok(Self::Between(from, to))
            };
        }
        let at_command = text.split_once('=').and_then(|(kind, number)| {
            Some(Mark { kind: kind.parse().ok()?, number: positive(number)?, edge: Edge::Submitted })
        });
        at_command.or_else(|| mark(text)).map(Self::At).ok_or_else(wrong)
    }
}

fn mark(text: &str) -> Option<Mark> {
    let mut parts = text.split(':');
    let kind = parts.next()?.parse().ok()?;
    let number = positive(parts.next()?)?;
    let edge = match parts.next()? {
        "submitted" => Edge::Submitted,
        "completed" => Edge::Completed,
        _ => return None,
    };
    parts.next().is_none().then_some(Mark { kind, number, edge })
}

fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

/// Maximum random delay after the first mark of a window, in nanoseconds.
const WINDOW_MAX: f64 = 1e8;

/// A requested cut that has not happened yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArmedCut {
    from: Option<Countdown>,
    to: Countdown,
    /// Latest time of the cut, once the window is open.
    pub(crate) due: Option<Nanos>,
}

#[derive(Debug, Clone, PartialEq)]
struct Countdown {
    mark: Mark,
    left: u64,
}

impl Countdown {
    const fn new(mark: Mark) -> Self {
        Self { mark, left: mark.number }
    }

    fn is_reached(&mut self, op: Op, edge: Edge) -> bool {
        if self.left == 0 || edge != self.mark.edge || !self.mark.kind.is(op) {
            return false;
        }
        self.left -= 1;
        self.left == 0
    }
}

impl ArmedCut {
    /// Creates the cut; `None` for [`CutWhen::Now`].
    pub(crate) const fn new(when: CutWhen) -> Option<Self> {
        match when {
            CutWhen::Now => None,
            CutWhen::At(mark) => Some(Self { from: None, to: Countdown::new(mark), due: None }),
            CutWhen::Between(from, to) => {
                Some(Self { from: Some(Countdown::new(from)), to: Countdown::new(to), due: None })
            }
        }
    }

    /// Processes an event at `now`. Returns true if the power is cut with it.
    pub(crate) fn sees(&mut self, op: Op, edge: Edge, now: Nanos, chance: &mut Xoshiro256PlusPlus) -> bool {
        let ends = self.to.is_reached(op, edge);
        let Some(from) = &mut self.from else { return ends };
        if from.is_reached(op, edge) {
            self.due = Some(now.saturating_add(delay(chance)));
        }
        ends && self.due.is_some()
    }
}

/// Draws a delay of 1 us to 100 ms, uniformly over the decades, since windows may be short or long.
fn delay(chance: &mut Xoshiro256PlusPlus) -> Nanos {
    let unit = (chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    Nanos((1e3 * libm::pow(WINDOW_MAX / 1e3, unit)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng as _;

    const WRITE: Op = Op::Write { fua: false };

    #[test]
    fn every_form_is_read_and_anything_else_named() {
        let mark = |kind, number, edge| Mark { kind, number, edge };
        let submitted = mark(CommandKind::Write, 7, Edge::Submitted);
        assert_eq!("now".parse(), Ok(CutWhen::Now));
        assert_eq!("write=7".parse(), Ok(CutWhen::At(submitted)));
        let completed = mark(CommandKind::Flush, 3, Edge::Completed);
        assert_eq!("flush:3:completed".parse(), Ok(CutWhen::At(completed)));
        let window = "write:7:submitted..flush:3:completed";
        assert_eq!(window.parse(), Ok(CutWhen::Between(submitted, completed)));
        for wrong in
            ["", "then", "write", "write=0", "write=x", "write:7", "write:7:done", "a..b", "now..now"]
        {
            assert!(wrong.parse::<CutWhen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_window_that_certainly_ends_before_it_begins_is_refused() {
        for window in [
            "write:2:completed..write:1:submitted",
            "write:1:completed..write:1:submitted",
            "write:2:submitted..write:2:submitted",
            "flush:3:completed..flush:2:completed",
            "flush:3:submitted..any:3:submitted",
            "read:2:completed..any:1:submitted",
        ] {
            assert_eq!(
                window.parse::<CutWhen>(),
                Err(CutWhenError::Backwards(window.to_owned())),
                "{window}"
            );
        }
        for window in [
            "write:2:submitted..write:1:completed",
            "write:1:completed..write:2:submitted",
            "write:9:completed..flush:1:submitted",
            "any:5:submitted..write:1:submitted",
            "write:1:submitted..any:2:submitted",
        ] {
            assert!(window.parse::<CutWhen>().is_ok(), "{window}");
        }
    }

    #[test]
    fn a_cut_at_a_command_comes_with_that_very_one() {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut armed = ArmedCut::new("write=3".parse().unwrap()).unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            assert!(!armed.sees(WRITE, Edge::Completed, Nanos(0), &mut chance), "not its submission");
            assert!(!armed.sees(Op::Flush, Edge::Submitted, Nanos(0), &mut chance), "not a write");
            seen.push(armed.sees(WRITE, Edge::Submitted, Nanos(0), &mut chance));
        }
        assert_eq!(seen, [false, false, true, false]);
    }

    #[test]
    fn a_window_opens_with_its_first_mark_and_ends_with_its_second() {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut armed = ArmedCut::new("flush:1:submitted..flush:1:completed".parse().unwrap()).unwrap();
        assert!(!armed.sees(Op::Flush, Edge::Submitted, Nanos(500), &mut chance));
        let due = armed.due.unwrap();
        assert!((Nanos(1500)..=Nanos(100_000_500)).contains(&due), "{due:?}");
        assert!(armed.sees(Op::Flush, Edge::Completed, Nanos(900), &mut chance));
    }
}
