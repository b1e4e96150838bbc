//! The writer: issues the writes of a plan at the planned queue depth, and reports completions to the
//! witness.

use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::wait::LOOK_EVERY;
use plumb_block::{
    Bytes, Clock as _, Completion, Device, Nanos, Pattern, Payload, Pool, PoolShape, Queue, QueueOptions,
    Request, Tag, Time, Wait, wait_any,
};

use crate::error::Result;
use crate::link::Witness;
use crate::message::{Batch, Event};
use crate::plan::{Plan, WRITES_MAX};

/// Tag of flushes. The tag of a write is its number.
const FLUSH: Tag = Tag(u64::MAX);
/// Longest wait for the device between two polls of the witness.
const WITNESS_POLL_INTERVAL: Nanos = Nanos::millis(1);
/// Number of waits for the witness after a stop. Batches that it has not confirmed are not required later.
const STOP_TRIES: u32 = 20;

/// Limits at which a run ends without a cut.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until {
    /// Number of writes, including those that fill the region.
    pub writes: Option<u64>,
    /// Duration of the writing.
    pub time: Option<Nanos>,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterEnd {
    /// Reason for the end, in words.
    pub because: String,
    /// True if a request failed, as it may in a cut or before one.
    pub device_failed: bool,
    /// Number of completed writes.
    pub writes: u64,
    /// Number of completed flushes.
    pub flushes: u64,
}

struct Writer<'a> {
    plan: &'a Plan,
    queue: Box<dyn Queue>,
    time: &'a Time,
    began: Nanos,
    /// Number of the next write to issue.
    next: u64,
    /// Number of the first write that must not be issued.
    limit: u64,
    /// Writes and flushes in flight.
    in_flight: u64,
    /// Number of writes that the flush in flight covers.
    flushing: Option<u64>,
    /// Number of writes for which all planned flushes have been submitted.
    flushed_before: u64,
    /// Events not sent to the witness yet.
    events: Vec<Event>,
    /// Number of the first write that must not be issued before the next confirmation.
    lease: u64,
    /// Number of the batch sent last, and its lease while it is unconfirmed.
    batch: u64,
    unconfirmed: Option<u64>,
    /// Counts so far, and the reason once the writer has ended.
    seen: WriterEnd,
    has_ended: bool,
    has_said_why: bool,
}

/// Writes until the device fails, `until` is reached, or `stop` becomes true; then reports the reason to the
/// witness. A failing device is not an error, since a cut causes it.
///
/// # Errors
/// If the plan does not fit the device, a queue cannot be opened, or the witness fails.
pub fn write(
    plan: &Plan,
    device: &dyn Device,
    time: &Time,
    witness: &mut dyn Witness,
    until: Until,
    stop: &AtomicBool,
) -> Result<WriterEnd> {
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
        events: Vec::new(),
        lease: 0,
        batch: 0,
        unconfirmed: None,
        seen: WriterEnd::default(),
        has_ended: false,
        has_said_why: false,
    };
    writer.run(witness, until.time, stop)?;
    Ok(writer.seen)
}

impl Writer<'_> {
    fn run(&mut self, witness: &mut dyn Witness, until: Option<Nanos>, stop: &AtomicBool) -> Result<()> {
        let mut tries = 0;
        loop {
            let has_news = self.reap();
            let is_stopped = stop.load(Ordering::Acquire);
            if is_stopped {
                self.end("it was told to stop".to_owned(), false);
            }
            if self.next >= self.limit {
                self.end("it had written all that it was told to write".to_owned(), false);
            }
            if until.is_some_and(|time| self.time.now().since(self.began) >= time) {
                self.end("its time was over".to_owned(), false);
            }
            let is_idle = self.in_flight == 0;
            self.exchange(witness, if is_idle { LOOK_EVERY } else { Nanos::ZERO })?;
            if self.has_ended && is_idle {
                tries += u32::from(is_stopped);
                if (self.has_said_why && self.unconfirmed.is_none()) || tries > STOP_TRIES {
                    return Ok(());
                }
                continue;
            }
            let mut has_issued = false;
            while !self.has_ended && self.issue() {
                has_issued = true;
            }
            if !has_news && !has_issued && self.in_flight > 0 {
                let until = self.time.now().saturating_add(WITNESS_POLL_INTERVAL);
                wait_any([&*self.queue], Some(until), &mut &*self.time)?;
            }
        }
    }

    fn end(&mut self, because: String, device_failed: bool) {
        if !self.has_ended {
            self.has_ended = true;
            (self.seen.because, self.seen.device_failed) = (because, device_failed);
        }
    }

    /// Submits the issued requests and takes completions. Returns true if there were any.
    fn reap(&mut self) -> bool {
        let mut completions = Vec::new();
        if let Err(error) = self.queue.poll(Wait::NONE, &mut completions) {
            // Requests in flight remain incomplete.
            self.end(error.to_string(), true);
            self.in_flight = 0;
        }
        completions.iter().for_each(|completion| self.completed(completion));
        !completions.is_empty()
    }

    fn completed(&mut self, completion: &Completion) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let covers = if completion.tag == FLUSH { self.flushing.take() } else { None };
        if !completion.outcome.is_done() {
            let what = covers.map_or_else(|| format!("write {}", completion.tag.0), |_| "a flush".to_owned());
            return self.end(format!("{what} ended as {:?}", completion.outcome), true);
        }
        let (next, at) = (self.next, completion.completed_at.since(self.began));
        self.events.push(match covers {
            Some(covers) => {
                self.seen.flushes += 1;
                Event::Flushed { covers, next, at }
            }
            None => {
                self.seen.writes += 1;
                Event::Written { write: completion.tag.0, next, at }
            }
        });
    }

    /// Issues the next flush or write, if one may be issued now.
    fn issue(&mut self) -> bool {
        // No other write is issued before the filling is complete.
        let is_filled = self.next == self.plan.fills();
        if self.flushed_before < self.next && self.plan.flush_before(self.next) {
            let is_possible = self.flushing.is_none() && !(is_filled && self.in_flight > 0);
            if !is_possible || self.queue.submit(Request::flush(FLUSH)).is_err() {
                return false;
            }
            (self.flushing, self.flushed_before) = (Some(self.seen.writes), self.next);
            self.in_flight += 1;
            return true;
        }
        let is_flushing = self.flushing.is_some();
        let is_full = self.in_flight - u64::from(is_flushing) >= u64::from(self.plan.depth);
        if is_full || (is_filled && is_flushing) || self.next >= self.lease.min(self.limit) {
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

    /// Takes confirmations of the witness, waiting at most `wait`, and sends new events; last, when nothing
    /// is in flight any more, the reason for the end.
    fn exchange(&mut self, witness: &mut dyn Witness, wait: Nanos) -> Result<()> {
        if let Some(lease) = self.unconfirmed
            && witness.confirmed(wait)? >= self.batch
        {
            (self.lease, self.unconfirmed) = (lease, None);
        }
        let says_why = self.has_ended && self.in_flight == 0 && !self.has_said_why;
        let is_news = !self.events.is_empty() || self.lease <= self.next || says_why;
        if self.unconfirmed.is_none() && is_news && !self.has_said_why {
            self.batch += 1;
            self.has_said_why = says_why;
            let lease = self.next + self.plan.window;
            let ended = says_why.then(|| self.seen.because.clone());
            let batch = Batch { number: self.batch, lease, events: std::mem::take(&mut self.events), ended };
            witness.send(&batch)?;
            self.unconfirmed = Some(lease);
        }
        Ok(())
    }
}
