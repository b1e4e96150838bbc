//! Cache configurations on this machine in all state directories. They identify backing devices and log
//! devices that bear no mark any more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use plumb_block::Bytes;
use plumb_cache::{Cache, LOG_BLOCK, Leg};
use plumb_linux::inventory::{FileId, identities_at, identities_of};
use plumb_linux::tree::{DeviceNumber, LiveTree, Tree as _};
use plumb_state::places;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::byte_extent::ByteExtent;
use crate::cache::config::{CacheConfig, directory};
use crate::cache::device_place::DevicePlace;
use crate::cache::marker::has_marker;
use crate::cache::marker_search;
use crate::signature::FileSource;

/// Returns all readable configurations: of this user, of root, of services, and of users with a home below
/// /home.
pub fn all() -> Vec<CacheConfig> {
    let homes = std::fs::read_dir("/home").into_iter().flatten().flatten().map(|entry| entry.path());
    let homes = homes.chain([PathBuf::from("/root")]).map(|home| home.join(".local/state/plumb/cache"));
    let mut directories = vec![directory(), places::cache_configurations(Path::new(places::STATE))];
    directories.extend(homes);
    directories.sort();
    directories.dedup();
    directories.iter().flat_map(|directory| in_directory(directory)).collect()
}

/// Returns the sizes of the cached devices, from the configurations, or where these lack it from the log.
pub fn sizes(configs: &[CacheConfig]) -> Vec<Bytes> {
    configs
        .iter()
        .filter_map(|config| config.backing_size.map(Bytes).or_else(|| size_by_log(config)))
        .collect()
}

/// Returns the size of the cached device from a superblock at the start of a log device.
fn size_by_log(config: &CacheConfig) -> Option<Bytes> {
    let mut found = config.legs.iter().filter_map(|leg| leg_at(leg).ok()?);
    found.find(|leg| leg.settings.cache == config.uuid).map(|leg| leg.backing_size)
}

/// Opens `path` read-only, without disturbing its users.
///
/// # Errors
/// Fails as open(2).
pub fn opened(path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

/// Returns the leg described by a superblock at the start of the device at `place`; `None` without one. The
/// log may be in use.
///
/// # Errors
/// Fails as open(2) and pread(2).
pub fn leg_at(place: &DevicePlace) -> Result<Option<Leg>, Errno> {
    let mut blocks = vec![0; 2 * LOG_BLOCK as usize];
    let begin = place.part.map_or(0, |part| part.offset);
    let read = rustix::io::pread(&opened(&place.path)?, &mut blocks, begin)?;
    let mut found =
        blocks[..read].chunks_exact(LOG_BLOCK as usize).filter_map(|block| Cache::leg_of(block).ok()?);
    Ok(found.next())
}

/// Returns true if an open file or device is the backing device of a cache, by its marker or by a
/// configuration.
pub fn is_backing(file: BorrowedFd<'_>, size: Bytes) -> bool {
    let configs = all();
    // Read errors are reported by the code that looks for signatures.
    let found = marker_search::find(&FileSource { file, size: size.0 }, &sizes(&configs)).unwrap_or_default();
    has_marker(file) || !found.is_empty() || !of_backing(file, configs).is_empty()
}

/// Part of a device that is a log device in a configuration.
pub(crate) struct LogPart {
    pub part: ByteExtent,
    /// True if the part contains the log of that cache.
    pub(crate) bears_log: bool,
}

/// Returns the parts of the open `file` that are log devices in configurations.
pub(crate) fn log_parts(file: BorrowedFd<'_>) -> Vec<LogPart> {
    let mut found = Vec::new();
    for config in all() {
        let moves_to = config.moves_to.iter().flat_map(|new| &new.legs);
        for place in config.legs.iter().chain(moves_to) {
            let Some(part) = place.part else { continue };
            if leads_to(&place.path, file) == Ok(true) {
                let leg = leg_at(place).ok().flatten();
                found.push(LogPart {
                    part,
                    bears_log: leg.is_some_and(|leg| leg.settings.cache == config.uuid),
                });
            }
        }
    }
    found
}

/// Reads the configurations in one directory, skipping unreadable ones.
fn in_directory(directory: &Path) -> Vec<CacheConfig> {
    let names = CacheConfig::names(directory).unwrap_or_default();
    names.iter().filter_map(|name| CacheConfig::load(directory, name).ok()).collect()
}

/// Returns the configurations among `all` whose backing device is the open `file`: the same file or device,
/// or one a loop device over the other.
pub fn of_backing(file: BorrowedFd<'_>, all: Vec<CacheConfig>) -> Vec<CacheConfig> {
    all.into_iter().filter(|config| leads_to(&config.backing, file) == Ok(true)).collect()
}

/// Returns true if `path` leads to the open `file`, or to an object with the same contents.
///
/// # Errors
/// Fails as stat(2) and fstat(2). ENOENT and ENOTDIR mean that `path` leads nowhere; after others it is
/// unknown.
pub fn leads_to(path: &str, file: impl AsFd) -> Result<bool, Errno> {
    let file = file.as_fd();
    let (named, open) = (rustix::fs::stat(path)?, rustix::fs::fstat(file)?);
    let open = places(&open, &|| identities_of(file));
    Ok(places(&named, &|| identities_at(Path::new(path))).iter().any(|place| open.contains(place)))
}

/// Returns the identities of a device and of the storage below a loop device; for a file its `identities`.
fn places(stat: &Stat, identities: &dyn Fn() -> Vec<FileId>) -> Vec<FileId> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
        return identities();
    }
    let mut places = vec![FileId { device: 0, inode: stat.st_rdev }];
    let number = DeviceNumber::from_stat(stat.st_rdev);
    let below = LiveTree::new().text(&format!("/sys/dev/block/{number}/loop/backing_file"));
    if let Ok(path) = below
        && let Ok(stat) = rustix::fs::stat(path.as_str())
    {
        places.extend(self::places(&stat, &|| identities_at(Path::new(&path))));
    }
    places
}
