//! The description of a workload, and what it takes to be valid.
//!
//! It is what a person means by "4 KiB random writes at depth 32 with a flush after each": plain data that goes into
//! recordings and over the wire to other hosts. Offsets and lengths are bytes; whether they fit a device's blocks is
//! for the one to say who knows the device.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Iops, Nanos};
use serde::{Deserialize, Serialize};

use crate::invalid::Invalid;

/// What to write and read, how fast, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Bytes of each read and write.
    pub block: Bytes,
    /// Where the operations go.
    pub access: Access,
    /// How many of 100 operations are writes, 0 to 100.
    pub write_percent: u8,
    /// How many requests each worker keeps in flight.
    pub depth: u32,
    /// When it is over.
    pub stop: Stop,
    /// After how many writes of a worker these are made durable: the worker waits until they have completed, flushes,
    /// and only then goes on. `None`: never.
    pub flush_every: Option<NonZeroU32>,
    /// Whether each write is to be durable when it completes (force unit access).
    pub fua: bool,
    /// How fast operations start, over all workers together. Flushes are not limited: each belongs to its writes.
    pub rate: Rate,
    /// What all random choices and the bytes written follow from.
    pub seed: u64,
    /// The part of the target that is touched.
    pub range: ByteRange,
    /// What writes consist of.
    pub content: Content,
}

/// Where operations go within the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// To any block with the same probability.
    Random,
    /// One after the other, and from the start again after the last.
    Sequential,
}

/// When a workload is over. Requests in flight then are waited for, and a flush that is due is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// No read or write starts after this time since the start.
    Duration(Nanos),
    /// So many reads and writes are done, over all workers together. Flushes do not count.
    Operations(u64),
}

/// How fast operations start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// As soon as the depth allows.
    Unlimited,
    /// At fixed intervals on a schedule made in advance. An operation that could not start in time starts late and
    /// its lateness is measured; the schedule does not move.
    Fixed(Iops),
}

/// A run of bytes of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// The first byte.
    pub offset: Bytes,
    /// How many. What is left over after the last whole block is not touched.
    pub length: Bytes,
}

/// What writes consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Stamped noise that differs in every block of every write, does not compress or deduplicate, and regenerates:
    /// see [`Pattern`](plumb_block::Pattern).
    Pattern,
    /// One block of noise, made once and written again and again: costs no processor time, but deduplicates.
    Repeated,
    /// Zeroes. Only to find out whether the path reduces data.
    Zeroes,
}

impl Workload {
    /// The deepest queue that can be asked for.
    pub const DEPTH_MAX: u32 = 32_768;
    /// The largest block.
    pub const BLOCK_MAX: Bytes = Bytes::gib(1);

    /// A single-depth random read of `block`s all over `range`, for one second: what other workloads are made from.
    pub fn over(range: ByteRange, block: Bytes) -> Self {
        Self {
            block,
            access: Access::Random,
            write_percent: 0,
            depth: 1,
            stop: Stop::Duration(Nanos::secs(1)),
            flush_every: None,
            fua: false,
            rate: Rate::Unlimited,
            seed: 0,
            range,
            content: Content::Pattern,
        }
    }

    /// How many whole blocks the range holds.
    pub fn blocks(&self) -> u64 {
        self.range.length.0.checked_div(self.block.0).unwrap_or(0)
    }

    /// Whether any operation writes.
    pub fn writes(&self) -> bool {
        self.write_percent > 0
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field that makes no sense, with its value and what was expected.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.block == Bytes(0) || self.block > Self::BLOCK_MAX {
            return Err(Invalid::new("block", self.block, format!("1 byte to {}", Self::BLOCK_MAX)));
        }
        self.validate_range()?;
        if self.write_percent > 100 {
            return Err(Invalid::new("write_percent", self.write_percent, "0 to 100"));
        }
        if self.depth == 0 || self.depth > Self::DEPTH_MAX {
            return Err(Invalid::new("depth", self.depth, format!("1 to {}", Self::DEPTH_MAX)));
        }
        match self.stop {
            Stop::Duration(Nanos::ZERO) => {
                return Err(Invalid::new("stop.duration", Nanos::ZERO, "a time above zero"));
            }
            Stop::Operations(0) => return Err(Invalid::new("stop.operations", 0, "at least 1")),
            Stop::Duration(_) | Stop::Operations(_) => {}
        }
        if let Rate::Fixed(Iops(iops)) = self.rate
            && !(iops > 0.0 && iops <= 1e9)
        {
            return Err(Invalid::new(
                "rate.fixed",
                iops,
                "more than 0 and at most 1e9 operations per second",
            ));
        }
        self.validate_durability()
    }

    fn validate_range(&self) -> Result<(), Invalid> {
        if self.range.length < self.block {
            let expected = format!("at least one block of {}", self.block);
            return Err(Invalid::new("range.length", self.range.length, expected));
        }
        if self.range.offset.0.checked_add(self.range.length.0).is_none() {
            let expected = format!("an end below 16 EiB, with a length of {}", self.range.length);
            return Err(Invalid::new("range.offset", self.range.offset, expected));
        }
        Ok(())
    }

    fn validate_durability(&self) -> Result<(), Invalid> {
        if self.writes() {
            return Ok(());
        }
        if let Some(every) = self.flush_every {
            return Err(Invalid::new("flush_every", every, "none, for a workload that never writes"));
        }
        if self.fua {
            return Err(Invalid::new("fua", self.fua, "false, for a workload that never writes"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Workload {
        let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
        Workload { write_percent: 50, ..Workload::over(range, Bytes::kib(4)) }
    }

    #[test]
    fn an_invalid_field_is_named_with_its_value() {
        let cases: [(Workload, &str); 10] = [
            (Workload { block: Bytes(0), ..base() }, "block is 0 B: expected 1 byte to 1 GiB"),
            (Workload { depth: 0, ..base() }, "depth is 0: expected 1 to 32768"),
            (Workload { write_percent: 101, ..base() }, "write_percent is 101: expected 0 to 100"),
            (
                Workload { stop: Stop::Duration(Nanos::ZERO), ..base() },
                "stop.duration is 0 ns: expected a time above zero",
            ),
            (Workload { stop: Stop::Operations(0), ..base() }, "stop.operations is 0: expected at least 1"),
            (
                Workload { rate: Rate::Fixed(Iops(f64::NAN)), ..base() },
                "rate.fixed is NaN: expected more than 0 and at most 1e9 operations per second",
            ),
            (
                Workload { block: Bytes::mib(2), ..base() },
                "range.length is 1 MiB: expected at least one block of 2 MiB",
            ),
            (
                Workload { range: ByteRange { offset: Bytes(u64::MAX), length: Bytes::mib(1) }, ..base() },
                "range.offset is 16 EiB: expected an end below 16 EiB, with a length of 1 MiB",
            ),
            (
                Workload { write_percent: 0, flush_every: NonZeroU32::new(2), ..base() },
                "flush_every is 2: expected none, for a workload that never writes",
            ),
            (
                Workload { write_percent: 0, fua: true, ..base() },
                "fua is true: expected false, for a workload that never writes",
            ),
        ];
        for (workload, message) in cases {
            assert_eq!(workload.validate().unwrap_err().to_string(), message);
        }
        assert_eq!(base().validate(), Ok(()));
    }

    #[test]
    fn a_workload_survives_json() {
        let workload = Workload {
            flush_every: NonZeroU32::new(8),
            rate: Rate::Fixed(Iops(100.0)),
            stop: Stop::Operations(7),
            ..base()
        };
        let text = serde_json::to_string(&workload).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&text).unwrap(), workload);
        let misspelt = text.replace("write_percent", "writepercent");
        assert!(serde_json::from_str::<Workload>(&misspelt).is_err(), "an unknown field was taken");
    }
}
