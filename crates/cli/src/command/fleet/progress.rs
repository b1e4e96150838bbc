//! Progress of a fleet while hosts work: lines on stderr, or the live view with a line for each host.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_fleet::Controller;
use plumb_fleet::controller::{HostNow, Phase};
use plumb_load::LoadOutcome;
use plumb_load::{Event, Observer as _};
use plumb_report::printable::printable;
use plumb_report::quantity::{duration, rate, throughput};
use plumb_report::tui::{LiveApplication, LivePhase, LiveSample, LiveTarget};
use plumb_report::verdict::{STRAGGLER_SHARE, named};

use crate::live::Live;
use crate::terminal;

/// Display of the progress of a fleet.
pub(super) struct Progress {
    live: Option<Live>,
    expected: Option<Nanos>,
    /// Last figures of each host, for the live view.
    seen: Vec<Seen>,
    /// Hosts whose loss was told.
    told: Vec<bool>,
    /// Last message about how far the hosts are.
    said: String,
    /// Further remarks, in the live view.
    remarks: Vec<String>,
}

impl Progress {
    /// Lines.
    pub(super) const fn lines() -> Self {
        Self {
            live: None,
            expected: None,
            seen: Vec::new(),
            told: Vec::new(),
            said: String::new(),
            remarks: Vec::new(),
        }
    }

    /// Creates the display for a load that takes `expected`: a live view if it is wanted and there is a
    /// terminal for it, which can `stop` it.
    pub(super) fn of_load(wants_view: bool, expected: Option<Nanos>, stop: &Arc<AtomicBool>) -> Self {
        Self { live: Live::if_wanted(wants_view, "plumb fleet load", stop), expected, ..Self::lines() }
    }

    /// Looks at the hosts.
    pub(super) fn look(&mut self, controller: &Controller, now: Nanos) {
        if let Some(live) = &mut self.live {
            learn(controller, &mut self.seen);
            let mut sample = sample(controller, &self.seen, now, self.expected);
            sample.remarks.extend(self.remarks.iter().map(|line| printable(line)));
            return live.feed(sample);
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
        if !std::io::stderr().is_terminal() {
            return;
        }
        let said = summary(controller);
        if said != self.said {
            terminal::say(&format!("plumb: {said}"));
            self.said = said;
        }
    }

    /// Says something at once; under a live view in its remarks, and again when that has ended.
    pub(super) fn say(&mut self, line: &str) {
        match &mut self.live {
            None => terminal::say(&format!("plumb: {line}")),
            Some(live) => {
                live.on(&Event::Note(line));
                self.remarks.push(line.to_owned());
            }
        }
    }

    /// Gives the terminal back.
    pub(super) fn end(self) {
        if let Some(mut live) = self.live {
            live.on(&Event::Over);
        }
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

/// Last figures that a host has sent. Hosts send figures once a second, so a rate is that between two of
/// them.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// How long it had measured.
    length: Nanos,
    application: LiveApplication,
    /// Operations and bytes per second.
    rate: (f64, f64),
}

impl Seen {
    /// Takes in figures, if they are others than the last.
    fn learn(&mut self, outcome: &LoadOutcome) {
        if outcome.length == self.length {
            return;
        }
        // Those of another load begin again.
        let before = if outcome.length > self.length { std::mem::take(self) } else { Self::default() };
        let seconds = outcome.length.since(before.length).as_secs_f64();
        let application = application(outcome);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let operations = rate(application.operations, before.application.operations);
        let bytes = rate(application.bytes, before.application.bytes);
        *self = Self { length: outcome.length, application, rate: (operations, bytes) };
    }
}

fn learn(controller: &Controller, seen: &mut Vec<Seen>) {
    seen.resize(controller.hosts().len(), Seen::default());
    for (host, seen) in controller.hosts().zip(seen) {
        match host.measured() {
            Some(outcome) => seen.learn(outcome),
            None => *seen = Seen::default(),
        }
    }
}

/// Builds the sample for the live view.
fn sample(controller: &Controller, seen: &[Seen], now: Nanos, expected: Option<Nanos>) -> LiveSample {
    let started = controller.started_at().filter(|started| *started <= now);
    let missing = controller
        .hosts()
        .filter_map(|host| Some(format!("{}: {}", printable(host.name), printable(host.because?))));
    let with_task = || controller.hosts().zip(seen).filter(|(host, _)| host.has_task);
    let target = |(host, seen): (HostNow<'_>, &Seen)| LiveTarget {
        name: printable(host.name),
        application: seen.application,
        taken_at: Some(seen.length.as_secs_f64()),
        ..LiveTarget::default()
    };
    LiveSample {
        elapsed: started.map_or(0.0, |started| now.since(started).as_secs_f64()),
        expected: expected.map(Nanos::as_secs_f64),
        phase: if started.is_some() { LivePhase::Measuring } else { LivePhase::Preparing },
        targets: with_task().map(target).collect(),
        remarks: together(with_task()).into_iter().chain(done(controller)).chain(missing).collect(),
    }
}

/// Describes what all hosts reach, and which of them hold the others up: the table may have no room for
/// these.
fn together<'a>(hosts: impl Iterator<Item = (HostNow<'a>, &'a Seen)>) -> Option<String> {
    let measuring = hosts.filter(|(host, seen)| host.phase == Phase::Running && seen.rate.0 > 0.0);
    let mut rates: Vec<(f64, f64, &str)> =
        measuring.map(|(host, seen)| (seen.rate.0, seen.rate.1, host.name)).collect();
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (slowest, median) = (rates.first()?, rates[rates.len() / 2].0);
    let stragglers = rates.iter().filter(|(rate, ..)| rates.len() > 2 && *rate < STRAGGLER_SHARE * median);
    let stragglers = named(stragglers.map(|(.., name)| *name));
    let told = if stragglers.is_empty() { String::new() } else { format!("; stragglers: {stragglers}") };
    Some(printable(&format!(
        "all: {}/s, {}; slowest {}: {}/s{told}",
        rate(rates.iter().map(|(operations, ..)| operations).sum()),
        throughput(rates.iter().map(|(_, bytes, _)| bytes).sum()),
        slowest.2,
        rate(slowest.0)
    )))
}

/// Names the hosts that were done first and last.
fn done(controller: &Controller) -> Option<String> {
    let mut done: Vec<(Nanos, &str)> = controller
        .hosts()
        .filter(|host| host.phase == Phase::Done)
        .filter_map(|host| Some((host.result?.lasted?, host.name)))
        .collect();
    done.sort_unstable();
    let ((first, one), (last, other)) = (done.first()?, done.last()?);
    let seconds = |time: &Nanos| duration(time.as_secs_f64());
    let (first, last) = (seconds(first), seconds(last));
    Some(printable(&format!("{} done: first {one} after {first}, last {other} after {last}", done.len())))
}

fn application(outcome: &LoadOutcome) -> LiveApplication {
    let moved = [&outcome.read, &outcome.write, &outcome.trim];
    let latency =
        moved.iter().find(|direction| direction.operations() > 0).and_then(|one| one.latency.summary());
    LiveApplication {
        operations: moved.iter().map(|direction| direction.operations()).sum(),
        bytes: moved.iter().map(|direction| direction.bytes.0).sum(),
        flushes: outcome.flush.operations(),
        // Those since the start: hosts send what they have measured until now.
        latency: latency.map(Into::into).unwrap_or_default(),
        sync: outcome.flush.latency.summary().map(Into::into).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::Bytes;

    use super::*;

    #[test]
    fn a_rate_is_that_between_two_figures_however_often_it_is_looked_at() {
        let mut outcome = LoadOutcome::empty();
        let mut seen = Seen::default();
        for second in 1..=3 {
            outcome.length = Nanos::secs(second);
            (0..100 * second).for_each(|_| outcome.read.latency.record(Nanos::micros(5)));
            outcome.read.bytes += Bytes(8192 * 100 * second);
            (0..10).for_each(|_| seen.learn(&outcome));
            assert_eq!(seen.rate, (100.0 * second as f64, 819_200.0 * second as f64));
        }
        // The next load begins again.
        let mut next = LoadOutcome::empty();
        next.length = Nanos::secs(2);
        (0..10).for_each(|_| next.read.latency.record(Nanos::micros(5)));
        seen.learn(&next);
        assert_eq!(seen.rate.0, 5.0);
    }
}
