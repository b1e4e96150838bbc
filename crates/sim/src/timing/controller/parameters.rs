//! `[cache]` of a model: the link, the write cache and the media cache of a drive.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};

/// Parameters of the part of a drive that is in front of its mechanics.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerParameters {
    /// Time that the controller spends on each command, one after the other, from the doorbell to the answer.
    /// A bridge (USB) adds its own to it.
    pub command_overhead: Time,
    /// How fast data pass the link.
    pub link_rate: Rate,
    /// Number of commands that the drive takes at a time (NCQ: 32); further ones wait in the host.
    pub queue_depth: u32,
    /// The write cache, if there is one.
    pub write: Option<WriteCacheParameters>,
    /// The memory that outlives a cut although it is not the cache that WCE switches.
    pub media: Option<MediaCacheParameters>,
}

/// The volatile write cache.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheParameters {
    /// How much it holds.
    pub size: Size,
    /// How many separate runs of sectors it holds.
    pub segments: u32,
    /// Adjacent writes become one access up to this length.
    pub coalesce: Size,
    /// Order in which the cache is destaged.
    pub destage_order: DestageOrder,
    /// How long dirty data wait for more before they are destaged although nobody asks.
    pub destage_delay: Time,
    /// Destaging begins at once when it is filled so far, in percent.
    pub destage_above_percent: u32,
    /// Once full, it takes nothing new until it is filled no further than this, in percent.
    pub resume_below_percent: u32,
}

/// Staging memory that the spindle's energy or a capacitor saves into flash at a cut.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheParameters {
    /// When it is used.
    pub used: MediaCacheUse,
    /// How much it holds: what the flash takes, and the energy can save.
    pub size: Size,
    /// How many separate runs of sectors it holds.
    pub segments: u32,
    /// How long what it holds waits before it is moved to its home although there is room.
    pub destage_delay: Time,
    /// Moving begins at once when it is filled so far, in percent.
    pub destage_above_percent: u32,
    /// Once full, writes stall until it is filled no further than this, in percent.
    pub resume_below_percent: u32,
}

/// Order in which a cache is destaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DestageOrder {
    /// Ascending addresses, then around again.
    Elevator,
    /// Oldest first.
    Fifo,
}

/// When a media cache is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaCacheUse {
    /// While the volatile cache is off.
    CacheOff,
    /// Always: with the volatile cache on, a flush saves into it what it can hold.
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
