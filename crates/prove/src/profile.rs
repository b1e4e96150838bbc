//! Drive profiles: the acknowledged writes that a drive keeps across a power cut, by names that a user types.

use plumb_block::Bytes;
use plumb_caches::{CacheOnOneDrive, ParseCacheError};
use plumb_crash::{Atomicity, FlushKept, FuaKept, Promise};

use crate::drives::FurtherDrive;
use crate::error::{Error, ErrorKind, Result};
use crate::file_system::FileSystem;

/// Kind of drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveProfile {
    /// Name of the profile, with its parameter if it has one: `lying:8`.
    pub name: String,
    /// Description in one line.
    pub about: &'static str,
    /// Guarantees of a drive with this profile.
    pub promise: Promise,
    /// Guarantees of the further drives, if they have profiles of their own.
    pub further: Vec<Promise>,
    /// True if the drive breaks the guarantees of its interface. A file system may fail in any way on such a
    /// drive.
    pub breaks_contract: bool,
    /// True if the drive supports FUA natively. A recording in which FUA arrived as write and flush has fewer
    /// states than such a drive allows, so it cannot be used for one.
    pub has_native_fua: bool,
    /// Write-back cache on two such drives, which lose their power together: the backing device and the log.
    pub cache: Option<CacheOnOneDrive>,
}

/// Names and descriptions of the profiles. `lying` takes the number of the last flushes that are ignored, and
/// `atomic-` takes any size, with the boundary that an atomic write must not cross.
pub const PROFILES: [(&str, &str); 9] = [
    ("volatile", "a volatile write cache, honest flushes, no FUA"),
    ("volatile-fua", "a volatile write cache, honest flushes, native FUA"),
    ("write-through", "no volatile write cache: only what is in flight is at risk"),
    ("protected", "a write cache that survives a power cut (power-loss protection, battery)"),
    ("atomic-4k", "a volatile write cache, and aligned writes of 4 KiB that never tear"),
    ("atomic-8k", "a volatile write cache, and writes within an aligned 8 KiB that never tear"),
    (
        "atomic-16k",
        "a volatile write cache, and writes within an aligned 16 KiB that never tear (or any SIZE:BOUNDARY)",
    ),
    ("lying", "ignores every flush (or the last N: lying:N)"),
    ("discard-keeps", "a volatile write cache, and discarded blocks that may keep what they held"),
];

impl DriveProfile {
    /// Checks that this kernel may mount a file system that such a drive has left.
    ///
    /// # Errors
    /// [`Refused`](ErrorKind::Refused) if the mount might crash the kernel.
    pub fn may_be_mounted(&self, file_system: FileSystem) -> Result<()> {
        if !self.breaks_contract || file_system == FileSystem::None {
            return Ok(());
        }
        let what = format!(
            "a `{}` drive breaks its contract, and a kernel may crash when it mounts the {file_system} on it: use --fs none, or \
             give --mount-here on a machine that may crash",
            self.name
        );
        Err(Error::new(ErrorKind::Refused, what))
    }

    /// Returns the profiles with these names, as [`parse`](Self::parse) and [`beside`](Self::beside) do.
    /// States of drives that break their contract may crash the kernel that mounts them.
    ///
    /// # Errors
    /// A usage error if a profile does not exist or is named twice, or if not all are below the same cache; a
    /// refusal if such a state would be mounted and `mount_here` does not permit it.
    pub fn parse_all(
        typed: &[String],
        logical_block: Bytes,
        file_system: FileSystem,
        further: &[FurtherDrive],
        mount_here: bool,
    ) -> Result<Vec<Self>> {
        let mut profiles: Vec<Self> = Vec::new();
        for name in typed {
            let profile = Self::parse(name, logical_block)?.beside(further, logical_block)?;
            if profiles.contains(&profile) {
                return Err(Error::usage(format!("--drive: `{name}` is given twice")));
            }
            if profiles.first().is_some_and(|first| first.cache != profile.cache) {
                return Err(Error::usage(format!(
                    "--drive: `{name}` needs another recording than `{}`: a run records once, over one cache \
                     or none",
                    typed[0]
                )));
            }
            if !mount_here {
                profile.may_be_mounted(file_system)?;
            }
            profiles.push(profile);
        }
        Ok(profiles)
    }

    /// Returns the profile with a name, for a drive whose logical blocks have `logical_block` bytes. The
    /// prefix `cache:`, with an optional suffix such as `?size=8M&mode=ordered`, selects a cache on such
    /// drives.
    ///
    /// # Errors
    /// If the profile does not exist.
    pub fn parse(typed: &str, logical_block: Bytes) -> Result<Self> {
        let Some(rest) = typed.strip_prefix("cache:") else { return Self::of_drive(typed, logical_block) };
        let (drive, cache) = rest.split_once('?').unwrap_or((rest, ""));
        let cache = cache.parse().map_err(|error: ParseCacheError| Error::usage(error.to_string()))?;
        Ok(Self { name: typed.to_owned(), cache: Some(cache), ..Self::of_drive(drive, logical_block)? })
    }

    /// Returns the profile of the first of several drives, combined with the profiles of the further ones.
    ///
    /// # Errors
    /// If a profile does not exist, or is that of a cache.
    pub fn beside(mut self, further: &[FurtherDrive], logical_block: Bytes) -> Result<Self> {
        for FurtherDrive { directory, profile, .. } in further {
            let own = profile.as_deref().map(|typed| Self::of_drive(typed, logical_block)).transpose();
            let own =
                own.map_err(|error| Error::usage(format!("--drive-at {}: {error}", directory.display())))?;
            let own = own.as_ref();
            self.further.push(own.map_or(self.promise, |own| own.promise));
            self.breaks_contract |= own.is_some_and(|own| own.breaks_contract);
            self.has_native_fua |= own.is_some_and(|own| own.has_native_fua);
        }
        Ok(self)
    }

    fn of_drive(typed: &str, logical_block: Bytes) -> Result<Self> {
        let unknown = || {
            let expected = PROFILES.map(|(name, _)| name).join(", ");
            Error::usage(format!(
                "`{typed}` is not a drive profile: expected one of {expected}, such as lying:8, or a cache, such as \
                 cache:volatile"
            ))
        };
        let (name, figure) =
            typed.split_once(':').map_or((typed, None), |(name, figure)| (name, Some(figure)));
        let atomicity =
            name.strip_prefix("atomic-").map(|unit| atomicity(typed, unit, figure, logical_block));
        let atomicity = atomicity.transpose()?;
        let figure = figure.filter(|_| atomicity.is_none());
        let listed = if atomicity.is_some() { ATOMIC } else { name };
        let (_, about) = PROFILES.into_iter().find(|(known, _)| *known == listed).ok_or_else(unknown)?;
        let count = figure.map(str::parse).transpose().map_err(|_| unknown())?;
        let has_native_fua = name == "volatile-fua";
        let fua = if has_native_fua { FuaKept::Honoured } else { FuaKept::Ignored };
        let volatile = Promise { fua, ..Promise::VOLATILE };
        let volatile = Promise { atomicity: atomicity.unwrap_or(volatile.atomicity), ..volatile };
        let promise = match (name, count) {
            ("write-through" | "protected", None) => Promise::DURABLE,
            ("lying", None) => Promise { flush: FlushKept::Never, ..volatile },
            ("lying", Some(count)) => Promise { flush: FlushKept::AllButLast(count), ..volatile },
            ("discard-keeps", None) => Promise { discard_zeroes: false, ..volatile },
            (_, None) => volatile,
            (_, Some(_)) => return Err(unknown()),
        };
        Ok(Self {
            name: typed.to_owned(),
            about,
            promise,
            further: Vec::new(),
            breaks_contract: name == "lying",
            has_native_fua,
            cache: None,
        })
    }
}

/// Profile whose description serves those with any other atomic unit.
const ATOMIC: &str = "atomic-16k";

/// Returns the atomicity of a drive whose writes of up to `unit` never tear if they do not cross a multiple
/// of `boundary`. The default boundary is the unit; 0 means none.
fn atomicity(typed: &str, unit: &str, boundary: Option<&str>, logical_block: Bytes) -> Result<Atomicity> {
    let wrong = || {
        Error::usage(format!(
            "`{typed}`: expected atomic-SIZE or atomic-SIZE:BOUNDARY with sizes in logical blocks of {logical_block}, such as \
             atomic-16k, atomic-16k:128k, or atomic-16k:0 for no boundary"
        ))
    };
    let size = |typed: &str| typed.parse::<Bytes>().map_err(|_| wrong());
    let unit = size(unit)?;
    let boundary = boundary.map_or(Ok(unit), size)?;
    // A single block is always atomic.
    let blocks = |size: Bytes| if size < logical_block { 1 } else { size.0 / logical_block.0.max(1) };
    let is_whole = |size: Bytes| size < logical_block || size.0.is_multiple_of(logical_block.0.max(1));
    match unit.0 {
        0 => Err(wrong()),
        _ if !is_whole(unit) || !is_whole(boundary) || (boundary.0 != 0 && boundary < unit) => Err(wrong()),
        _ if boundary.0 == 0 => Ok(Atomicity { unit: blocks(unit), boundary: 0 }),
        _ => Ok(Atomicity { unit: blocks(unit), boundary: blocks(boundary) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_is_known_by_its_name() {
        for (name, _) in PROFILES {
            assert_eq!(DriveProfile::parse(name, Bytes(512)).unwrap().name, name);
        }
        let cached = DriveProfile::parse("cache:protected?mode=ordered", Bytes(512)).unwrap();
        assert_eq!(cached.promise, Promise::DURABLE);
        assert_eq!(
            cached.cache.map(|cache| cache.mode),
            "mode=ordered".parse().map(|cache: CacheOnOneDrive| cache.mode).ok()
        );
        let lying = DriveProfile::parse("lying:8", Bytes(512)).unwrap();
        assert_eq!((lying.promise.flush, lying.breaks_contract), (FlushKept::AllButLast(8), true));
    }

    #[test]
    fn atomic_writes_have_any_size_and_boundary() {
        let blocks = |typed: &str, block| {
            DriveProfile::parse(typed, Bytes(block)).map(|profile| {
                let Atomicity { unit, boundary } = profile.promise.atomicity;
                (unit, boundary)
            })
        };
        for (typed, block, expected) in [
            ("atomic-4k", 512, (8, 8)),
            ("atomic-4k", 4096, (1, 1)),
            ("atomic-8k", 4096, (2, 2)),
            ("atomic-16k", 512, (32, 32)),
            ("atomic-32k:128k", 4096, (8, 32)),
            ("atomic-16k:0", 4096, (4, 0)),
        ] {
            assert_eq!(blocks(typed, block).unwrap(), expected, "{typed}");
        }
        for typed in ["atomic-", "atomic-x", "atomic-0", "atomic-10k", "atomic-16k:8k", "atomic-16k:18k"] {
            let error = blocks(typed, 4096).unwrap_err().to_string();
            assert!(error.contains("atomic-SIZE:BOUNDARY") && error.contains(typed), "{error}");
        }
    }

    #[test]
    fn a_wrong_name_is_told_with_those_that_there_are() {
        for typed in ["", "volatil", "lying:", "lying:x", "volatile:2", "cache:volatil"] {
            let error = DriveProfile::parse(typed, Bytes(512)).unwrap_err().to_string();
            let wrong = format!("`{}`", typed.trim_start_matches("cache:"));
            assert!(error.contains("write-through") && error.contains(&wrong), "{error}");
        }
    }
}
