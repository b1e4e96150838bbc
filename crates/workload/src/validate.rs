//! Rules for a valid workload.
//!
//! Everything invalid is refused before anything runs, and nothing is silently changed into something valid:
//! a run that does something other than requested is worse than none.

mod access;
mod scenario;
mod trace;

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};

use crate::block_sizes::BlockSplit;
use crate::invalid::{Invalid, invalid_if};
use crate::pace::{Amount, Burst, Rate, Stop};
use crate::workload::{Content, Division, Workload};

type CheckResult = Result<(), Invalid>;

impl Workload {
    /// Highest permitted rate in operations per second.
    pub(crate) const IOPS_MAX: f64 = 1e9;
    /// Highest permitted rate in bytes per second.
    pub(crate) const BYTES_PER_SECOND_MAX: f64 = 1e13;

    /// Checks every field. The range may still be open-ended.
    ///
    /// # Errors
    /// Fails at the first invalid field, with its value and what was expected.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.check_mix()?;
        self.check_blocks()?;
        if self.depth == 0 || self.depth > Self::DEPTH_MAX {
            return Err(Invalid::new("depth", self.depth, format!("1 to {}", Self::DEPTH_MAX)));
        }
        check_stop(&self.stop)?;
        self.check_durability()?;
        check_rate(self.rate)?;
        self.burst.map_or(Ok(()), check_burst)?;
        self.check_range()?;
        access::check(self)?;
        self.check_content()?;
        self.check_verify()
    }

    /// Checks the fields that depend on the number of workers.
    pub(crate) fn validate_workers(&self, workers: NonZeroU32) -> CheckResult {
        if self.verify && workers.get() > 1 && self.division != Division::Parts {
            let expected = format!(
                "false with {workers} workers on the same range: nobody knows which of them wrote a block last; give \
                 each a part of its own"
            );
            return Err(Invalid::new("verify", true, expected));
        }
        Ok(())
    }

    fn check_mix(&self) -> CheckResult {
        invalid_if!(self.write_percent > 100, "write_percent", self.write_percent, "0 to 100");
        let rest = 100 - self.write_percent;
        let expected = format!("0 to {rest}, what {} % of writes leave", self.write_percent);
        invalid_if!(self.trim_percent > rest, "trim_percent", self.trim_percent, expected);
        Ok(())
    }

    fn check_blocks(&self) -> CheckResult {
        let blocks = &self.blocks;
        for (kind, split) in [("read", &blocks.read), ("write", &blocks.write), ("trim", &blocks.trim)] {
            check_split(split).map_err(|invalid| invalid.within(&format!("blocks.{kind}")))?;
        }
        Ok(())
    }

    fn check_durability(&self) -> CheckResult {
        if self.writes() {
            return Ok(());
        }
        let expected = "none, for a workload that never writes";
        if let Some(every) = self.durability.flush_every {
            return Err(Invalid::new("durability.flush_every", every, expected));
        }
        if let Some(every) = self.durability.fua_every {
            return Err(Invalid::new("durability.fua_every", every, expected));
        }
        let expected = "false, for a workload that never writes";
        invalid_if!(self.durability.flush_at_end, "durability.flush_at_end", true, expected);
        Ok(())
    }

    fn check_range(&self) -> CheckResult {
        let (range, longest) = (self.range, self.block_max());
        let expected = format!("at least one block of {longest}");
        invalid_if!(range.length < longest, "length", range.length, expected);
        if !range.is_open_ended() && range.offset.0.checked_add(range.length.0).is_none() {
            let expected = format!("an end below 16 EiB, with a length of {}", range.length);
            return Err(Invalid::new("offset", range.offset, expected));
        }
        Ok(())
    }

    fn check_content(&self) -> CheckResult {
        match &self.content {
            Content::Pattern | Content::Repeated | Content::Zeroes | Content::Counting => Ok(()),
            Content::Reducible { compress_percent, dedup_percent } => {
                for (field, value) in
                    [("compress_percent", compress_percent), ("dedup_percent", dedup_percent)]
                {
                    invalid_if!(*value > 99, format!("content.reducible.{field}"), value, "0 to 99");
                }
                Ok(())
            }
            Content::Buffer(size) => self.check_buffer("content.buffer", *size),
            Content::File { path, .. } if path.is_empty() => {
                Err(Invalid::new("content.file.path", "empty", "the path of a file"))
            }
            Content::File { size, .. } => self.check_buffer("content.file.size", *size),
        }
    }

    fn check_buffer(&self, field: &str, size: Bytes) -> CheckResult {
        // The size of blocks that are never written does not matter.
        let longest = if self.writes() { self.blocks.write.max() } else { Bytes(1) };
        let expected = format!("{longest}, so that the longest write fits, to {}", Self::BLOCK_MAX);
        invalid_if!(size < longest || size > Self::BLOCK_MAX, field, size, expected);
        Ok(())
    }

    fn check_verify(&self) -> CheckResult {
        if !self.verify {
            return Ok(());
        }
        match self.content {
            Content::Pattern | Content::Reducible { dedup_percent: 0, .. } => Ok(()),
            Content::Reducible { dedup_percent, .. } => {
                let expected =
                    "0 with verify: copies carry no stamp, so a stale one would pass for a fresh one";
                Err(Invalid::new("content.reducible.dedup_percent", dedup_percent, expected))
            }
            Content::Repeated
            | Content::Zeroes
            | Content::Counting
            | Content::Buffer(_)
            | Content::File { .. } => {
                let expected = "pattern or reducible with verify: only their blocks say where and when they were \
                                written";
                Err(Invalid::new("content", self.content_name(), expected))
            }
        }
    }

    fn content_name(&self) -> &'static str {
        match self.content {
            Content::Pattern => "pattern",
            Content::Reducible { .. } => "reducible",
            Content::Repeated => "repeated",
            Content::Zeroes => "zeroes",
            Content::Counting => "counting",
            Content::Buffer(_) => "buffer",
            Content::File { .. } => "file",
        }
    }
}

fn check_split(split: &BlockSplit) -> CheckResult {
    for (index, (block, percent)) in split.0.iter().enumerate() {
        if *block == Bytes(0) || *block > Workload::BLOCK_MAX {
            let expected = format!("1 byte to {}", Workload::BLOCK_MAX);
            return Err(Invalid::new(format!("[{index}].length"), block, expected));
        }
        invalid_if!(*percent == 0, format!("[{index}].percent"), percent, "1 to 100");
    }
    match split.0.iter().map(|(_, percent)| u32::from(*percent)).sum::<u32>() {
        100 => Ok(()),
        sum => Err(Invalid::new("", format!("{sum} % together"), "lengths whose percents add up to 100")),
    }
}

fn check_stop(stop: &Stop) -> CheckResult {
    if *stop == Stop::default() {
        return Err(Invalid::new("stop", "never", "a duration, a number of operations or a number of bytes"));
    }
    invalid_if!(stop.duration == Some(Nanos::ZERO), "stop.duration", Nanos::ZERO, "a time above zero");
    for (field, value) in [("stop.operations", stop.operations), ("stop.bytes", stop.bytes)] {
        invalid_if!(value == Some(0), field, 0, "at least 1");
    }
    Ok(())
}

fn check_rate(rate: Rate) -> CheckResult {
    let Rate::Scheduled { amount, .. } = rate else { return Ok(()) };
    let (field, value, most, unit) = match amount {
        Amount::Iops(iops) => ("iops", iops, Workload::IOPS_MAX, "operations"),
        Amount::BytesPerSecond(bytes) => ("bytes-per-second", bytes, Workload::BYTES_PER_SECOND_MAX, "bytes"),
    };
    if value > 0.0 && value <= most {
        return Ok(());
    }
    let expected = format!("more than 0 and at most {most:e} {unit} per second");
    Err(Invalid::new(format!("rate.amount.{field}"), value, expected))
}

fn check_burst(burst: Burst) -> CheckResult {
    invalid_if!(burst.operations == 0, "burst.operations", 0, "at least 1");
    if burst.pause == Nanos::ZERO {
        return Err(Invalid::new(
            "burst.pause",
            Nanos::ZERO,
            "a time above zero; without pauses there are no bursts",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
