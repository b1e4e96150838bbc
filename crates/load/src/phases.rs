//! Phases of a run: warming up, measured, cooling down. They are the same in real and in virtual time.

use std::sync::Arc;

use plumb_block::Nanos;
use plumb_workload::Warmup;

use crate::observer::{Event, Observer};
use crate::progress::Progress;
use crate::rate_watch::{RateWatch, WARMUP_MAX};
use crate::window::Window;

/// How often the observer is called.
pub(crate) const OBSERVED_EVERY: Nanos = Nanos::millis(100);

/// Where the window is.
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

/// The window of a run, and who opens and closes it.
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
    /// True if the observer knows already that the window begins.
    is_told: bool,
}

impl Phases {
    /// Creates a run that has not started.
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

    /// Returns the window, for the workers.
    pub(crate) fn window(&self) -> Arc<Window> {
        Arc::clone(&self.window)
    }

    /// Tells the observer of a window that begins with the run before it starts, so that nothing is missing
    /// from what it counts.
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

    /// Returns when the window begins or ends next, if that is known.
    pub(crate) const fn next_mark(&self) -> Option<Nanos> {
        match self.stage {
            Stage::Beginning { at, .. } => Some(at),
            Stage::Measuring { until } => until,
            Stage::Warming | Stage::Over => None,
        }
    }

    /// Tells the observer when the window begins and ends.
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

    /// Ends a warm-up without a length once the rate has settled, or has had its time. The window then begins
    /// `ahead` of now, so that every worker learns of it in time.
    pub(crate) fn watch_rate(&mut self, progress: &Progress, now: Nanos, ahead: Nanos) {
        if self.stage != Stage::Warming {
            return;
        }
        let settled = self.rate_watch.has_settled(progress.elapsed, progress.total.operations());
        if settled || progress.elapsed >= WARMUP_MAX {
            self.begin_at(now.saturating_add(ahead), settled);
        }
    }

    /// Notes that the run is over; a window that nothing else has ended ends here.
    pub(crate) fn end(&self, observer: &mut dyn Observer) {
        if matches!(self.stage, Stage::Measuring { .. }) {
            observer.on(&Event::WindowEnds);
        }
    }
}
