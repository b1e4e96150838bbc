//! Phases of a run: warm-up, measurement, cool-down. They are the same in real and in virtual time.

use std::sync::Arc;

use plumb_block::Nanos;
use plumb_workload::Warmup;

use crate::observer::{Event, Observer};
use crate::progress::Progress;
use crate::rate_watch::{RateWatch, WARMUP_MAX};
use crate::window::Window;

/// Interval between calls of the observer.
pub(crate) const OBSERVED_EVERY: Nanos = Nanos::millis(100);

/// State of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Phase before the measurement.
    Warming,
    /// The window begins at this time. `settled` is true if the rate had settled.
    Beginning { at: Nanos, settled: bool },
    /// Measurement; `until` is its end if time ends it.
    Measuring { until: Option<Nanos> },
    /// Phase after the measurement.
    Over,
}

/// Window of a run, and the logic that opens and closes it.
#[derive(Debug)]
pub(crate) struct Phases {
    window: Arc<Window>,
    stage: Stage,
    rate_watch: RateWatch,
    warmup: Warmup,
    duration: Option<Nanos>,
    cooldown: Nanos,
    /// Start of the run.
    pub(crate) start: Nanos,
    /// True if the observer was already told that the window begins.
    is_told: bool,
}

impl Phases {
    /// Creates the phases of a run that has not started.
    pub(crate) fn new(warmup: Warmup, duration: Option<Nanos>, cooldown: Nanos) -> Self {
        Self {
            window: Arc::new(Window::closed(cooldown)),
            stage: Stage::Warming,
            rate_watch: RateWatch::default(),
            warmup,
            duration,
            cooldown,
            start: Nanos::ZERO,
            is_told: false,
        }
    }

    /// Returns the window for the workers.
    pub(crate) fn window(&self) -> Arc<Window> {
        Arc::clone(&self.window)
    }

    /// Announces a window that begins with the run before the run starts, so that the observer's counters
    /// include everything.
    pub(crate) fn tell_before_start(&mut self, observer: &mut dyn Observer) {
        self.is_told = self.warmup == Warmup::For(Nanos::ZERO);
        if self.is_told {
            observer.on(&Event::WindowBegins { warmup: Nanos::ZERO, settled: true });
        }
    }

    /// Sets the time at which the load starts.
    pub(crate) fn start(&mut self, start: Nanos) {
        self.start = start;
        if let Warmup::For(warmup) = self.warmup {
            self.begin_at(start.saturating_add(warmup), true);
        }
    }

    fn begin_at(&mut self, at: Nanos, settled: bool) {
        self.window.begin_at(at);
        self.stage = Stage::Beginning { at, settled };
    }

    /// Returns the next begin or end of the window, if known.
    pub(crate) const fn next_mark(&self) -> Option<Nanos> {
        match self.stage {
            Stage::Beginning { at, .. } => Some(at),
            Stage::Measuring { until } => until,
            Stage::Warming | Stage::Over => None,
        }
    }

    /// Announces the begin and the end of the window to the observer.
    pub(crate) fn move_window(&mut self, now: Nanos, observer: &mut dyn Observer) {
        if let Stage::Beginning { at, settled } = self.stage
            && now >= at
        {
            if !self.is_told {
                observer.on(&Event::WindowBegins { warmup: at.since(self.start), settled });
            }
            let until = self.duration.map(|duration| at.saturating_add(duration));
            self.stage = Stage::Measuring { until };
        }
        if let Stage::Measuring { until: Some(until) } = self.stage
            && now >= until
            && self.cooldown > Nanos::ZERO
        {
            observer.on(&Event::WindowEnds);
            self.stage = Stage::Over;
        }
    }

    /// Ends a warm-up without a length once the rate has settled or the time limit is reached. The window
    /// then begins `ahead` after now, so that every worker learns of it in time.
    pub(crate) fn watch_rate(&mut self, progress: &Progress, now: Nanos, ahead: Nanos) {
        if self.stage != Stage::Warming {
            return;
        }
        let settled = self.rate_watch.has_settled(progress.elapsed, progress.total.operations());
        if settled || progress.elapsed >= WARMUP_MAX {
            self.begin_at(now.saturating_add(ahead), settled);
        }
    }

    /// Records the end of the run; ends a window that is still open.
    pub(crate) fn end(&self, observer: &mut dyn Observer) {
        if matches!(self.stage, Stage::Measuring { .. }) {
            observer.on(&Event::WindowEnds);
        }
    }
}
