//! On what the devices of a cache lie: whether a log keeps what it acknowledges in the mode `protected`, and
//! whether devices that are to fail apart are on one disk.

use std::os::fd::AsFd as _;

use plumb_cache::{Layout, Mode};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::{UnflushedLog, disks_below, survey_unflushed_log};
use plumb_text::shell_word;

use super::config::CacheConfig;
use super::device_place::DevicePlace;
use super::known::opened;
use crate::error::{Error, Result};
use crate::storage::{PartOfFile, overlap_parts};

/// Refuses the mode `protected` over a device or file of the log that loses with the power what it has
/// acknowledged, where that is evident. What is not there, or not of this machine, is not looked at.
pub(super) fn keeps_unflushed(mode: Mode, leg: &str) -> Result<()> {
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

/// Returns what speaks against the way in which the devices of a cache lie, a sentence each.
pub(super) fn warnings(config: &CacheConfig) -> Vec<String> {
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

/// Returns the devices that have a disk in common: of a mirror, and a log with its backing device.
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

/// Refuses devices of which two are the same storage, or have a part of it in common. What cannot be opened
/// is left to whoever needs it.
pub(super) fn are_different(places: &[DevicePlace]) -> Result<()> {
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
