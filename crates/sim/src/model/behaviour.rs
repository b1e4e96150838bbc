//! How honest a drive is, and what else than loss a power cut does to it.

use serde::Deserialize;

use super::limits::{Check, Limits};
use super::quantity::Time;
use crate::contents::Damage;
use plumb_block::Nanos;

/// Flushes that a drive answers without carrying them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum IgnoresFlush {
    /// None: an honest drive.
    #[default]
    Never,
    /// All.
    Always,
    /// The last so many before a power cut: written `last-8`.
    Last(u32),
}

impl TryFrom<String> for IgnoresFlush {
    type Error = String;

    fn try_from(typed: String) -> Result<Self, String> {
        match (typed.as_str(), typed.strip_prefix("last-").map(str::parse)) {
            ("never", _) => Ok(Self::Never),
            ("always", _) => Ok(Self::Always),
            (_, Some(Ok(count @ 1..=1_000_000))) => Ok(Self::Last(count)),
            _ => Err("expected never, always, or last-N with N from 1 to 1000000".to_owned()),
        }
    }
}

/// The write cache of a drive when power comes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wce {
    /// There is none that a host could see or set (NVMe VWC = 0).
    #[default]
    Absent,
    /// There is one and it is on.
    On,
    /// There is one and it is off.
    Off,
}

/// How a drive keeps, or does not keep, to what it says.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// The write cache when power comes on.
    pub wce: Wce,
    /// Flushes that are answered and not done.
    pub ignores_flush: IgnoresFlush,
    /// A driver in front of the drive answers flushes itself; the drive never sees one.
    pub driver_drops_flush: bool,
    /// Time that a flush takes that is answered and not done; 20 us if it is not said.
    pub ignored_flush_time: Option<Time>,
    /// A FUA write is a plain write.
    pub ignores_fua: bool,
    /// The command that sets the write cache succeeds and changes nothing.
    pub ignores_set_wce: bool,
    /// Says that it has no volatile cache while one is on.
    pub reports_write_through: bool,
    /// True if the contents of the write cache survive a power cut: capacitors, a battery, or a medium to
    /// save it to.
    pub protected: bool,
    /// The battery or the capacitors of a protected cache are dead, and the drive has not noticed unless it
    /// is said.
    pub battery_dead: bool,
    /// The drive has noticed that they are: it writes through until that is mended.
    pub battery_noticed: bool,
    /// Damage that a power cut does beside loss.
    pub damage: Damage,
}

impl Behaviour {
    /// Returns how long a flush takes that is answered and not done.
    pub fn ignored_flush(&self) -> Nanos {
        self.ignored_flush_time.map_or(Nanos::micros(20), |time| time.0)
    }

    /// Returns true if acknowledged writes survive a power cut with the write cache on: as they are kept, or
    /// written through.
    pub const fn keeps_cache(&self) -> bool {
        self.protected && (!self.battery_dead || self.battery_noticed)
    }

    /// Returns true if what is in the write cache survives a power cut, and flushes are obeyed: the cache of
    /// such a drive is called protected.
    pub const fn survives_power_cut(&self) -> bool {
        self.keeps_cache() && matches!(self.ignores_flush, IgnoresFlush::Never)
    }

    /// Returns true if the drive believes that its cache survives a power cut, and is wrong.
    pub const fn is_deceived(&self) -> bool {
        self.protected && self.battery_dead && !self.battery_noticed
    }
}

impl Limits for Behaviour {
    fn limits(&self, check: &mut Check) {
        check.within(
            "ignored_flush_time",
            &Time(self.ignored_flush()),
            &(Time(Nanos(0))..=Time(Nanos::secs(10))),
        );
        check.that("battery_dead", !self.battery_dead || self.protected, "protected = true beside it");
        check.that(
            "battery_noticed",
            !self.battery_noticed || self.battery_dead,
            "battery_dead = true beside it",
        );
        check.that(
            "reports_write_through",
            !self.reports_write_through || self.wce != Wce::Absent,
            "wce = \"on\" or \"off\" beside it",
        );
        let Damage { torn, shorn, misdirected, unserialized, unreadable, .. } = &self.damage;
        for (field, value) in [
            ("damage.torn", torn),
            ("damage.shorn", shorn),
            ("damage.misdirected", misdirected),
            ("damage.unserialized", unserialized),
            ("damage.unreadable", unreadable),
        ] {
            check.within(field, value, &(0.0..=1.0));
        }
    }
}
