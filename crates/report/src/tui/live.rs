//! Live view of a load: `--tui` on a terminal.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_block::{Nanos, StorageSnapshot};
use plumb_load::{Event, LiveLatency, Observer, Phase, Progress, TargetNow};

use super::sample::{LiveApplication, LivePercentiles, LivePhase, LiveSample, LiveStorage, LiveTarget};
use super::terminal::LiveTerminal;
use super::view::LiveView;
use crate::streams;

/// Shows the activity of a load, and stops it on request.
#[derive(Debug)]
pub struct Live {
    /// Terminal of the live view; `None` after the run.
    terminal: Option<LiveTerminal>,
    view: LiveView,
    stop: Arc<AtomicBool>,
    phase: LivePhase,
    /// Length of the warm-up, the measurement and the cool-down, as far as known.
    expected: Option<Nanos>,
    /// Start of the phase.
    begun: Nanos,
    /// Duration of the earlier turns, and of the current one so far.
    passed: Nanos,
    last: Nanos,
    span: usize,
    /// Names of the spans.
    spans: Vec<String>,
    /// Last state of the targets of each span.
    seen: Vec<Vec<LiveTarget>>,
    /// Further facts to show.
    standing: Vec<String>,
    /// State of each target at the last sample and at the first.
    before: Vec<Before>,
    /// Notes to print after the terminal is restored.
    notes: Vec<String>,
}

/// Earlier state of a target.
#[derive(Debug)]
struct Before {
    latency: [LiveLatency; 2],
    storage: Option<LiveStorage>,
}

impl Live {
    /// Takes over the terminal if the view is requested and there is a terminal for it. `stop` is set when
    /// the user ends the load.
    pub fn if_wanted(is_wanted: bool, title: &str, stop: &Arc<AtomicBool>) -> Option<Self> {
        let opened = match std::io::stderr().is_terminal() {
            _ if !is_wanted => return None,
            true => LiveTerminal::open().map_err(|error| error.to_string()),
            false => Err("stderr is not a terminal".to_owned()),
        };
        let terminal = opened.map_err(|why| streams::say(&format!("plumb: no live view: {why}"))).ok()?;
        Some(Self {
            terminal: Some(terminal),
            view: LiveView::new(title, streams::style_of_stderr()),
            stop: Arc::clone(stop),
            phase: LivePhase::Preparing,
            expected: None,
            begun: Nanos::ZERO,
            passed: Nanos::ZERO,
            last: Nanos::ZERO,
            span: 0,
            spans: Vec::new(),
            seen: Vec::new(),
            standing: Vec::new(),
            before: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Shows a sample.
    pub fn feed(&mut self, sample: LiveSample) {
        self.view.feed(sample);
        self.draw();
    }

    fn target(&mut self, index: usize, now: TargetNow) -> LiveTarget {
        if self.before.len() <= index {
            let storage = now.storage.as_ref().map(totals);
            self.before.push(Before { latency: Default::default(), storage });
        }
        let before = &mut self.before[index];
        let latencies = [now.application.latency.clone(), now.application.flush_latency.clone()];
        let latency = percentiles(&latencies[0], &before.latency[0]);
        let sync = percentiles(&latencies[1], &before.latency[1]);
        before.latency = latencies;
        LiveTarget {
            application: LiveApplication {
                operations: now.application.operations(),
                bytes: (now.application.read_bytes + now.application.write_bytes).0,
                flushes: now.application.flushes,
                latency,
                sync,
            },
            storage: now.storage.as_ref().zip(before.storage).map(|(now, before)| since(totals(now), before)),
            name: now.name,
            taken_at: None,
            shares_devices: now.shares_devices,
        }
    }

    /// Begins another turn, whose totals start at zero.
    fn next_turn(&mut self) {
        self.passed += std::mem::take(&mut self.last);
        self.before.clear();
    }

    /// Shows a sample of targets whose totals started at zero.
    pub fn show(&mut self, elapsed: Nanos, targets: Vec<LiveTarget>) {
        self.feed(LiveSample {
            elapsed: elapsed.as_secs_f64(),
            expected: self.expected.map(Nanos::as_secs_f64),
            phase: self.phase,
            targets,
            remarks: self.standing.clone(),
        });
    }

    /// Draws the view, and checks whether the user wants to stop. A lost terminal ends the view, not the
    /// load.
    fn draw(&mut self) {
        let Some(terminal) = &mut self.terminal else { return };
        let drawn = terminal.draw(&self.view);
        let asks = terminal.asks_to_stop(Duration::ZERO);
        if drawn.is_ok() && matches!(asks, Ok(true)) {
            self.view.stopping();
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Observer for Live {
    fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::Scenario(scenario) => {
                let first_jobs = scenario.spans.iter().filter_map(|span| span.jobs.first());
                self.spans = first_jobs.map(|job| job.name.clone()).collect();
            }
            Event::Phase { span, phase, expected } => self.phase(*span, phase, *expected),
            Event::Bytes(_) => self.draw(),
            Event::Progress { progress, targets } => self.progress(progress, *targets),
            Event::Scheduled { lines, .. } => self.standing = lines.to_vec(),
            Event::Note(line) => self.notes.push((*line).to_owned()),
            Event::WantsLatency(answer) => answer.set(true),
            Event::Over => self.end(),
            _ => {}
        }
    }
}

impl Live {
    /// Begins a phase of a span; `expected` is its length if known.
    pub fn phase(&mut self, span: usize, phase: &Phase, expected: Option<Nanos>) {
        self.phase = match phase {
            Phase::LayingOut { .. } | Phase::Preconditioning | Phase::LoadingPageCache => {
                LivePhase::Preparing
            }
            Phase::WarmingUp => LivePhase::WarmUp,
            Phase::Measuring => LivePhase::Measuring,
            Phase::CoolingDown => LivePhase::CoolDown,
            Phase::Verifying => LivePhase::Verifying,
        };
        if span != self.span {
            self.span = span;
            self.next_turn();
        }
        self.begun = self.passed + self.last;
        self.expected = expected.map(|expected| self.begun.saturating_add(expected));
        self.draw();
    }

    fn progress(&mut self, progress: &Progress, targets: &dyn Fn() -> Vec<TargetNow>) {
        if progress.elapsed < self.last {
            self.next_turn();
        }
        self.last = progress.elapsed;
        let now =
            targets().into_iter().enumerate().map(|(index, target)| self.target(index, target)).collect();
        self.seen.resize(self.seen.len().max(self.span + 1), Vec::new());
        self.seen[self.span] = now;
        // With several spans the name of each target includes that of its span.
        let named = |(span, targets): (usize, &Vec<LiveTarget>)| {
            let name = self.spans.get(span).filter(|_| self.spans.len() > 1);
            let named = targets.iter().cloned().map(|target| match name {
                Some(name) => LiveTarget { name: format!("{name}: {}", target.name), ..target },
                None => target,
            });
            named.collect::<Vec<_>>()
        };
        let targets = self.seen.iter().enumerate().flat_map(named).collect();
        self.show(self.passed + progress.elapsed, targets);
    }

    /// Restores the terminal, and prints the notes.
    fn end(&mut self) {
        drop(self.terminal.take());
        self.notes.drain(..).for_each(|note| streams::say(&format!("plumb: {note}")));
    }
}

/// Returns the percentiles since `before`.
fn percentiles(now: &LiveLatency, before: &LiveLatency) -> LivePercentiles {
    let at = |percent| Some(now.percentile_since(before, percent)?.as_secs_f64());
    LivePercentiles { p50: at(50.0), p99: at(99.0), p999: at(99.9), max: at(100.0) }
}

/// Returns the sum over all devices.
fn totals(snapshot: &StorageSnapshot) -> LiveStorage {
    let mut sum = LiveStorage { flushes: Some(0), ..LiveStorage::default() };
    for device in &snapshot.devices {
        sum.reads += device.reads;
        sum.writes += device.writes;
        sum.bytes += (device.read_bytes + device.write_bytes).0;
        sum.flushes = sum.flushes.zip(device.flushes).map(|(sum, more)| sum + more);
    }
    sum
}

fn since(now: LiveStorage, before: LiveStorage) -> LiveStorage {
    LiveStorage {
        reads: now.reads.saturating_sub(before.reads),
        writes: now.writes.saturating_sub(before.writes),
        bytes: now.bytes.saturating_sub(before.bytes),
        flushes: now.flushes.zip(before.flushes).map(|(now, before)| now.saturating_sub(before)),
    }
}
