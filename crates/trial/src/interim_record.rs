//! Recording of a running span, on a separate thread, so that a killed run loses ten seconds at most.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use plumb_block::{Clock as _, Nanos, RealClock};
use plumb_linux::flush_trace::RECORDER;
use plumb_load::SpanResult;

use crate::span_run::{FinishedSpan, Round, SpanRun, together};
use crate::target_series::TargetSeries;

/// Interval of the recordings, in real time on any clock of the run.
const RECORDED_EVERY: Nanos = Nanos::secs(5);

/// Sender of interim measurements to the thread that records them.
pub struct InterimSender<T> {
    /// Channel to the recorder; `None` if nothing is recorded.
    to: Option<SyncSender<T>>,
    /// Clock started at the last recording.
    sent: RealClock,
}

/// Calls `run`, and meanwhile calls `write` on a separate thread with everything that `run` sends; without
/// `is_recorded` that is dropped. While `write` is busy, further data is left out. On return everything
/// accepted has been written.
pub fn run_recorded<T: Send, R>(
    is_recorded: bool,
    write: impl FnMut(T) + Send,
    run: impl FnOnce(InterimSender<T>) -> R,
) -> R {
    let (to, from) = sync_channel(1);
    let sender = InterimSender { to: is_recorded.then_some(to), sent: RealClock::start() };
    std::thread::scope(|scope| {
        let record = || from.into_iter().for_each(write);
        // If no thread can be created, nothing is recorded before the end of the run.
        drop(std::thread::Builder::new().name(RECORDER.to_owned()).spawn_scoped(scope, record));
        run(sender)
    })
}

impl<T> InterimSender<T> {
    /// Returns true if the next recording is due, and begins the next interval then.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.to.is_some() && self.sent.now() >= RECORDED_EVERY;
        if is_due {
            self.sent = RealClock::start();
        }
        is_due
    }

    /// Sends without waiting. The data is dropped if the previous one is still being written.
    pub(crate) fn send(&self, measured: T) {
        drop(self.offer(measured));
    }

    /// Sends without waiting. Returns the data if the previous one is still being written.
    pub fn offer(&self, measured: T) -> Option<T> {
        match self.to.as_ref()?.try_send(measured) {
            Err(TrySendError::Full(measured)) => Some(measured),
            Ok(()) | Err(TrySendError::Disconnected(_)) => None,
        }
    }
}

/// Measurements of a span so far.
pub(crate) struct InterimRecord {
    pub(crate) sender: InterimSender<SpanRun>,
    /// Earlier rounds.
    rounds: Vec<Round>,
    /// Measurements of the rounds that count, and their series.
    results: Vec<SpanResult>,
    series: Vec<(Nanos, Vec<TargetSeries>)>,
}

impl InterimRecord {
    /// Creates an empty record.
    pub(crate) const fn new(sender: InterimSender<SpanRun>) -> Self {
        Self { sender, rounds: Vec::new(), results: Vec::new(), series: Vec::new() }
    }

    /// Adds a finished round of the span; `results` and `series` are those of the rounds that count.
    pub(crate) fn round(
        &mut self,
        rounds: &[Round],
        results: &[SpanResult],
        series: &[(Nanos, Vec<TargetSeries>)],
    ) {
        (self.rounds, self.results) = (rounds.to_vec(), results.to_vec());
        self.series = series.to_vec();
    }

    /// Sends the measurements of the running round.
    pub(crate) fn send(&self, ran: FinishedSpan) {
        let results = self.results.iter().cloned().chain([ran.result]).collect();
        let series = [&self.series[..], &ran.series].concat();
        let ran = FinishedSpan { result: together(results), series, ..ran };
        self.sender.send(SpanRun::new(ran, self.rounds.clone(), None));
    }
}
