//! Search for the devices of a cache by the UUIDs on them, independent of their kernel names.
//!
//! The configured path is checked first. If it leads nowhere or to something else, all block devices without
//! holders (`/sys/class/block/NAME/holders`) are checked. A single device with the UUID replaces the
//! configured path; two of them are copies of each other, and neither is used.

use std::os::fd::AsFd as _;
use std::path::Path;

use plumb_guard::cache::config::CacheConfig;
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::known::{leg_at, opened, sizes};
use plumb_guard::cache::marker::Marker;
use plumb_guard::cache::marker_search;
use plumb_guard::signature::FileSource;
use plumb_linux::tree::{LiveTree, Tree as _};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::member::stable_name;

/// Returns `config` with the present path of its backing device, or the configured one if the device is not
/// found.
pub(crate) fn backing(config: CacheConfig) -> CacheConfig {
    let backing = now_at(&config.backing, |path| is_backing(path, &config));
    CacheConfig { backing, ..config }
}

/// Returns `config` with the present paths of the devices of its log. A device that is not found keeps its
/// configured path.
pub(crate) fn legs(config: CacheConfig) -> CacheConfig {
    let legs = config.legs.iter().enumerate();
    let at = |place: &DevicePlace, path: &str| DevicePlace { path: path.to_owned(), ..place.clone() };
    let now = |(number, leg): (usize, &DevicePlace)| {
        at(leg, &now_at(&leg.path, |path| is_leg(&at(leg, path), &config, number)))
    };
    let legs = legs.map(now).collect();
    CacheConfig { legs, ..config }
}

/// Returns true for each device of the log that is certainly not there, under no local path. Devices are only
/// searched if a configured path leads nowhere.
pub(crate) fn missing_legs(config: &CacheConfig) -> Vec<bool> {
    let is_missing = |place: &DevicePlace| leads_nowhere(&place.path);
    match config.legs.iter().any(is_missing) {
        true => legs(config.clone()).legs.iter().map(is_missing).collect(),
        false => vec![false; config.legs.len()],
    }
}

/// Returns true if the backing device is certainly not there, under no local path. One that is there is not
/// read, because it may be asleep.
pub(crate) fn is_backing_missing(config: &CacheConfig) -> bool {
    leads_nowhere(&config.backing) && leads_nowhere(&backing(config.clone()).backing)
}

fn leads_nowhere(path: &str) -> bool {
    is_local(path) && rustix::fs::stat(path).is_err_and(is_gone)
}

fn is_local(path: &str) -> bool {
    Path::new(path).is_absolute()
}

fn is_gone(errno: Errno) -> bool {
    [Errno::NOENT, Errno::NXIO, Errno::NODEV].contains(&errno)
}

/// Returns true if the configured path of the backing device leads to something readable that does not have
/// the marker of this cache.
pub(crate) fn is_stranger_at_backing(config: &CacheConfig) -> bool {
    is_backing(&config.backing, config) == Ok(false)
}

/// Returns the path of the device that `is_it` recognises: `path` itself if the device is there, or nowhere
/// else.
fn now_at(path: &str, is_it: impl Fn(&str) -> Result<bool, Errno>) -> String {
    let may_be_elsewhere = match is_it(path) {
        Ok(is_it) => !is_it,
        Err(errno) => is_gone(errno),
    };
    // Only a local device can have more than one path.
    if !may_be_elsewhere || !is_local(path) {
        return path.to_owned();
    }
    let tree = LiveTree::new();
    let is_free = |name: &String| {
        let holders = tree.list(&format!("/sys/class/block/{name}/holders"));
        holders.is_ok_and(|holders| holders.is_empty())
    };
    let names = tree.list("/sys/class/block").unwrap_or_default().into_iter().filter(is_free);
    // The kernel writes the slash in a device name (cciss/c0d0) as `!`.
    let nodes = names.map(|name| format!("/dev/{}", name.replace('!', "/")));
    let found: Vec<_> = nodes.filter(|node| is_it(node) == Ok(true)).collect();
    match &*found {
        [node] => stable_name(Path::new(node)).to_str().unwrap_or(node).to_owned(),
        _ => path.to_owned(),
    }
}

fn is_leg(place: &DevicePlace, config: &CacheConfig, number: usize) -> Result<bool, Errno> {
    let leg = leg_at(place)?;
    Ok(leg.is_some_and(|leg| leg.settings.cache == config.uuid && leg.number == number))
}

fn is_backing(path: &str, config: &CacheConfig) -> Result<bool, Errno> {
    let file = opened(path)?;
    let size = rustix::fs::seek(&file, SeekFrom::End(0))?;
    let attribute = Marker::of_file(file.as_fd()).unwrap_or_default();
    let known = sizes(std::slice::from_ref(config));
    let blocks = marker_search::find(&FileSource { file: file.as_fd(), size }, &known);
    let blocks = blocks.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mut markers = attribute.into_iter().chain(blocks.into_iter().map(|found| found.marker));
    Ok(markers.any(|marker| (marker.cache, marker.backing) == (config.uuid, config.backing_uuid)))
}
