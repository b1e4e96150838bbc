//! `[flash]` of a model.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};

/// Initial contents of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FillState {
    /// Empty: reads are answered without flash access, and writes find erased blocks.
    Fresh,
    /// Written once sequentially.
    #[default]
    Filled,
    /// Written once sequentially, then overwritten randomly until collection is in its steady state.
    Steady,
}

/// Sizes and speeds of everything between the link and the cells.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Channels between the controller and the dies.
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes of a die, each of which processes one page at the same time.
    pub planes: u32,
    /// Page size of one plane.
    pub page: Size,
    /// Number of pages in an erase block of one plane.
    pub block_pages: u32,
    /// Time to read a page from its cells to the register, averaged over the pages of a cell.
    pub read: Time,
    /// Maximum deviation of `read` from page to page, relative to it (the bits of a cell differ).
    #[serde(default)]
    pub read_spread: f64,
    /// Time to program a page from the register to the cells, averaged over the pages of a cell.
    pub program: Time,
    /// Time to erase a block.
    pub erase: Time,
    /// Transfer rate of one channel.
    pub channel: Rate,
    /// Time to suspend a running program operation for a read; absent if the read must wait for its end.
    pub suspend: Option<Time>,
    /// Transfer rate of the link to the host.
    pub link: Rate,
    /// True if the link carries both directions at once (PCIe does, SATA does not).
    #[serde(default)]
    pub duplex: bool,
    /// Serial processing time of a command in the controller.
    pub command: Time,
    /// Additional latency of a command, which overlaps between commands.
    pub latency: Time,
    /// Number of commands that the drive accepts at once.
    pub queue: u32,
    /// Size of the write buffer.
    pub buffer: Size,
    /// Amount of data that waits in the buffer for more, until a flush or `destage_after`; data beyond it is
    /// programmed, oldest first. By default half of the buffer.
    pub gather: Option<Size>,
    /// Maximum waiting time of data in the buffer.
    pub destage_after: Time,
    /// Duration of a flush after everything is programmed: for the map's journal, or with a protected buffer
    /// the total.
    pub flush: Time,
    /// Duration of a discard.
    pub trim: Time,
    /// Flash beyond the host's capacity, as a share of it.
    pub overprovisioning: f64,
    /// Unit of the map. A smaller write that does not continue the previous one costs a whole unit.
    #[serde(default = "mapping")]
    pub mapping: Size,
    /// Initial contents.
    #[serde(default)]
    pub state: FillState,
    /// Part of the flash that is first written with one bit per cell.
    pub slc: Option<SlcParameters>,
}

/// `[flash.slc]`: the SLC buffer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcParameters {
    /// Capacity.
    pub size: Size,
    /// Time to program a page with one bit per cell.
    pub program: Time,
    /// Rate at which the buffer is emptied into the rest of the flash while nothing is written.
    pub fold: Rate,
    /// Time without writes before emptying starts.
    pub fold_after: Time,
}

/// Default unit of the map: 4 KiB.
const fn mapping() -> Size {
    Size(Bytes::kib(4))
}

impl Parameters {
    /// Returns the amount of data that waits in the buffer for more.
    pub(super) fn gathered(&self) -> u64 {
        self.gather.map_or(self.buffer.0.0 / 2, |gather| gather.0.0)
    }

    /// Returns the number of bytes programmed at once: a page on every plane of a die.
    pub(super) const fn unit(&self) -> u64 {
        self.page.0.0 * self.planes as u64
    }
}

/// Permitted times in a drive, up to a second.
pub(crate) const TIMES: std::ops::RangeInclusive<Time> = Time(Nanos(0))..=Time(Nanos::secs(1));
/// Permitted times that must not be zero.
const WORKING_TIMES: std::ops::RangeInclusive<Time> = Time(Nanos(100))..=Time(Nanos::secs(1));
/// Permitted rates, from USB 1 to far above PCIe 7.
pub(crate) const RATES: std::ops::RangeInclusive<Rate> = Rate(1_000_000)..=Rate(1_000_000_000_000);

impl Limits for Parameters {
    fn limits(&self, check: &mut Check) {
        check.within("channels", &self.channels, &(1..=64));
        check.within("dies", &self.dies, &(1..=64));
        check.within("planes", &self.planes, &(1..=16));
        let page = self.page.0.0;
        check.that(
            "page",
            page.is_power_of_two() && (2048..=65536).contains(&page),
            "a power of two, 2 to 64 KiB",
        );
        check.within("block_pages", &self.block_pages, &(1..=65536));
        for (field, time) in [("read", self.read), ("program", self.program), ("erase", self.erase)] {
            check.within(field, &time, &WORKING_TIMES);
        }
        check.within("read_spread", &self.read_spread, &(0.0..=0.9));
        check.within("suspend", &self.suspend.unwrap_or_default(), &TIMES);
        for (field, time) in [("command", self.command), ("latency", self.latency), ("trim", self.trim)] {
            check.within(field, &time, &TIMES);
        }
        check.within("flush", &self.flush, &TIMES);
        check.within(
            "destage_after",
            &self.destage_after,
            &(Time(Nanos::micros(1))..=Time(Nanos::secs(3600))),
        );
        check.within("channel", &self.channel, &RATES);
        check.within("link", &self.link, &RATES);
        check.within("queue", &self.queue, &(1..=65536));
        check.within("buffer", &self.buffer, &(Size(Bytes(512))..=Size(Bytes::gib(64))));
        let gather = self.gather.is_none_or(|gather| gather <= self.buffer);
        check.that("gather", gather, "no more than the buffer holds");
        check.within("overprovisioning", &self.overprovisioning, &(0.0..=4.0));
        let mapping = self.mapping.0.0;
        let fits = mapping.is_power_of_two() && (512..=64 << 20).contains(&mapping);
        check.that("mapping", fits, "a power of two, 512 bytes to 64 MiB");
        if let Some(slc) = &self.slc {
            check.within("slc.size", &slc.size, &(Size(Bytes(0))..=Size(Bytes::gib(1 << 20))));
            check.within("slc.program", &slc.program, &WORKING_TIMES);
            check.within("slc.fold", &slc.fold, &RATES);
            check.within("slc.fold_after", &slc.fold_after, &(Time(Nanos(0))..=Time(Nanos::secs(3600))));
        }
    }
}
