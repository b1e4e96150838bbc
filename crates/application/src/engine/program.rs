//! Interface of a program: initial files, and threads that execute transactions.

use plumb_load::LoadOutcome;

use super::halt::Step;
use super::hand::{Hand, Preparation};

/// Work of a profile on files.
///
/// The calls of each thread follow from the seed and its number alone, never from another thread. So each
/// thread has its own files, or shares files in a way that does not affect which calls are made.
pub(crate) trait Program: Send + Sync {
    /// Creates the initial files, on one thread and unmeasured. The engine then makes them durable.
    fn prepare(&self, _hand: &mut Hand<'_>, _preparation: &mut Preparation<'_>) -> Step<()> {
        Ok(())
    }

    /// Creates a thread, unmeasured.
    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>>;

    /// Returns notes that readers of the results need.
    fn notes(&self, _measured: &LoadOutcome) -> Vec<String> {
        Vec::new()
    }
}

/// Thread of a program.
pub(crate) trait Actor: Send {
    /// Executes one transaction, from [`Hand::begin`] to [`Hand::end`], and the work between it and the next.
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()>;

    /// Completes the work after the last transaction, such as a final sync.
    fn finish(&mut self, _hand: &mut Hand<'_>) -> Step<()> {
        Ok(())
    }
}

impl<F: FnMut(&mut Hand<'_>) -> Step<()> + Send> Actor for F {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        self(hand)
    }
}

/// Parameters for the creation of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Name of the variant.
    pub(crate) variant: &'static str,
    /// Share of the files to use, above 0 and at most 1.
    pub(crate) scale: f64,
    /// Number of threads.
    pub(crate) threads: u32,
    /// Seed of all choices.
    pub(crate) seed: u64,
}

impl Setting {
    /// Returns `count` times the scale, at least `least`.
    pub(crate) fn scaled(&self, count: u64, least: u64) -> u64 {
        ((count as f64 * self.scale).round() as u64).max(least)
    }
}
