//! The writer: issues the writes of a plan, as many at once as it says, and tells the witness what was answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_block::{
    Bytes, Clock as _, Completion, Device, Nanos, Pattern, Payload, Pool, PoolShape, Queue, QueueOptions,
    Request, Tag, Time, Wait, wait_any,
};

use super::plan::WRITES_MAX;
use super::{Batch, Event, Plan, Witness, WitnessError};

/// The tag of flushes; writes have their number.
const FLUSH: Tag = Tag(u64::MAX);
/// How long to wait for the device before the witness is looked at again.
const LOOK_EVERY: Nanos = Nanos::millis(1);
/// How long to wait for the witness before it is looked whether to stop.
const STOP_EVERY: Duration = Duration::from_millis(100);

/// When to end without a cut.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until {
    /// After so many writes, the filling included.
    pub writes: Option<u64>,
    /// After so long.
    pub time: Option<Nanos>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub because: String,
    /// Whether the device answered something else than "done": in a cut, or before one.
    pub device_failed: bool,
    /// Writes that were answered.
    pub writes: u64,
    /// Flushes that were answered.
    pub flushes: u64,
}

struct Writer<'a> {
    plan: &'a Plan,
    queue: Box<dyn Queue>,
    time: &'a Time,
    began: Nanos,
    /// The next write to be issued.
    next: u64,
    /// No write from this number on is issued.
    limit: u64,
    /// Writes and flushes in flight.
    in_flight: u64,
    /// How many writes the flush in flight covers.
    flushing: Option<u64>,
    /// The writes below this are followed by a flush that was submitted, if they are to be.
    flushed_before: u64,
    written: u64,
    flushes: u64,
    /// What the witness has not been sent.
    events: Vec<Event>,
    /// Writes below this may be issued.
    lease: u64,
    /// The batch that was sent last, and its lease while it is not confirmed.
    batch: u64,
    unconfirmed: Option<u64>,
    ended: Option<(String, bool)>,
}

/// Writes until the device answers no more, `until` says so, or `stop` becomes true; then tells the witness why it ended. A device
/// that fails is no error here: that is what a cut looks like.
///
/// # Errors
/// If the plan does not fit the device, there is no queue, or no witness.
pub fn write(
    plan: &Plan,
    device: &dyn Device,
    time: &Time,
    witness: &mut dyn Witness,
    until: Until,
    stop: &AtomicBool,
) -> Result<Ended, WitnessError> {
    let info = device.info();
    plan.check(&info)?;
    let buffer = Bytes(plan.logical_block.0 * plan.fill_blocks().max(plan.write_blocks));
    let alignment = Bytes(info.dma_alignment.0.max(4096));
    let pool = Pool::new(PoolShape { buffer, count: plan.depth + 1, alignment })?;
    let queue = device.open_queue(QueueOptions { depth: plan.depth + 1, pool })?;
    let mut writer = Writer {
        plan,
        queue,
        time,
        began: time.now(),
        next: 0,
        limit: until.writes.unwrap_or(WRITES_MAX).min(WRITES_MAX),
        in_flight: 0,
        flushing: None,
        flushed_before: 0,
        written: 0,
        flushes: 0,
        events: Vec::new(),
        lease: 0,
        batch: 0,
        unconfirmed: None,
        ended: None,
    };
    writer.run(witness, until, stop)?;
    let (because, device_failed) = writer.ended.take().unwrap_or_default();
    Ok(Ended { because, device_failed, writes: writer.written, flushes: writer.flushes })
}

impl Writer<'_> {
    fn run(
        &mut self,
        witness: &mut dyn Witness,
        until: Until,
        stop: &AtomicBool,
    ) -> Result<(), WitnessError> {
        let mut completions = Vec::new();
        loop {
            if let Err(error) = self.queue.poll(Wait::NONE, &mut completions) {
                // Whatever is in flight stays unanswered.
                self.end(error.to_string(), true);
                self.in_flight = 0;
            }
            completions.drain(..).for_each(|completion| self.completed(&completion));
            self.look_at_end(until, stop);
            if self.ended.is_some() && self.in_flight == 0 {
                return self.last_words(witness, stop);
            }
            self.exchange(witness, Duration::ZERO, None)?;
            while self.ended.is_none() && self.issue() {}
            if self.in_flight == 0 {
                self.exchange(witness, STOP_EVERY, None)?;
            } else if !self.wait()? {
                self.end("the device will never answer".to_owned(), true);
                self.in_flight = 0;
            }
        }
    }

    fn look_at_end(&mut self, until: Until, stop: &AtomicBool) {
        if stop.load(Ordering::Acquire) {
            self.end("it was told to stop".to_owned(), false);
        }
        let is_over = until.time.is_some_and(|time| self.elapsed() >= time);
        if is_over || self.next >= self.limit {
            self.end("it had written what it was to write".to_owned(), false);
        }
    }

    fn elapsed(&self) -> Nanos {
        self.time.now().since(self.began)
    }

    fn end(&mut self, because: String, device_failed: bool) {
        self.ended.get_or_insert((because, device_failed));
    }

    fn completed(&mut self, completion: &Completion) {
        self.in_flight -= 1;
        let covers = if completion.tag == FLUSH { self.flushing.take() } else { None };
        if !completion.outcome.is_done() {
            let what = covers.map_or_else(|| format!("write {}", completion.tag.0), |_| "a flush".to_owned());
            return self.end(format!("{what} ended as {:?}", completion.outcome), true);
        }
        let (next, at) = (self.next, completion.completed_at.since(self.began));
        self.events.push(match covers {
            Some(covers) => {
                self.flushes += 1;
                Event::Flushed { covers, next, at }
            }
            None => {
                self.written += 1;
                Event::Written { write: completion.tag.0, next, at }
            }
        });
    }

    /// Issues the next flush or write, if that is possible now.
    fn issue(&mut self) -> bool {
        if self.flushed_before < self.next && self.plan.flush_before(self.next) {
            // The filling is complete before anything else is written.
            let must_be_alone = self.next == self.plan.fills();
            if self.flushing.is_some() || (must_be_alone && self.in_flight > 0) {
                return false;
            }
            if self.queue.submit(Request::flush(FLUSH)).is_err() {
                return false;
            }
            self.flushing = Some(self.written);
            self.flushed_before = self.next;
            self.in_flight += 1;
            return true;
        }
        let is_filling = self.flushing.is_some() && self.next == self.plan.fills();
        let writes_in_flight = self.in_flight - u64::from(self.flushing.is_some());
        if is_filling
            || self.next >= self.lease.min(self.limit)
            || writes_in_flight >= u64::from(self.plan.depth)
        {
            return false;
        }
        let (range, fua) = self.plan.write(self.next);
        let pattern = Pattern { seed: self.plan.seed, lba: range.lba, generation: self.next };
        let (tag, payload) = (Tag(self.next), Payload::Pattern(pattern));
        let request =
            if fua { Request::write_fua(tag, range, payload) } else { Request::write(tag, range, payload) };
        if self.queue.submit(request).is_err() {
            return false;
        }
        self.next += 1;
        self.in_flight += 1;
        true
    }

    fn wait(&mut self) -> Result<bool, WitnessError> {
        // Submitted requests are handed over by a poll.
        let mut completions = Vec::new();
        if self.queue.poll(Wait::NONE, &mut completions).is_ok_and(|count| count > 0) {
            completions.drain(..).for_each(|completion| self.completed(&completion));
            return Ok(true);
        }
        let until = self.time.now().saturating_add(LOOK_EVERY);
        Ok(wait_any([&*self.queue], Some(until), &mut &*self.time)?)
    }

    /// Takes what the witness has confirmed, waiting for it at most so long, and sends what is new.
    fn exchange(
        &mut self,
        witness: &mut dyn Witness,
        wait: Duration,
        ended: Option<&str>,
    ) -> Result<(), WitnessError> {
        if let Some(lease) = self.unconfirmed
            && witness.confirmed(wait)? >= self.batch
        {
            (self.lease, self.unconfirmed) = (lease, None);
        }
        let is_news = !self.events.is_empty() || self.lease <= self.next || ended.is_some();
        if self.unconfirmed.is_none() && is_news {
            self.batch += 1;
            let lease = self.next + self.plan.window;
            let events = std::mem::take(&mut self.events);
            let batch = Batch { number: self.batch, lease, events, ended: ended.map(str::to_owned) };
            witness.send(&batch)?;
            self.unconfirmed = Some(lease);
        }
        Ok(())
    }

    /// Tells why it ended, after all that was seen.
    fn last_words(&mut self, witness: &mut dyn Witness, stop: &AtomicBool) -> Result<(), WitnessError> {
        let because = self.ended.clone().map_or_else(String::new, |(because, _)| because);
        let was_stopped = stop.load(Ordering::Acquire);
        let mut said = None;
        for tries in 0_u32.. {
            let last = said.is_none() && self.unconfirmed.is_none();
            self.exchange(witness, STOP_EVERY, last.then_some(because.as_str()))?;
            if last {
                said = Some(self.batch);
            }
            let is_confirmed = said.is_some() && self.unconfirmed.is_none();
            // Whoever stops does not wait for a witness that is gone; what it has not confirmed is not required.
            if is_confirmed || ((was_stopped || stop.load(Ordering::Acquire)) && tries > 20) {
                break;
            }
        }
        Ok(())
    }
}
