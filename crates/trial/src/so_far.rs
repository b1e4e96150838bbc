//! What a span has measured until now, on its way to the recording while it runs: a run that is killed loses ten seconds
//! at most.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use plumb_block::Nanos;
use plumb_load::SpanResult;

use crate::looks::Looks;
use crate::rounds::{Round, SpanRun, together};
use crate::span::Ran;

/// How often it is recorded, in real time, whatever clock the run goes by.
const RECORDED_EVERY: Duration = Duration::from_secs(5);

/// The end that is given to a span.
pub(crate) struct SoFar {
    /// None where nothing is recorded.
    to: Option<SyncSender<SpanRun>>,
    sent: Instant,
    /// The rounds before this one.
    rounds: Vec<Round>,
    /// What those of them measured that count, and what was seen of them over time.
    results: Vec<SpanResult>,
    looks: Vec<(Nanos, Vec<Looks>)>,
}

impl SoFar {
    /// Both ends, for a run that is recorded or not. Who reads may be slow: what comes meanwhile is left out.
    pub(crate) fn channel(is_recorded: bool) -> (Self, Receiver<SpanRun>) {
        let (to, from) = sync_channel(1);
        let to = is_recorded.then_some(to);
        (Self { to, sent: Instant::now(), rounds: Vec::new(), results: Vec::new(), looks: Vec::new() }, from)
    }

    /// Whether it is time to record again; if so, the time until the next begins.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.to.is_some() && self.sent.elapsed() >= RECORDED_EVERY;
        if is_due {
            self.sent = Instant::now();
        }
        is_due
    }

    /// A round of the span is over; `results` and `looks` are those of the rounds that count.
    pub(crate) fn round(&mut self, rounds: &[Round], results: &[SpanResult], looks: &[(Nanos, Vec<Looks>)]) {
        (self.rounds, self.results) = (rounds.to_vec(), results.to_vec());
        self.looks = looks.to_vec();
    }

    /// The round that runs has measured this. Waits for nobody.
    pub(crate) fn send(&self, ran: Ran) {
        let results = self.results.iter().cloned().chain([ran.result]).collect();
        let looks = [&self.looks[..], &ran.looks].concat();
        let ran = Ran { result: together(results), looks, ..ran };
        if let Some(to) = &self.to {
            // Fails if the one before is still being written.
            drop(to.try_send(SpanRun { ran, rounds: self.rounds.clone(), depth_found: None }));
        }
    }
}
