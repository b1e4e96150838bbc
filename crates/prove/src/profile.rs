//! Drive profiles: what a drive keeps of what it says, by names that a user types.

use plumb_block::Bytes;
use plumb_crash::{Atomicity, FlushKept, FuaKept, Promise};

/// A kind of drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveProfile {
    /// Its name, with its figure if it has one: `lying:8`.
    pub name: String,
    /// One line on what it does.
    pub about: &'static str,
    /// What it keeps.
    pub promise: Promise,
    /// Whether it breaks what its interface promises. A file system may do anything over such a drive.
    pub breaks_contract: bool,
    /// Whether it does FUA by itself. A recording in which FUA arrived as write and flush has fewer states than such a drive, so
    /// that it cannot be judged by one.
    pub has_native_fua: bool,
}

/// There is no such profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not a drive profile: expected one of {}, such as lying:8", expected())]
pub struct UnknownProfile {
    /// What was typed.
    pub typed: String,
}

/// The names, with what each does. `lying` takes the number of flushes that are ignored last.
pub const PROFILES: [(&str, &str); 7] = [
    ("volatile", "a volatile write cache, honest flushes, no FUA"),
    ("volatile-fua", "a volatile write cache, honest flushes, native FUA"),
    ("write-through", "no volatile write cache: only what is in flight is at risk"),
    ("protected", "a write cache that survives a power cut (power-loss protection, battery)"),
    ("atomic-4k", "a volatile write cache, and aligned writes of 4 KiB that never tear"),
    ("lying", "ignores every flush (or the last N: lying:N)"),
    ("discard-keeps", "a volatile write cache, and discarded blocks that may keep what they held"),
];

fn expected() -> String {
    PROFILES.map(|(name, _)| name).join(", ")
}

impl DriveProfile {
    /// The profile of a name, of a drive whose logical blocks have `logical_block` bytes.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(typed: &str, logical_block: Bytes) -> Result<Self, UnknownProfile> {
        let unknown = || UnknownProfile { typed: typed.to_owned() };
        let (name, figure) =
            typed.split_once(':').map_or((typed, None), |(name, figure)| (name, Some(figure)));
        let (_, about) = PROFILES.into_iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
        let count = figure.map(str::parse).transpose().map_err(|_| unknown())?;
        let in_4k = 4096 / logical_block.0.clamp(1, 4096);
        let volatile = Promise::VOLATILE;
        let promise = match (name, count) {
            ("write-through" | "protected", None) => Promise::DURABLE,
            ("atomic-4k", None) => {
                Promise { atomicity: Atomicity { unit: in_4k, boundary: in_4k }, ..volatile }
            }
            ("lying", None) => Promise { flush: FlushKept::Never, fua: FuaKept::Ignored, ..volatile },
            ("lying", Some(count)) => Promise { flush: FlushKept::AllButLast(count), ..volatile },
            ("discard-keeps", None) => Promise { discard_zeroes: false, ..volatile },
            (_, None) => volatile,
            (_, Some(_)) => return Err(unknown()),
        };
        Ok(Self {
            name: typed.to_owned(),
            about,
            promise,
            breaks_contract: name == "lying",
            has_native_fua: name == "volatile-fua",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_is_known_by_its_name() {
        for (name, _) in PROFILES {
            assert_eq!(DriveProfile::of(name, Bytes(512)).unwrap().name, name);
        }
        let lying = DriveProfile::of("lying:8", Bytes(512)).unwrap();
        assert_eq!((lying.promise.flush, lying.breaks_contract), (FlushKept::AllButLast(8), true));
    }

    #[test]
    fn a_wrong_name_is_told_with_those_that_there_are() {
        for typed in ["", "volatil", "lying:", "lying:x", "volatile:2"] {
            let error = DriveProfile::of(typed, Bytes(512)).unwrap_err().to_string();
            assert!(error.contains("write-through") && error.contains(&format!("`{typed}`")), "{error}");
        }
    }
}
