//! Balance of a load: source or destination of the bytes that the application moved.
//!
//! For writes: application bytes = overwritten in memory + still dirty + written to the devices. For reads:
//! application bytes = served from memory + read from the devices. Known dirty bytes are subtracted first,
//! since mirrors write every byte several times. The devices may also move more than the application
//! requested: journal, metadata, read-ahead, other programs.

use plumb_measure::FlushesOf;

use crate::document::Sides;
use crate::quantity::{bytes, percent};

/// Parts of the application's bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// True for writes, false for reads.
    pub write: bool,
    /// Bytes that the application moved.
    pub application: f64,
    /// Bytes that never left memory: reads served from it, writes overwritten in it.
    pub memory: f64,
    /// Bytes still dirty in memory at the end; zero for reads.
    pub dirty: f64,
    /// Bytes that the devices moved for the application.
    pub device: f64,
    /// Bytes that the devices moved in addition: journal, metadata, read-ahead, other programs, older dirty
    /// pages.
    pub beyond: f64,
    /// True if the dirty bytes are known.
    pub dirty_known: bool,
    /// True if the devices' bytes include those of all programs, so that the run's own share is unknown.
    pub of_all: bool,
}

impl Balance {
    /// Returns the balance of the writes or reads that moved `bytes`; `None` if the devices' bytes are
    /// unknown, or the application moved nothing.
    pub fn from_sides(write: bool, bytes: u64, sides: &Sides) -> Option<Self> {
        let storage = sides.storage.as_ref()?;
        let whose = storage.attribution.as_ref();
        let own = whose.and_then(|whose| whose.own_write_bytes).filter(|_| write);
        let of_all = own.is_none() && whose.is_some_and(|whose| whose.flushes == FlushesOf::AllPrograms);
        let (moved, dirty_after) = match write {
            true => (storage.write_bytes, sides.dirty_bytes_after),
            false => (storage.read_bytes, Some(0)),
        };
        let (application, moved) = (bytes as f64, moved as f64);
        if application <= 0.0 {
            return None;
        }
        // Mirrors write every byte several times, so the known dirty bytes take precedence over the devices'
        // bytes.
        let dirty = (dirty_after.unwrap_or(0) as f64).min(application);
        let device = own.map_or(moved, |own| moved.min(own as f64)).min(application - dirty);
        Some(Self {
            write,
            of_all: of_all && device > 0.0,
            application,
            memory: application - device - dirty,
            dirty,
            device,
            beyond: moved - device,
            dirty_known: dirty_after.is_some(),
        })
    }

    /// Returns the share of the application's bytes that the devices moved, 0 to 1.
    pub fn device_share(&self) -> f64 {
        self.device / self.application
    }

    /// Returns the parts with their names, in the order memory, dirty, device. Empty parts are left out.
    pub fn parts(&self) -> Vec<(&'static str, f64, String)> {
        let memory = match (self.write, self.dirty_known) {
            (true, true) => "overwritten in memory",
            (true, false) => "overwritten in memory or still dirty",
            (false, _) => "from memory",
        };
        let device = if self.write { "written to the devices" } else { "from the devices" };
        [
            ("memory", self.memory, memory),
            ("dirty", self.dirty, "still dirty in memory"),
            ("device", self.device, device),
        ]
        .into_iter()
        .filter(|(_, part, _)| *part > 0.0)
        .map(|(class, part, what)| {
            (
                class,
                part / self.application,
                format!("{} {what} ({})", bytes(part), percent(part / self.application)),
            )
        })
        .collect()
    }

    /// Describes a balance with a single part.
    fn only(&self) -> &'static str {
        match (self.write, self.device > 0.0, self.dirty > 0.0) {
            (true, true, _) => "written to the devices",
            (true, false, true) => "still dirty in memory",
            (true, false, false) => "kept in memory",
            (false, true, _) => "from the devices",
            (false, false, _) => "from memory",
        }
    }

    /// Returns the calculation in words, with a conclusion.
    pub fn sentence(&self) -> String {
        let parts: Vec<String> = self.parts().into_iter().map(|(_, _, text)| text).collect();
        let verb = if self.write { "written" } else { "read" };
        let sum = match parts.as_slice() {
            [_] => {
                format!("{} {verb} by the application, all of it {}.", bytes(self.application), self.only())
            }
            _ => format!("{} {verb} by the application = {}.", bytes(self.application), parts.join(" + ")),
        };
        let so = match self.device_share() {
            _ if self.of_all => {
                " What the devices moved is of all programs: how much of it is of this load is not known."
            }
            share if share < 0.05 => " These figures are the speed of memory, not of the storage.",
            share if share < 0.5 => " Most of this is the speed of memory.",
            share if share < 0.95 => " Part of this is the speed of memory.",
            _ => " These figures are of the storage.",
        };
        let beyond = if self.beyond > 0.01 * self.application {
            let what = if self.write {
                "journal, metadata, older pages or other programs"
            } else {
                "read-ahead or other programs"
            };
            format!(" The devices moved {} more: {what}.", bytes(self.beyond))
        } else {
            String::new()
        };
        format!("{sum}{so}{beyond}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn balance(name: &str) -> Balance {
        let sides = fixture::phase(&mut fixture::virtual_machine(), name).clone();
        Balance::from_sides(name.starts_with("write"), sides.application.bytes, &sides).unwrap()
    }

    #[test]
    fn every_balance_adds_up() {
        for name in ["read-cached", "read-direct", "write-cached", "write-direct"] {
            let balance = balance(name);
            let sum = balance.memory + balance.dirty + balance.device;
            assert!((sum - balance.application).abs() < 1.0, "{name}: {balance:?}");
            let shares: f64 = balance.parts().iter().map(|(_, share, _)| share).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn a_mirror_does_not_turn_dirty_memory_into_storage() {
        let mut document = fixture::virtual_machine();
        let sides = fixture::phase(&mut document, "write-cached");
        let bytes = sides.application.bytes;
        sides.dirty_bytes_after = Some(bytes / 10 * 8);
        sides.storage.as_mut().unwrap().write_bytes = bytes / 10 * 6;
        let balance = Balance::from_sides(true, bytes, sides).unwrap();
        assert!((balance.device_share() - 0.2).abs() < 1e-6, "{balance:?}");
        assert!(balance.memory.abs() < 10.0 && balance.beyond > 0.0, "{balance:?}");
    }

    #[test]
    fn cached_loads_are_memory_and_direct_ones_are_storage() {
        assert!(balance("read-cached").sentence().contains("speed of memory"));
        assert!(balance("write-cached").sentence().contains("still dirty"));
        assert!(balance("read-direct").sentence().contains("of the storage"));
        assert!(
            balance("write-direct").sentence().contains("moved 93.8 MiB more"),
            "{}",
            balance("write-direct").sentence()
        );
    }
}
