//! Read of all written data after a load.
//!
//! During a load only blocks that are read again by chance are compared. The others are checked afterwards,
//! through the device that gives the strongest proof in the caller's opinion: past the page cache, after a
//! power cut, on another host.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{
    Bytes, Completion, Device, LbaRange, Outcome, Payload, Pool, PoolShape, Queue, QueueOptions, Request,
    Tag, Wait,
};

use crate::fault::Error;

/// Length of one read.
const CHUNK: Bytes = Bytes::kib(256);
/// Number of reads in flight.
const DEPTH: u32 = 16;

/// Expected content of the blocks that are read.
pub trait ReadBack {
    /// Returns the runs of blocks to read, each of at most `most`, in order.
    fn to_read(&self, most: u64) -> Vec<LbaRange>;
    /// Compares the data read from `range` with the expected content.
    fn check(&mut self, range: LbaRange, bytes: &[u8]);
    /// Records that these blocks cannot be read.
    fn unreadable(&mut self, range: LbaRange);
    /// Records that there is no answer for these blocks any longer.
    fn unreached(&mut self, range: LbaRange);
    /// Returns true if power or connection were lost before: a device from which nothing can be read then
    /// proves nothing.
    fn has_lost_power(&self) -> bool;
}

/// Reads from `device` every block that `ledger` requests, and compares it. An unreadable block is lost; but
/// if power or connection were lost and nothing at all can be read, or there is no answer, it is not judged.
/// `progress` gets the number of bytes read. Ends early when `stop` becomes true; returns false then.
///
/// # Errors
/// Fails if the device cannot open a queue, or its queue broke.
pub fn read_back(
    device: &dyn Device,
    ledger: &mut dyn ReadBack,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<bool, Error> {
    let info = device.info();
    let chunk = CHUNK.min(info.transfer_max).max(info.logical_block).round_down(info.logical_block);
    let alignment = Bytes(info.dma_alignment.0.max(4096));
    let pool = Pool::new(PoolShape { buffer: chunk, count: 2 * DEPTH, alignment })?;
    let ranges = ledger.to_read(chunk.0 / info.logical_block.0);
    let queue = match device.open_queue(QueueOptions { depth: DEPTH, pool: pool.clone() }) {
        // A lost connection cannot open a queue any longer.
        Err(_) if ledger.has_lost_power() => {
            ranges.into_iter().for_each(|range| ledger.unreached(range));
            return Ok(true);
        }
        opened => opened?,
    };
    let mut pass = Pass {
        queue,
        pool,
        logical_block: info.logical_block,
        in_flight: HashMap::new(),
        unreadable: Vec::new(),
        is_anything_read: false,
    };
    let mut next = 0;
    let mut read = Bytes(0);
    while next < ranges.len() || !pass.in_flight.is_empty() {
        if stop.load(Ordering::Relaxed) {
            next = ranges.len();
        }
        while next < ranges.len()
            && pass.in_flight.len() < DEPTH as usize
            && pass.begin(next, ranges[next])?
        {
            next += 1;
        }
        read += pass.reap(ledger)?;
        progress(read);
    }
    let unreadable = std::mem::take(&mut pass.unreadable);
    let is_gone = ledger.has_lost_power() && !pass.is_anything_read;
    for range in unreadable {
        if is_gone {
            ledger.unreached(range);
            continue;
        }
        pass.block_by_block(range, ledger)?;
    }
    Ok(!stop.load(Ordering::Relaxed))
}

struct Pass {
    queue: Box<dyn Queue>,
    pool: Pool,
    logical_block: Bytes,
    in_flight: HashMap<Tag, LbaRange>,
    unreadable: Vec<LbaRange>,
    is_anything_read: bool,
}

impl Pass {
    /// Starts a read of `range`; returns `false` if there is no room now.
    fn begin(&mut self, index: usize, range: LbaRange) -> Result<bool, Error> {
        let Some(buffer) = self.pool.take(self.logical_block * range.nlb) else { return Ok(false) };
        let tag = Tag(index as u64);
        if self.queue.submit(Request::read_into(tag, range, buffer)).is_err() {
            return Ok(false);
        }
        self.in_flight.insert(tag, range);
        Ok(true)
    }

    /// Waits for reads, and compares their data.
    fn reap(&mut self, ledger: &mut dyn ReadBack) -> Result<Bytes, Error> {
        let mut completions: Vec<Completion> = Vec::new();
        self.queue.poll(Wait::ONE, &mut completions)?;
        let mut read = Bytes(0);
        for completion in completions {
            let Some(range) = self.in_flight.remove(&completion.tag) else { continue };
            read += self.logical_block * range.nlb;
            match &completion.payload {
                Payload::Into(bytes) if completion.outcome.is_done() => {
                    self.is_anything_read = true;
                    ledger.check(range, bytes);
                }
                _ if matches!(completion.outcome, Outcome::Unknown | Outcome::PowerLost) => {
                    ledger.unreached(range);
                }
                _ => self.unreadable.push(range),
            }
        }
        Ok(read)
    }

    /// Reads a range block by block to find the unreadable blocks.
    fn block_by_block(&mut self, range: LbaRange, ledger: &mut dyn ReadBack) -> Result<(), Error> {
        for index in 0..range.nlb {
            let block = LbaRange::new(range.lba + index, 1);
            self.begin(0, block)?;
            self.reap(ledger)?;
            if let Some(unreadable) = self.unreadable.pop() {
                ledger.unreadable(unreadable);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Lba, Outcome, Pattern};
    use plumb_workload::{ByteRange, Content, Workload};

    use super::*;
    use crate::content::Maker;
    use crate::ledger::Ledger;
    use crate::tests::scripted::ScriptedDevice;

    #[test]
    fn what_cannot_be_read_is_lost_block_by_block() {
        // Blocks 8 to 15 are as written, 16 to 23 are zeroes, and 20 cannot be read at all.
        let device = ScriptedDevice::reading(|range, bytes| {
            for (index, block) in bytes.chunks_exact_mut(512).enumerate() {
                let lba = range.lba + index as u64;
                match lba.0 {
                    0..16 => Pattern { seed: 5, lba, generation: 1 }.fill(512, block),
                    _ => block.fill(0),
                }
            }
            let bad = LbaRange::new(Lba(20), 1);
            if range.overlaps(bad) { Outcome::Failed(plumb_block::Errno::EIO) } else { Outcome::Done }
        });
        let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
        let workload =
            Workload { seed: 5, content: Content::Pattern, ..Workload::over(range, Bytes::kib(4)) };
        let maker = Maker::new(&workload, Bytes(512), Bytes(4096)).unwrap();
        let mut ledger = Ledger::new(LbaRange::new(Lba(0), 2048), 8, 5, Bytes(512), maker);
        for lba in [8, 16] {
            ledger.changed(LbaRange::new(Lba(lba), 8), Some(1), Outcome::Done);
        }
        let mut seen = Bytes(0);
        let whole =
            read_back(&device, &mut ledger, &AtomicBool::new(false), &mut |read| seen = read).unwrap();
        assert!(whole);
        assert_eq!(seen, Bytes(16 * 512));
        let verified = ledger.verified();
        assert_eq!((verified.blocks, verified.lost, verified.wrong()), (16, 8, 8));
    }
}
