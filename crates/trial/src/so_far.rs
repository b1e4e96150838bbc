//! Interim measurements on their way to the recording while the run goes on: a run that is killed loses ten
//! seconds at most.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use plumb_block::Nanos;
use plumb_linux::flush_trace::RECORDER;
use plumb_load::SpanResult;

use crate::looks::Looks;
use crate::span_run::{FinishedSpan, Round, SpanRun, together};

/// How often it is recorded, in real time, whatever clock the run goes by.
const RECORDED_EVERY: Duration = Duration::from_secs(5);

/// The end that is given to what runs.
pub struct Outlet<T> {
    /// None where nothing is recorded.
    to: Option<SyncSender<T>>,
    sent: Instant,
}

/// Calls `run`, and meanwhile `write` on a thread of its own with what `run` sends; not if nothing
/// `is_recorded`. `write` may be slow: what comes meanwhile is left out. When it returns, all that was sent
/// is written.
pub fn recorded<T: Send, R>(
    is_recorded: bool,
    write: impl FnMut(T) + Send,
    run: impl FnOnce(Outlet<T>) -> R,
) -> R {
    let (to, from) = sync_channel(1);
    let outlet = Outlet { to: is_recorded.then_some(to), sent: Instant::now() };
    std::thread::scope(|scope| {
        let record = || from.into_iter().for_each(write);
        // Without a thread to spare nothing is recorded before the run is over.
        drop(std::thread::Builder::new().name(RECORDER.to_owned()).spawn_scoped(scope, record));
        run(outlet)
    })
}

impl<T> Outlet<T> {
    /// Returns true if it is time to record again; if so, the time until the next begins.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.to.is_some() && self.sent.elapsed() >= RECORDED_EVERY;
        if is_due {
            self.sent = Instant::now();
        }
        is_due
    }

    /// Waits for nobody: left out if the one before is still being written.
    pub(crate) fn send(&self, measured: T) {
        drop(self.offer(measured));
    }

    /// Waits for nobody: comes back if the one before is still being written.
    pub fn offer(&self, measured: T) -> Option<T> {
        match self.to.as_ref()?.try_send(measured) {
            Err(TrySendError::Full(measured)) => Some(measured),
            Ok(()) | Err(TrySendError::Disconnected(_)) => None,
        }
    }
}

/// Measurements of a span until now.
pub(crate) struct SoFar {
    pub(crate) outlet: Outlet<SpanRun>,
    /// The rounds before this one.
    rounds: Vec<Round>,
    /// Measurements of those rounds that count, and what was seen of them over time.
    results: Vec<SpanResult>,
    looks: Vec<(Nanos, Vec<Looks>)>,
}

impl SoFar {
    /// Creates an empty record.
    pub(crate) const fn new(outlet: Outlet<SpanRun>) -> Self {
        Self { outlet, rounds: Vec::new(), results: Vec::new(), looks: Vec::new() }
    }

    /// Notes that a round of the span is over; `results` and `looks` are those of the rounds that count.
    pub(crate) fn round(&mut self, rounds: &[Round], results: &[SpanResult], looks: &[(Nanos, Vec<Looks>)]) {
        (self.rounds, self.results) = (rounds.to_vec(), results.to_vec());
        self.looks = looks.to_vec();
    }

    /// Notes that the round that runs has measured this.
    pub(crate) fn send(&self, ran: FinishedSpan) {
        let results = self.results.iter().cloned().chain([ran.result]).collect();
        let looks = [&self.looks[..], &ran.looks].concat();
        let ran = FinishedSpan { result: together(results), looks, ..ran };
        self.outlet.send(SpanRun::new(ran, self.rounds.clone(), None));
    }
}
