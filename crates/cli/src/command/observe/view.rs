//! The live view of an observation: `--tui` on a terminal.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_measure::Latency;
use plumb_observe::Look;
use plumb_report::document::observation::ObservedDevice;
use plumb_report::observation_standing;
use plumb_report::tui::{LiveApplication, LivePercentiles, LiveTarget};
use plumb_trial::{Phase, Watcher as _};

use super::ObserveArguments;
use crate::live::Live;
use crate::terminal;

/// How often it is drawn anew.
const DRAW_EVERY: Nanos = Nanos::millis(500);

/// The view.
pub(super) struct View {
    live: Live,
    next: Nanos,
}

impl View {
    /// Takes over the terminal, if a view is wanted and there is one.
    pub(super) fn open(arguments: &ObserveArguments, stop: &Arc<AtomicBool>) -> Option<Self> {
        if !arguments.tui {
            return None;
        }
        if !io::stderr().is_terminal() {
            terminal::say("plumb: no live view: stderr is not a terminal");
            return None;
        }
        match Live::open("plumb observe", stop) {
            Ok(mut live) => {
                live.phase(0, &Phase::Measuring, Some(arguments.duration));
                Some(Self { live, next: Nanos::ZERO })
            }
            Err(error) => {
                terminal::say(&format!("plumb: no live view: {error}"));
                None
            }
        }
    }

    /// Shows what was seen until now, if it is time.
    pub(super) fn show(&mut self, elapsed: Nanos, look: &mut Look<'_>) {
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + DRAW_EVERY;
        let (devices, syncs) = look();
        self.live.standing(&observation_standing(&devices, &syncs));
        self.live.show(elapsed, devices.into_iter().map(target).collect());
    }
}

/// A device, with the times of the direction that has most requests: summaries cannot be put together.
fn target(device: ObservedDevice) -> LiveTarget {
    let directions = device.directions();
    let busiest = directions.iter().max_by_key(|(_, of)| of.ios).and_then(|(_, of)| of.latency);
    LiveTarget {
        application: LiveApplication {
            operations: device.ios(),
            bytes: directions.iter().map(|(_, of)| of.bytes).sum(),
            flushes: device.flushes.unwrap_or(0),
            latency: percentiles(busiest),
            sync: percentiles(device.flush_latency),
        },
        name: device.name,
        ..LiveTarget::default()
    }
}

fn percentiles(latency: Option<Latency>) -> LivePercentiles {
    let at = |of: fn(&Latency) -> f64| latency.as_ref().map(of);
    LivePercentiles {
        p50: at(|of| of.p50),
        p99: at(|of| of.p99),
        p999: at(|of| of.p999),
        max: at(|of| of.max),
    }
}
