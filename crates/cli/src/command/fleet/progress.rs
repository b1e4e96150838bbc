//! What is said while hosts work: lines on stderr, or the live view with a line for each host.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_block::Nanos;
use plumb_fleet::Controller;
use plumb_fleet::controller::{HostNow, Phase};
use plumb_load::LoadOutcome;
use plumb_report::printable::printable;
use plumb_report::tui::{
    LiveApplication, LivePercentiles, LivePhase, LiveSample, LiveTarget, LiveTerminal, LiveView,
};

use crate::terminal;

/// Who watches.
pub(super) struct Progress {
    live: Option<(LiveTerminal, LiveView)>,
    expected: Option<Nanos>,
    /// Hosts whose loss was told.
    told: Vec<bool>,
    /// What was said last of how far the hosts are.
    said: String,
}

impl Progress {
    /// Lines.
    pub(super) const fn lines() -> Self {
        Self { live: None, expected: None, told: Vec::new(), said: String::new() }
    }

    /// Of a load that takes `expected`: a live view if it is wanted and there is a terminal for it.
    pub(super) fn of_load(wants_view: bool, expected: Option<Nanos>) -> Self {
        let mut progress = Self { expected, ..Self::lines() };
        if wants_view && std::io::stderr().is_terminal() {
            match LiveTerminal::open() {
                Ok(live) => {
                    progress.live =
                        Some((live, LiveView::new("plumb fleet load", terminal::style_of_stderr())))
                }
                Err(error) => terminal::say(&format!("plumb: no live view: {error}")),
            }
        } else if wants_view {
            terminal::say("plumb: no live view: stderr is not a terminal");
        }
        progress
    }

    /// Looks at the hosts.
    pub(super) fn look(&mut self, controller: &Controller, now: Nanos, stop: &Arc<AtomicBool>) {
        if let Some((live, view)) = &mut self.live {
            view.feed(sample(controller, now, self.expected));
            let drawn = live.draw(view);
            if drawn.is_ok() && matches!(live.asks_to_stop(Duration::ZERO), Ok(true)) {
                view.stopping();
                stop.store(true, Ordering::Relaxed);
            }
            return;
        }
        self.told.resize(controller.hosts().len(), false);
        for (host, told) in controller.hosts().zip(&mut self.told) {
            if let Some(because) =
                host.because.filter(|_| host.phase == Phase::Missing && host.has_task && !*told)
            {
                *told = true;
                terminal::say(&format!("plumb: {}: {}", printable(host.name), printable(because)));
            }
        }
        let said = summary(controller);
        if std::io::stderr().is_terminal() && said != self.said {
            terminal::say(&format!("plumb: {said}"));
            self.said = said;
        }
    }

    /// Gives the terminal back.
    pub(super) fn end(self) {
        drop(self.live);
    }
}

/// How far the hosts are, in words.
fn summary(controller: &Controller) -> String {
    let count = |phase: Phase| controller.hosts().filter(|host| host.has_task && host.phase == phase).count();
    let phases = [
        (Phase::Connecting, "connecting"),
        (Phase::Preparing, "preparing"),
        (Phase::Running, "running"),
        (Phase::Done, "done"),
        (Phase::Missing, "missing"),
    ];
    let parts = phases.map(|(phase, words)| (count(phase), words));
    let parts =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    format!("hosts: {}", parts.collect::<Vec<_>>().join(", "))
}

/// What the live view is fed with.
fn sample(controller: &Controller, now: Nanos, expected: Option<Nanos>) -> LiveSample {
    let started = controller.started_at().filter(|started| *started <= now);
    let missing = controller
        .hosts()
        .filter_map(|host| Some(format!("{}: {}", printable(host.name), printable(host.because?))));
    LiveSample {
        elapsed: started.map_or(0.0, |started| now.since(started).as_secs_f64()),
        expected: expected.map(Nanos::as_secs_f64),
        phase: if started.is_some() { LivePhase::Measuring } else { LivePhase::Preparing },
        targets: controller.hosts().filter(|host| host.has_task).map(|host| target(&host)).collect(),
        remarks: missing.collect(),
    }
}

fn target(host: &HostNow<'_>) -> LiveTarget {
    let outcome = host.result.and_then(|result| result.outcome.as_ref()).or(host.figures);
    let application = outcome.map(|outcome: &LoadOutcome| {
        let moved = [&outcome.read, &outcome.write, &outcome.trim];
        let latency =
            moved.iter().find(|direction| direction.operations() > 0).and_then(|one| one.latency.summary());
        LiveApplication {
            operations: moved.iter().map(|direction| direction.operations()).sum(),
            bytes: moved.iter().map(|direction| direction.bytes.0).sum(),
            flushes: outcome.flush.operations(),
            latency: percentiles(latency),
            sync: percentiles(outcome.flush.latency.summary()),
        }
    });
    LiveTarget {
        name: printable(host.name),
        application: application.unwrap_or_default(),
        ..LiveTarget::default()
    }
}

/// Those since the start: hosts send what they have measured until now.
fn percentiles(latency: Option<plumb_measure::Latency>) -> LivePercentiles {
    LivePercentiles {
        p50: latency.map(|of| of.p50),
        p99: latency.map(|of| of.p99),
        p999: latency.map(|of| of.p999),
        max: latency.map(|of| of.max),
    }
}
