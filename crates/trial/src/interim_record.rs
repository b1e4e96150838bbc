//! Recording of a span that still runs, on a thread of its own: a run that is killed loses ten seconds at
//! most.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use plumb_block::{Clock as _, Nanos, RealClock};
use plumb_linux::flush_trace::RECORDER;
use plumb_load::SpanResult;

use crate::span_run::{FinishedSpan, Round, SpanRun, together};
use crate::target_series::TargetSeries;

/// How often it is recorded, in real time, whatever clock the run goes by.
const RECORDED_EVERY: Nanos = Nanos::secs(5);

/// Sender of interim measurements to the thread that records them.
pub struct InterimSender<T> {
    /// None where nothing is recorded.
    to: Option<SyncSender<T>>,
    /// Clock that began when the last was sent.
    sent: RealClock,
}

/// Calls `run`, and meanwhile `write` on a thread of its own with what `run` sends; without `is_recorded`
/// that is dropped. `write` may be slow: what comes meanwhile is left out. When it returns, all that was sent
/// is written.
pub fn run_recorded<T: Send, R>(
    is_recorded: bool,
    write: impl FnMut(T) + Send,
    run: impl FnOnce(InterimSender<T>) -> R,
) -> R {
    let (to, from) = sync_channel(1);
    let sender = InterimSender { to: is_recorded.then_some(to), sent: RealClock::start() };
    std::thread::scope(|scope| {
        let record = || from.into_iter().for_each(write);
        // Without a thread to spare nothing is recorded before the run is over.
        drop(std::thread::Builder::new().name(RECORDER.to_owned()).spawn_scoped(scope, record));
        run(sender)
    })
}

impl<T> InterimSender<T> {
    /// Returns true if it is time to record again; if so, the time until the next begins.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.to.is_some() && self.sent.now() >= RECORDED_EVERY;
        if is_due {
            self.sent = RealClock::start();
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
pub(crate) struct InterimRecord {
    pub(crate) sender: InterimSender<SpanRun>,
    /// The rounds before this one.
    rounds: Vec<Round>,
    /// Measurements of those rounds that count, and their series.
    results: Vec<SpanResult>,
    series: Vec<(Nanos, Vec<TargetSeries>)>,
}

impl InterimRecord {
    /// Creates an empty record.
    pub(crate) const fn new(sender: InterimSender<SpanRun>) -> Self {
        Self { sender, rounds: Vec::new(), results: Vec::new(), series: Vec::new() }
    }

    /// Notes that a round of the span is over; `results` and `series` are those of the rounds that count.
    pub(crate) fn round(
        &mut self,
        rounds: &[Round],
        results: &[SpanResult],
        series: &[(Nanos, Vec<TargetSeries>)],
    ) {
        (self.rounds, self.results) = (rounds.to_vec(), results.to_vec());
        self.series = series.to_vec();
    }

    /// Notes that the round that runs has measured this.
    pub(crate) fn send(&self, ran: FinishedSpan) {
        let results = self.results.iter().cloned().chain([ran.result]).collect();
        let series = [&self.series[..], &ran.series].concat();
        let ran = FinishedSpan { result: together(results), series, ..ran };
        self.sender.send(SpanRun::new(ran, self.rounds.clone(), None));
    }
}
