//! Progress of many hosts, as text and as samples for the live view.

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_measure::median;
use plumb_report::quantity::{duration, rate, throughput};
use plumb_report::tui::{LiveApplication, LivePhase, LiveSample, LiveTarget};
use plumb_report::verdict::{STRAGGLER_SHARE, named};
use plumb_text::printable;

use crate::controller::{Controller, HostNow, Phase};

/// Recent figures of each host, for the rates of the live view.
#[derive(Debug, Default)]
pub struct Rates {
    hosts: Vec<HostFigures>,
}

impl Rates {
    /// Updates the figures of the hosts and returns a sample for the live view; `expected` is the length of
    /// the load.
    pub fn sample(&mut self, controller: &Controller, now: Nanos, expected: Option<Nanos>) -> LiveSample {
        learn(controller, &mut self.hosts);
        sample(controller, &self.hosts, now, expected)
    }
}

/// Progress messages given so far.
#[derive(Debug, Default)]
pub struct News {
    /// Hosts whose loss was reported.
    told: Vec<bool>,
    /// Last summary.
    summary: String,
}

impl News {
    /// Returns messages about hosts lost since the last call.
    pub fn lost(&mut self, controller: &Controller) -> Vec<String> {
        self.told.resize(controller.hosts().len(), false);
        let lost = controller.hosts().zip(&mut self.told).filter_map(|(host, told)| {
            let is_lost = host.phase == Phase::Missing && host.has_task && !*told;
            let because = host.because.filter(|_| is_lost)?;
            *told = true;
            Some(format!("{}: {}", printable(host.name), printable(because)))
        });
        lost.collect()
    }

    /// Returns the number of hosts in each phase, unless unchanged since the last call.
    pub fn summary(&mut self, controller: &Controller) -> Option<String> {
        let now = summary(controller);
        if now == self.summary {
            return None;
        }
        self.summary.clone_from(&now);
        Some(now)
    }
}

/// Returns the number of hosts in each phase, as text.
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

/// Last figures of a host, and the rate between the last two, which arrive about once a second.
#[derive(Debug, Clone, Default)]
struct HostFigures {
    /// Measured time so far.
    length: Nanos,
    application: LiveApplication,
    /// Operations and bytes per second.
    rate: (f64, f64),
}

impl HostFigures {
    /// Updates the rate, if the figures are new.
    fn learn(&mut self, outcome: &LoadOutcome) {
        if outcome.length == self.length {
            return;
        }
        // Shorter figures belong to another load.
        let before = if outcome.length > self.length { std::mem::take(self) } else { Self::default() };
        let seconds = outcome.length.since(before.length).as_secs_f64();
        let application = application(outcome);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let operations = rate(application.operations, before.application.operations);
        let bytes = rate(application.bytes, before.application.bytes);
        *self = Self { length: outcome.length, application, rate: (operations, bytes) };
    }
}

fn learn(controller: &Controller, seen: &mut Vec<HostFigures>) {
    seen.resize(controller.hosts().len(), HostFigures::default());
    for (host, seen) in controller.hosts().zip(seen) {
        match host.measured() {
            Some(outcome) => seen.learn(outcome),
            None => *seen = HostFigures::default(),
        }
    }
}

/// Returns the sample for the live view.
fn sample(controller: &Controller, seen: &[HostFigures], now: Nanos, expected: Option<Nanos>) -> LiveSample {
    let started = controller.started_at().filter(|started| *started <= now);
    let missing = controller
        .hosts()
        .filter_map(|host| Some(format!("{}: {}", printable(host.name), printable(host.because?))));
    let with_task = || controller.hosts().zip(seen).filter(|(host, _)| host.has_task);
    let target = |(host, seen): (HostNow<'_>, &HostFigures)| LiveTarget {
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

/// Returns the total rates and the slowest hosts, which may not fit in the table.
fn together<'a>(hosts: impl Iterator<Item = (HostNow<'a>, &'a HostFigures)>) -> Option<String> {
    let measuring = hosts.filter(|(host, seen)| host.phase == Phase::Running && seen.rate.0 > 0.0);
    let mut rates: Vec<(f64, f64, &str)> =
        measuring.map(|(host, seen)| (seen.rate.0, seen.rate.1, host.name)).collect();
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let slowest = rates.first()?;
    let median = median(&rates.iter().map(|(operations, ..)| *operations).collect::<Vec<_>>())?;
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

/// Returns the hosts that ended first and last.
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
    let latency = moved
        .iter()
        .find(|direction| direction.operations() > 0)
        .and_then(|one| one.operation_latency().summary());
    LiveApplication {
        operations: moved.iter().map(|direction| direction.operations()).sum(),
        bytes: moved.iter().map(|direction| direction.bytes.0).sum(),
        flushes: outcome.flush.operations(),
        // Latencies since the start, as hosts send cumulative figures.
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
        let mut seen = HostFigures::default();
        for second in 1..=3 {
            outcome.length = Nanos::secs(second);
            (0..100 * second).for_each(|_| outcome.read.latency.record(Nanos::micros(5)));
            outcome.read.bytes += Bytes(8192 * 100 * second);
            (0..10).for_each(|_| seen.learn(&outcome));
            assert_eq!(seen.rate, (100.0 * second as f64, 819_200.0 * second as f64));
        }
        // The next load starts over.
        let mut next = LoadOutcome::empty();
        next.length = Nanos::secs(2);
        (0..10).for_each(|_| next.read.latency.record(Nanos::micros(5)));
        seen.learn(&next);
        assert_eq!(seen.rate.0, 5.0);
    }
}
