//! Checks of single states: a state by its choice, and the smallest choice that still fails.

use std::ops::ControlFlow;

use plumb_report::document::proof::FailureClass;

use super::parameters::Judge;
use super::results::{Results, key};
use super::workers::Workers;
use crate::error::{Error, ErrorKind, Result};
use crate::explore::{Choice, State};
use crate::subject::Outcome;

impl Judge<'_> {
    /// Checks one state.
    ///
    /// # Errors
    /// If the state does not exist, or cannot be checked.
    pub fn outcome(&self, choice: &Choice) -> Result<Outcome> {
        let mut single = Single::new(self)?;
        let outcome = self.explorer().show(choice, &mut |state| single.check(state));
        single.end()?;
        outcome.unwrap_or_else(|| Err(self.no_such_state()))
    }

    /// Reduces a choice to the losses that a failure of this class needs, as far as the time limit permits.
    ///
    /// # Errors
    /// If the state does not exist, does not fail in this class, or a state cannot be checked.
    pub fn minimise(&self, choice: &Choice, class: FailureClass) -> Result<Choice> {
        let mut single = Single::new(self)?;
        let mut ended = None;
        let minimal = self.explorer().minimise(choice, &mut |state| match single.check(state) {
            Ok(outcome) if self.is_late() => ControlFlow::Break(outcome.class() == Some(class)),
            Ok(outcome) => ControlFlow::Continue(outcome.class() == Some(class)),
            Err(error) => {
                ended = Some(error);
                ControlFlow::Break(false)
            }
        });
        single.end()?;
        match ended {
            Some(error) => Err(error),
            None => minimal.ok_or_else(|| self.no_such_state()),
        }
    }
}

/// Worker that checks one state after another.
struct Single<'r, 'a> {
    judge: &'r Judge<'a>,
    workers: Workers,
    results: Results,
}

impl<'r, 'a> Single<'r, 'a> {
    fn new(judge: &'r Judge<'a>) -> Result<Self> {
        judge.may_mount()?;
        Ok(Self { judge, workers: Workers::start(judge, 1)?, results: Results::default() })
    }

    /// Returns the outcome of the check of a state.
    fn check(&mut self, state: &State<'_>) -> Result<Outcome> {
        let key = key(state);
        if let Some(known) = self.results.get(&key) {
            return Ok(known.outcome.clone());
        }
        let checked = self.workers.wait_for(&self.workers.submit(state.to_owned()), self.judge.stop);
        let checked = checked.and_then(|checked| self.results.add(key, &checked).map(|()| checked));
        let checked = checked.map_err(|why| Error::new(ErrorKind::NotMeasured, why))?;
        Ok(checked.outcome)
    }

    fn end(self) -> Result<()> {
        self.workers.end()
    }
}
