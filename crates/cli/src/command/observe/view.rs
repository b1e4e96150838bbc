//! Live view of an observation: `--tui`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_load::{Event, Observer as _, Phase};
use plumb_observe::Look;
use plumb_report::observation_standing;
use plumb_report::tui::{Live, LiveTarget};

/// Interval between two updates.
const DRAW_EVERY: Nanos = Nanos::millis(500);

pub(super) struct View {
    live: Live,
    next: Nanos,
}

impl View {
    /// Opens the view, if one is wanted and there is a terminal.
    pub(super) fn open(is_wanted: bool, duration: Nanos, stop: &Arc<AtomicBool>) -> Option<Self> {
        let mut live = Live::if_wanted(is_wanted, "plumb observe", stop)?;
        live.phase(0, &Phase::Measuring, Some(duration));
        Some(Self { live, next: Nanos::ZERO })
    }

    /// Shows the observation until now, if an update is due.
    pub(super) fn show(&mut self, elapsed: Nanos, look: &mut Look<'_>) {
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + DRAW_EVERY;
        let (devices, syncs) = look();
        let lines = observation_standing(&devices, &syncs);
        self.live.on(&Event::Scheduled { lines: &lines, done: None });
        self.live.show(elapsed, devices.into_iter().map(LiveTarget::from).collect());
    }
}
