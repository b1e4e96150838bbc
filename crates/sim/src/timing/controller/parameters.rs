//! `[cache]` of a model: the link, the write cache and the media cache of a drive.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};

/// Parameters of a drive's front end.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerParameters {
    /// Serial processing time of each command in the controller, from the doorbell to the answer. A USB
    /// bridge adds its own.
    pub command_overhead: Time,
    /// Data rate of the link.
    pub link_rate: Rate,
    /// Number of commands that the drive accepts (NCQ: 32); further ones wait in the host.
    pub queue_depth: u32,
    /// The write cache, if there is one.
    pub write: Option<WriteCacheParameters>,
    /// Protected memory in addition to the cache that WCE switches.
    pub media: Option<MediaCacheParameters>,
}

/// The volatile write cache.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheParameters {
    /// Capacity.
    pub size: Size,
    /// Maximum number of separate runs of sectors.
    pub segments: u32,
    /// Length up to which adjacent writes are merged.
    pub coalesce: Size,
    /// Order in which the cache is destaged.
    pub destage_order: DestageOrder,
    /// Time for which dirty data waits before it is destaged without a request.
    pub destage_delay: Time,
    /// Fill level in percent at which destaging starts immediately.
    pub destage_above_percent: u32,
    /// Fill level in percent down to which a full cache accepts nothing new.
    pub resume_below_percent: u32,
}

/// Staging memory that is saved to flash at a cut, with the energy of the spindle or a capacitor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheParameters {
    /// Condition for its use.
    pub used: MediaCacheUse,
    /// Capacity, limited by the flash and the energy.
    pub size: Size,
    /// Maximum number of separate runs of sectors.
    pub segments: u32,
    /// Time for which data waits before it is moved to its final place although there is room.
    pub destage_delay: Time,
    /// Fill level in percent at which moving starts immediately.
    pub destage_above_percent: u32,
    /// Fill level in percent down to which writes stall once it was full.
    pub resume_below_percent: u32,
}

/// Order in which a cache is destaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DestageOrder {
    /// Ascending addresses, then starting over.
    Elevator,
    /// Oldest first.
    Fifo,
}

/// Condition for using a media cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaCacheUse {
    /// While the volatile cache is disabled.
    CacheOff,
    /// Always: with the volatile cache enabled, a flush saves as much as fits.
    Always,
}

fn room(check: &mut Check, table: &str, size: &Size, segments: u32, percents: [(&str, u32); 2]) {
    let field = |name: &str| format!("{table}.{name}");
    check.within(&field("size"), size, &(Size(Bytes::kib(64))..=Size(Bytes::gib(4))));
    check.within(&field("segments"), &segments, &(1..=65_536));
    for (name, percent) in percents {
        check.within(&field(name), &percent, &(0..=100));
    }
}

impl Limits for ControllerParameters {
    fn limits(&self, check: &mut Check) {
        check.within(
            "command_overhead",
            &self.command_overhead,
            &(Time(Nanos(0))..=Time(Nanos::millis(100))),
        );
        check.within("link_rate", &self.link_rate, &(Rate(100_000)..=Rate(100_000_000_000)));
        check.within("queue_depth", &self.queue_depth, &(1..=4096));
        let delays = Time(Nanos(0))..=Time(Nanos::secs(100));
        if let Some(write) = &self.write {
            let percents = [
                ("destage_above_percent", write.destage_above_percent),
                ("resume_below_percent", write.resume_below_percent),
            ];
            room(check, "write", &write.size, write.segments, percents);
            check.within("write.coalesce", &write.coalesce, &(Size(Bytes(512))..=Size(Bytes::mib(64))));
            check.within("write.destage_delay", &write.destage_delay, &delays);
        }
        if let Some(media) = &self.media {
            let percents = [
                ("destage_above_percent", media.destage_above_percent),
                ("resume_below_percent", media.resume_below_percent),
            ];
            room(check, "media", &media.size, media.segments, percents);
            check.within("media.destage_delay", &media.destage_delay, &delays);
        }
    }
}
