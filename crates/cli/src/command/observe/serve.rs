//! `plumb observe --serve`: a continuous observation, served as Prometheus metrics and as a JSON document of
//! the slowest events.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use plumb_block::{Clock as _, FailureKind, Nanos, unix_time};
use plumb_fleet::MonotonicClock;
use plumb_observe::{ClockReading, Exposures, LiveSurroundings, Meter, SoFar, Target, observe_live};
use plumb_path::exposure::ObservedExposure;
use plumb_report::document::live::SlowEvent;
use plumb_report::document::observation::WritebackError;
use plumb_report::export::prometheus;
use plumb_report::{lost_line, slow_line};
use plumb_serve::http::{HttpPage, metrics_url, serve};
use plumb_serve::nbd::server::ListenAddress;
use plumb_targets::Servers;

use crate::exit::{Exit, Refusal, usage};
use crate::{stop, terminal};

/// Media type of the Prometheus text format (prometheus.io, "Exposition formats").
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Width of the time before a line, with the space after it.
const TIME_COLUMNS: usize = 14;
/// Body of the index page `/`.
const INDEX: &str = "plumb observe\n\n/metrics  metrics of Prometheus\n/slow     the slowest events of the last ten minutes (JSON)\n";

/// Data beside that of the meter.
#[derive(Debug, Default)]
struct Beside {
    so_far: SoFar,
    exposures: Vec<ObservedExposure>,
}

/// Parameters of a served observation.
pub(super) struct ServedObservation<'a> {
    /// Devices, and processes whose syncs are observed.
    pub(super) target: &'a Target,
    /// True if sync calls are observed.
    pub(super) syncs: bool,
    /// Duration from which an event is reported on stderr.
    pub(super) slow: Option<Nanos>,
    /// Measurement of the data that a power cut would lose.
    pub(super) exposures: Exposures,
}

/// Observes and serves until a signal.
pub(super) fn run(address: &ListenAddress, served: ServedObservation<'_>) -> anyhow::Result<Exit> {
    let ServedObservation { target, syncs, slow, mut exposures } = served;
    let listener = address.listen().map_err(usage)?;
    let stop = stop::on_signals()?;
    let (meter, beside) = (Mutex::new(Meter::new(&target.devices, slow)), Mutex::new(Beside::default()));
    if listener.is_beyond_this_machine() {
        terminal::say(
            "plumb: other machines can reach this address, and read the names of processes, cgroups and \
             files there",
        );
    }
    let mut is_begun = false;
    let mut progress = |elapsed: Nanos, so_far: SoFar| {
        if !is_begun {
            is_begun = true;
            let names: Vec<&str> = target.devices.iter().map(|device| device.name.as_str()).collect();
            let place = metrics_url(address, &listener);
            terminal::say(&format!(
                "plumb: observing {}; metrics at {place}; Ctrl-C ends it",
                names.join(", ")
            ));
        }
        exposures.look(elapsed, &Servers);
        let mut beside = locked(&beside);
        beside.so_far = so_far;
        beside.exposures = exposures.observed();
        drop(beside);
        let events = locked(&meter).take_slow(clocks());
        events.iter().for_each(|event| terminal::say(&dated_slow_line(event)));
    };
    let mut lost = |error: &WritebackError| terminal::say(&dated_lost_line(error));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &stop, &|path| page(path, &meter, &beside)));
        let around = LiveSurroundings {
            now: &|| MonotonicClock.now(),
            stop: &stop,
            progress: &mut progress,
            lost: &mut lost,
        };
        let observed = observe_live(target, syncs, &meter, around);
        stop.store(true, Ordering::Release);
        let served = server.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread panicked")));
        observed.map_err(|error| Refusal::because(FailureKind::NotMeasured, error))?;
        served.context("cannot serve the metrics")
    })?;
    Ok(Exit::Done)
}

/// Returns a slow event with the time of its end, in one line; on a terminal that is too narrow, in two.
pub(super) fn dated_slow_line(event: &SlowEvent) -> String {
    let style = terminal::style_of_stderr();
    let columns = style.is_terminal.then(|| style.width.saturating_sub(TIME_COLUMNS));
    dated(event.ended_at, &slow_line(event, columns))
}

/// Returns a lost write with the present time, in one line.
pub(super) fn dated_lost_line(error: &WritebackError) -> String {
    dated(clocks().unix_seconds, &lost_line(error))
}

fn dated(unix_seconds: f64, line: &str) -> String {
    let time = jiff::Timestamp::from_microsecond((unix_seconds * 1e6) as i64).unwrap_or_default();
    format!("{} {line}", time.strftime("%H:%M:%S%.3fZ"))
}

/// Returns the present readings of the clocks.
pub(super) fn clocks() -> ClockReading {
    ClockReading { monotonic: MonotonicClock.now(), unix_seconds: unix_time().as_secs_f64() }
}

fn page(path: &str, meter: &Mutex<Meter>, beside: &Mutex<Beside>) -> Option<HttpPage> {
    match path {
        "/metrics" => {
            let beside = locked(beside);
            let mut seen = locked(meter).observation(beside.so_far);
            seen.exposures.clone_from(&beside.exposures);
            drop(beside);
            seen.cpu_seconds = cpu_seconds();
            Some(HttpPage { content_type: METRICS, body: prometheus::live_observation(&seen) })
        }
        "/slow" => {
            let slowest = locked(meter).slowest(clocks());
            let body = serde_json::to_string(&slowest).ok()?;
            Some(HttpPage { content_type: "application/json", body: body + "\n" })
        }
        "/" => Some(HttpPage { content_type: "text/plain; charset=utf-8", body: INDEX.to_owned() }),
        _ => None,
    }
}

/// Locks shared data even if a thread panicked while holding it: the counts remain valid.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the CPU time of this process in seconds.
fn cpu_seconds() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
