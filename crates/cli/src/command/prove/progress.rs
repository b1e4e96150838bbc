//! What a proof is doing, on stderr.

use std::time::Instant;

use plumb_prove::proof::{Done, Step};

use crate::progress::Bar;

/// How far a proof is, with how long the step still takes as far as that can be said.
pub(super) struct Shown {
    bar: Bar,
    /// The step, and when it began.
    step: Option<(Step, Instant)>,
}

impl Shown {
    pub(super) fn of(bar: Bar) -> Self {
        Self { bar, step: None }
    }

    pub(super) fn say(&self, name: &str) {
        self.bar.doing(name);
    }

    pub(super) fn show(&mut self, step: &Step, done: Option<Done>) {
        if self.step.as_ref().is_none_or(|(now, _)| now != step) {
            self.step = Some((step.clone(), Instant::now()));
            self.bar.doing(&words(step));
        }
        let (Some(Done { progress, of }), Some((_, began))) = (done, &self.step) else { return };
        let share = progress.distinct as f64 / of.max(1) as f64;
        let left = began.elapsed().as_secs_f64() * (1.0 / share.max(1e-9) - 1.0);
        let left = if share > 0.0 { format!(", {:.0} s left", left.ceil()) } else { String::new() };
        let failing = progress.failing;
        let message = format!("{}: {} of {of} states, {failing} fail{left}", words(step), progress.distinct);
        self.bar.set(share, message);
    }

    pub(super) fn end(&self) {
        self.bar.finish();
    }
}

fn words(step: &Step) -> String {
    match step {
        Step::Exploring(profile) => format!("exploring what a {profile} drive may leave"),
        Step::Minimising(class) => format!("looking for the smallest case that is {}", class.name()),
        Step::Changing(change) => format!("trying {change}"),
    }
}
