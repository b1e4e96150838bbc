//! What a proof is doing, on stderr.

use plumb_prove::proof::{Done, Step};

use crate::progress::Bar;

/// How far a proof is, with how long the step still takes as far as that can be said.
pub(super) struct Shown {
    bar: Bar,
    step: Option<Step>,
}

impl Shown {
    pub(super) const fn of(bar: Bar) -> Self {
        Self { bar, step: None }
    }

    pub(super) fn say(&self, name: &str) {
        self.bar.doing(name);
    }

    pub(super) fn show(&mut self, step: &Step, done: Option<Done>) {
        let words = match step {
            Step::Exploring(profile) => format!("exploring what a {profile} drive may leave"),
            Step::Minimising(class) => format!("looking for the smallest case that is {}", class.name()),
            Step::Changing(change) => format!("trying {change}"),
        };
        if self.step.as_ref() != Some(step) {
            self.step = Some(step.clone());
            self.bar.doing(&words);
        }
        let Some(Done { progress, of, elapsed, left: Some(left) }) = done else { return };
        let share = elapsed.as_secs_f64() / (elapsed + left).as_secs_f64().max(1e-9);
        let left = left.as_secs_f64().ceil();
        let (distinct, failing) = (progress.distinct, progress.failing);
        self.bar.set(share, format!("{words}: {distinct} of {of} states, {failing} fail, {left:.0} s left"));
    }

    pub(super) fn end(&self) {
        self.bar.finish();
    }
}
