//! Random writes that stay in flight while the write cache of the drive is switched: what no words of a load say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{
    Bytes, Clock as _, Completion, Device, Error, ErrorKind, Lba, LbaRange, Nanos, Pattern, Payload, Pool,
    PoolShape, QueueOptions, Request, Result, Tag, Time, Wait, wait_any,
};
use plumb_measure::Histogram;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What is kept in flight, and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct SteadyLoad {
    pub(super) block: Bytes,
    pub(super) depth: u32,
    pub(super) time: Nanos,
    pub(super) seed: u64,
}

/// What became of it in one state of the cache.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    pub(super) writes: Histogram,
    pub(super) failed: u64,
}

impl SteadyLoad {
    /// Writes until the time is over, and switches the cache on and off in turn so often, evenly; what was seen before, between and
    /// after the switches.
    ///
    /// # Errors
    /// If the drive has no queue for it or does not answer, or its cache cannot be switched.
    pub(super) fn run(
        &self,
        device: &Arc<dyn Device>,
        time: &Time,
        switches: u32,
        stop: &AtomicBool,
    ) -> Result<Vec<Stretch>> {
        let info = device.info();
        let shape = PoolShape {
            buffer: self.block,
            count: self.depth,
            alignment: info.dma_alignment.max(Bytes(4096)),
        };
        let mut queue = device.open_queue(QueueOptions { depth: self.depth, pool: Pool::new(shape)? })?;
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let (blocks, per) = (info.size.0 / self.block.0, self.block.0 / info.logical_block.0);
        let (start, stretch) = (time.now(), self.time.0 / u64::from(switches + 1));
        let mut stretches = vec![Stretch::default()];
        let (mut number, mut in_flight) = (0, 0);
        let mut completions: Vec<Completion> = Vec::new();
        loop {
            let elapsed = time.now().since(start);
            let is_over = elapsed >= self.time || stop.load(Ordering::Relaxed);
            if !is_over && elapsed.0 / stretch >= stretches.len() as u64 {
                device.set_wce(stretches.len().is_multiple_of(2))?;
                stretches.push(Stretch::default());
            }
            while !is_over && in_flight < self.depth {
                number += 1;
                let range = LbaRange::new(Lba(chance.next_u64() % blocks * per), per);
                let payload =
                    Payload::Pattern(Pattern { seed: self.seed, lba: range.lba, generation: number });
                if queue.submit(Request::write(Tag(number), range, payload)).is_err() {
                    break;
                }
                in_flight += 1;
            }
            if is_over && in_flight == 0 {
                return Ok(stretches);
            }
            queue.poll(Wait::NONE, &mut completions)?;
            if completions.is_empty() && !wait_any([&*queue], None, &mut &*time)? {
                return Err(Error::new(ErrorKind::PowerLost, "wait for", info.name));
            }
            for completion in completions.drain(..) {
                in_flight -= 1;
                if let Some(last) = stretches.last_mut() {
                    last.writes.record(completion.service_time());
                    last.failed += u64::from(!completion.outcome.is_done());
                }
            }
        }
    }
}
