//! Honesty of a drive, and the damage by a power cut in addition to losses.

use serde::Deserialize;

use super::limits::{Check, Limits};
use super::quantity::Time;
use crate::contents::Damage;
use plumb_block::Nanos;

/// Flushes that a drive answers without executing them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum IgnoresFlush {
    /// None: an honest drive.
    #[default]
    Never,
    /// All flushes.
    Always,
    /// The last flushes before a power cut, this many; written `last-8`.
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

/// State of a drive's write cache at power-on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wce {
    /// Not visible or switchable for a host (NVMe VWC = 0).
    #[default]
    Absent,
    /// Enabled.
    On,
    /// Disabled.
    Off,
}

/// Honesty of a drive: which of its promises it keeps.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// State of the write cache at power-on.
    pub wce: Wce,
    /// Flushes that are answered without being executed.
    pub ignores_flush: IgnoresFlush,
    /// True if a driver in front of the drive answers flushes, which never reach the drive.
    pub driver_drops_flush: bool,
    /// Duration of an ignored flush; 20 us by default.
    pub ignored_flush_time: Option<Time>,
    /// True if a FUA write is executed as a plain write.
    pub ignores_fua: bool,
    /// True if the command to switch the write cache succeeds without effect.
    pub ignores_set_wce: bool,
    /// True if the drive reports no volatile cache although one is enabled.
    pub reports_write_through: bool,
    /// True if the contents of the write cache survive a power cut: capacitors, a battery, or a medium to
    /// save it to.
    pub protected: bool,
    /// True if the battery or capacitors of a protected cache are dead; the drive is unaware of it unless
    /// `battery_noticed`.
    pub battery_dead: bool,
    /// True if the drive knows that its battery or capacitors are dead: it writes through until repaired.
    pub battery_noticed: bool,
    /// Damage by a power cut in addition to losses.
    pub damage: Damage,
}

impl Behaviour {
    /// Returns the duration of an ignored flush.
    pub(crate) fn ignored_flush(&self) -> Nanos {
        self.ignored_flush_time.map_or(Nanos::micros(20), |time| time.0)
    }

    /// Returns true if acknowledged writes survive a power cut with the write cache enabled, because they are
    /// preserved or written through.
    pub(crate) const fn keeps_cache(&self) -> bool {
        self.protected && (!self.battery_dead || self.battery_noticed)
    }

    /// Returns true if the write cache survives a power cut and flushes are obeyed: such a cache is called
    /// protected.
    pub const fn survives_power_cut(&self) -> bool {
        self.keeps_cache() && matches!(self.ignores_flush, IgnoresFlush::Never)
    }

    /// Returns true if the drive wrongly believes that its cache survives a power cut.
    pub(crate) const fn is_deceived(&self) -> bool {
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
