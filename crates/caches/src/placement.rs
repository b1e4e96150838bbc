//! Disks below the devices of a cache: whether a log keeps acknowledged writes in the mode `protected`, and
//! whether devices that should fail independently share a disk.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use plumb_cache::{Layout, Mode};
use plumb_guard::cache::config::CacheConfig;
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::known::opened;
use plumb_guard::storage::{PartOfFile, overlap_parts};
use plumb_guard::{Error, Result};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::{UnflushedLog, disks_below, survey_path, survey_unflushed_log};
use plumb_serve::nbd::uri::{Address, Uri};
use plumb_state::whole_file;
use plumb_text::shell_word;

/// Refuses the mode `protected` for a leg that certainly loses acknowledged writes with the power. Missing
/// and remote devices are not checked.
pub(crate) fn keeps_unflushed(mode: Mode, leg: &str) -> Result<()> {
    if mode != Mode::Protected || rustix::fs::stat(leg).is_err() {
        return Ok(());
    }
    let UnflushedLog::Lost(why) = survey_unflushed_log(&LiveTree::new(), &LiveProbe::new(), leg) else {
        return Ok(());
    };
    let found = format!(
        "{why}: in the mode protected, which sends no flush, a power cut would undo acknowledged writes"
    );
    let remedy = "use the mode write-back, or a log on a drive that keeps what it acknowledges, or switch \
                  off the volatile cache of this one (`plumb policy`)";
    Err(Error::refused(leg, found, remedy))
}

/// Returns warnings about the placement of the devices of a cache, a sentence each.
pub(crate) fn warnings(config: &CacheConfig) -> Vec<String> {
    let mut warnings = shared_disks(config);
    let legs = config
        .legs
        .iter()
        .map(|leg| leg.path.as_str())
        .filter(|leg| config.mode == Mode::Protected && rustix::fs::stat(*leg).is_ok());
    for leg in legs {
        match survey_unflushed_log(&LiveTree::new(), &LiveProbe::new(), leg) {
            UnflushedLog::Kept => {}
            UnflushedLog::Lost(why) => warnings.push(format!(
                "the mode is protected, and log {leg} does not keep what it acknowledges ({why}): a power \
                 cut undoes acknowledged writes"
            )),
            UnflushedLog::Unknown(_) => warnings.push(format!(
                "the mode is protected, and whether log {leg} keeps over a power cut what it acknowledges cannot be told (`plumb survey {}`)",
                shell_word(leg)
            )),
        }
    }
    warnings
}

/// Returns warnings about shared disks: of two legs of a mirror, and of a leg and the backing device.
fn shared_disks(config: &CacheConfig) -> Vec<String> {
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    let disks = |path: &str| disks_below(&tree, &probe, path);
    let legs: Vec<_> = config.legs.iter().map(|leg| (leg, disks(&leg.path))).collect();
    let shared = |one: &[String], other: &[String]| one.iter().find(|disk| other.contains(disk)).cloned();
    let (backing, mut warnings) = (disks(&config.backing), Vec::new());
    for (number, (leg, on)) in legs.iter().enumerate() {
        warnings.extend(shared(on, &backing).map(|disk| {
            format!(
                "log {leg} and the backing device {} are both on {disk}: the log makes it no faster, and both are lost with it",
                config.backing
            )
        }));
        let others = legs[..number].iter().filter(|_| config.layout == Layout::Mirror);
        warnings.extend(others.filter_map(|(other, beneath)| {
            let disk = shared(on, beneath)?;
            Some(format!("log {other} and log {leg} are both on {disk}: the mirror is lost with it"))
        }));
    }
    warnings
}

/// Returns true if the device or file `typed`, which may be missing, is on the block device `device`, or is
/// that device.
pub(crate) fn lies_on(typed: &str, device: &str) -> bool {
    let Ok(place) = DevicePlace::parse(typed) else { return false };
    let path = Path::new(&place.path);
    let is_missing = path.symlink_metadata().is_err();
    let path = if is_missing { whole_file::parent_of(path) } else { path };
    let (Some(path), Some(device)) = (path.to_str(), Path::new(device).file_name()) else { return false };
    let found = survey_path(&LiveTree::new(), &LiveProbe::new(), path);
    found.is_ok_and(|found| found.layers.iter().any(|layer| *layer.name == *device))
}

/// Returns true if both URIs lead to the same server on this machine.
pub(crate) fn is_same_export(typed: &str, own: &str) -> bool {
    let address = |uri: &str| uri.parse::<Uri>().map(|uri| uri.address);
    let is_here = |host: &str| {
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|host| host.to_canonical().is_loopback())
    };
    match (address(typed), address(own)) {
        (Ok(Address::Unix(typed)), Ok(Address::Unix(own))) => {
            let place = |path: &Path| std::fs::canonicalize(path).ok();
            typed == own || place(&typed).is_some_and(|typed| Some(typed) == place(&own))
        }
        (Ok(Address::Tcp { host: typed, port }), Ok(Address::Tcp { host: own, port: own_port })) => {
            port == own_port && (typed == own || is_here(&typed))
        }
        _ => false,
    }
}

/// Refuses devices of which two overlap. A device that cannot be opened is skipped; its user will report it.
pub(crate) fn are_different(places: &[DevicePlace]) -> Result<()> {
    let found: Vec<_> = places.iter().filter_map(|place| Some((place, opened(&place.path).ok()?))).collect();
    for (number, (place, file)) in found.iter().enumerate() {
        let one = PartOfFile { file: file.as_fd(), part: place.part };
        for (other, other_file) in &found[..number] {
            if overlap_parts(&one, &PartOfFile { file: other_file.as_fd(), part: other.part })? {
                let found = match (place.part, other.part) {
                    (None, None) => {
                        format!("it is the same device as {other}, or has a part in common with it")
                    }
                    _ => format!("it has bytes in common with {other}"),
                };
                return Err(Error::refused(&place.to_string(), found, "name a different device for each"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_the_same_however_its_server_is_called() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("s");
        std::os::unix::net::UnixListener::bind(&own).unwrap();
        std::os::unix::fs::symlink(&own, directory.path().join("link")).unwrap();
        let unix = |name: &str| format!("nbd+unix:///?socket={}", directory.path().join(name).display());
        assert!(is_same_export(&unix("s"), &unix("s")) && is_same_export(&unix("link"), &unix("s")));
        assert!(!is_same_export(&unix("other"), &unix("s")) && !is_same_export("/dev/null", &unix("s")));
        let own = "nbd://127.0.0.1:7/x";
        assert!(is_same_export("nbd://localhost:7", own) && is_same_export("nbd://[::1]:7/y", own));
        assert!(!is_same_export("nbd://localhost:8", own) && !is_same_export("nbd://192.0.2.1:7", own));
        assert!(is_same_export("nbds://192.0.2.1:7", "nbds://192.0.2.1:7/x"));
    }
}
