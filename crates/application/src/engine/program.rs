//! Definition of a program: files that are prepared, and threads that turn transaction after transaction.

use plumb_load::LoadOutcome;

use super::halt::Step;
use super::hand::{Hand, Preparation};

/// Work of a profile on files.
///
/// What each thread does follows from the seed and from its own number alone, never from another thread: so
/// the threads' files are their own, or they are shared in a way that does not change which calls are made.
pub(crate) trait Program: Send + Sync {
    /// Makes the files that are there before. Not measured, on one thread; made durable by the engine
    /// afterwards.
    fn prepare(&self, _hand: &mut Hand<'_>, _preparation: &mut Preparation<'_>) -> Step<()> {
        Ok(())
    }

    /// Returns the thread of that number. Not measured.
    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>>;

    /// Returns the notes that a reader of these figures must know.
    fn notes(&self, _measured: &LoadOutcome) -> Vec<String> {
        Vec::new()
    }
}

/// One thread of a program.
pub(crate) trait Actor: Send {
    /// Returns one transaction, from [`Hand::begin`] to [`Hand::end`], and what comes between it and the
    /// next.
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()>;

    /// Does what is due when there are no more transactions: the flush at the end.
    fn finish(&mut self, _hand: &mut Hand<'_>) -> Step<()> {
        Ok(())
    }
}

impl<F: FnMut(&mut Hand<'_>) -> Step<()> + Send> Actor for F {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        self(hand)
    }
}

/// How a program is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The name of the variant.
    pub(crate) variant: &'static str,
    /// Part of the files to use, above 0, at most 1.
    pub(crate) scale: f64,
    /// Number of threads that it has.
    pub(crate) threads: u32,
    /// Seed from which all choices follow.
    pub(crate) seed: u64,
}

impl Setting {
    /// Returns `count` things at this scale, at least `least`.
    pub(crate) fn scaled(&self, count: u64, least: u64) -> u64 {
        ((count as f64 * self.scale).round() as u64).max(least)
    }
}
