//! How a check tells how far it is: the caller draws it.

use plumb_block::Nanos;

/// Told how far a check is. All times are of the whole check, not of the phase.
pub trait Progress {
    /// A phase begins; about `left` remains.
    fn begin(&mut self, phase: &str, left: Nanos);

    /// `done` of the whole is behind us, from 0 to 1, and about `left` remains. Called several times a second.
    fn at(&mut self, phase: &str, done: f64, left: Nanos);

    /// Something that the user should know now.
    fn note(&mut self, line: &str);

    /// No more will come.
    fn end(&mut self);
}

/// Tells nobody.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _phase: &str, _left: Nanos) {}
    fn at(&mut self, _phase: &str, _done: f64, _left: Nanos) {}
    fn note(&mut self, _line: &str) {}
    fn end(&mut self) {}
}
