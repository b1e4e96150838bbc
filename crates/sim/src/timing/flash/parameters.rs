//! `[flash]` of a model.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};

/// Contents of a drive when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FillState {
    /// Nothing: reads are answered without the flash, and writes find erased blocks.
    Fresh,
    /// Written once from front to back.
    #[default]
    Filled,
    /// Then overwritten in random order until collection is in its steady state.
    Steady,
}

/// The size and speed of everything between the link and the cells.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Channels between the controller and the dies.
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes of a die, which work at the same time on one page each.
    pub planes: u32,
    /// A page of one plane.
    pub page: Size,
    /// Pages in an erase block of one plane.
    pub block_pages: u32,
    /// Time to read a page from its cells to the register, mean over the pages of a cell.
    pub read: Time,
    /// Largest deviation of `read` from page to page, as a share of it (the bits of a cell differ).
    #[serde(default)]
    pub read_spread: f64,
    /// Time to program a page from the register to the cells, mean over the pages of a cell.
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
    /// Time that the controller spends on a command before it can take the next.
    pub command: Time,
    /// Fixed latency of a command beside all other times; it overlaps between commands.
    pub latency: Time,
    /// Number of commands that the drive takes at once.
    pub queue: u32,
    /// The write buffer.
    pub buffer: Size,
    /// How much waits in the buffer for more to come, until a flush or `destage_after`: what is beyond that
    /// is programmed, oldest first. Half of the buffer if it is not said.
    pub gather: Option<Size>,
    /// How long data may wait so.
    pub destage_after: Time,
    /// Time that a flush takes once everything is programmed: for the map's journal, or with a protected
    /// buffer all that there is.
    pub flush: Time,
    /// Time that a discard takes.
    pub trim: Time,
    /// Flash beyond the capacity that the host sees, as a share of it.
    pub overprovisioning: f64,
    /// The unit of the map. A write below it that does not continue the one before costs the whole of it.
    #[serde(default = "mapping")]
    pub mapping: Size,
    /// Contents of the drive when it is made.
    #[serde(default)]
    pub state: FillState,
    /// The part of the flash that is written with one bit to a cell first.
    pub slc: Option<SlcParameters>,
}

/// `[flash.slc]`: the SLC buffer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcParameters {
    /// How much it holds.
    pub size: Size,
    /// Time to program a page with one bit to a cell.
    pub program: Time,
    /// How fast it is emptied into the rest of the flash while nothing is written.
    pub fold: Rate,
    /// How long nothing must have been written before that begins.
    pub fold_after: Time,
}

/// Pages of the map are of 4 KiB unless it is said.
const fn mapping() -> Size {
    Size(Bytes::kib(4))
}

impl Parameters {
    /// Returns how much waits in the buffer for more to come.
    pub(super) fn gathered(&self) -> u64 {
        self.gather.map_or(self.buffer.0.0 / 2, |gather| gather.0.0)
    }

    /// Returns the number of bytes that are programmed at once: a page on every plane of a die.
    pub(super) const fn unit(&self) -> u64 {
        self.page.0.0 * self.planes as u64
    }
}

/// Range of the times in a drive, from a nanosecond to a second.
pub(crate) const TIMES: std::ops::RangeInclusive<Time> = Time(Nanos(0))..=Time(Nanos::secs(1));
/// Above zero.
const WORKING_TIMES: std::ops::RangeInclusive<Time> = Time(Nanos(100))..=Time(Nanos::secs(1));
/// Range of rates, from USB 1 to far above PCIe 7.
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
