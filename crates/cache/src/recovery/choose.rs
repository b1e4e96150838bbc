//! Selection of the superblock that counts, and the check that the devices belong to the cache. Each refusal
//! is a sentence with advice.

use crate::devices::Devices;
use crate::format::superblock::{LegState, Superblock};
use crate::settings::{Identity, Layout, MissingLegs, Options};

/// Superblocks of a present leg.
#[derive(Debug, Clone, Default)]
pub(super) struct LegFound {
    /// Last intact version of the superblock: the one that counts on this leg.
    pub(super) newest: Option<Superblock>,
    /// Slot for the next version: the one without the last intact version.
    pub(super) next_slot: usize,
    /// Number of slots read, at either end.
    pub(super) slots_read: usize,
    /// True if a superblock at the start of the leg is intact.
    pub(super) has_front: bool,
    /// Newer format version that was found.
    pub(super) newer: Option<u32>,
}

/// Returns the superblock by which the cache is opened, with missing legs excluded.
pub(super) fn choose(
    found: &[Option<LegFound>],
    devices: &Devices,
    options: &Options,
) -> Result<Superblock, String> {
    let name = |leg: usize| devices.leg(leg).map_or_else(String::new, |info| info.name.clone());
    for (leg, found) in found.iter().enumerate() {
        if let Some(version) = found.as_ref().and_then(|found| found.newer) {
            return Err(format!(
                "{} has a cache of format version {version}, written by a later version of plumb: use that \
                 version",
                name(leg)
            ));
        }
    }
    let newest: Vec<_> =
        found.iter().map(|found| found.as_ref().and_then(|found| found.newest.as_ref())).collect();
    // A leg being copied to may have a superblock of higher rank than the others, which have continued
    // without it.
    let best = newest.iter().flatten().max_by_key(|found| (found.calls_itself_live(), found.rank()));
    let Some(best) = best.copied() else {
        return Err("no device of the log has a superblock of a cache: name the right devices".to_owned());
    };
    for (leg, own) in newest.iter().enumerate() {
        let Some(own) = own else { continue };
        if own.cache != best.cache {
            let (own, best, name) = (own.cache, best.cache, name(leg));
            return Err(format!(
                "{name} is of cache {own}, others are of cache {best}: name the devices of one cache"
            ));
        }
        if usize::from(own.leg) != leg {
            let (name, own) = (name(leg), own.leg);
            return Err(format!(
                "{name} is device {own} of the log and was named as device {leg}: name them in their order"
            ));
        }
        // Two legs that have each lost the other may both hold unique data.
        let lost =
            |superblock: &Superblock, leg: u8| superblock.legs.get(usize::from(leg)) == Some(&LegState::Lost);
        let have_parted = lost(own, best.leg) && lost(best, own.leg) && !lost(own, own.leg);
        let is_other = own.epoch == best.epoch && own.legs != best.legs && !lost(best, own.leg);
        if have_parted || is_other {
            return Err(
                "devices of the log were written without each other: decide which of them to keep, remove \
                 the others, and serve with --degraded"
                    .to_owned(),
            );
        }
    }
    if let Some(identity) = &options.identity {
        is_expected(best, identity)?;
    }
    if best.legs.len() != found.len() {
        let (count, given) = (best.legs.len(), found.len());
        return Err(format!("the log has {count} devices, and {given} were named: name all"));
    }
    let backing = devices.backing();
    let block = best.geometry.logical_block;
    let has_size =
        backing.size == best.backing_size || (options.grows_backing && backing.size > best.backing_size);
    if !has_size || backing.logical_block.0 != block {
        return Err(format!(
            "the backing device {} has {} in blocks of {}; the cache was made for {} in blocks of {block} B: give the device it was made for",
            backing.name, backing.size, backing.logical_block, best.backing_size
        ));
    }
    let best = Superblock { backing_size: backing.size, ..best.clone() };
    without_missing(best, &newest, devices, options.degraded)
}

/// Checks that the log belongs to the expected cache and backing device, and is not an old copy.
fn is_expected(best: &Superblock, expected: &Identity) -> Result<(), String> {
    let Identity { cache, backing, marked } = *expected;
    let session_min = marked.session;
    if (best.cache, best.backing) != (cache, backing) {
        return Err(format!(
            "the log is that of cache {} for the backing device {}; expected cache {cache} for {backing}: name the devices that belong together",
            best.cache, best.backing
        ));
    }
    if best.session < session_min {
        return Err(format!(
            "the log is of session {}, but the backing device was last used in session {session_min}: this \
             log is an old copy, or a device that had failed, and lacks later writes; bring back the log \
             that was served last",
            best.session
        ));
    }
    // A sealed log cannot record that its tail has advanced.
    if best.tail.sequence < marked.tail && !marked.is_sealed {
        return Err(format!(
            "the log is an old copy: it begins with record {}, but the backing device is marked as having \
             everything before record {}, and writing this log back would replace flushed data by older \
             versions; bring back the log that was served last",
            best.tail.sequence, marked.tail
        ));
    }
    Ok(())
}

/// Excludes missing legs.
fn without_missing(
    mut best: Superblock,
    newest: &[Option<&Superblock>],
    devices: &Devices,
    degraded: MissingLegs,
) -> Result<Superblock, String> {
    let size = best.geometry.leg_size();
    for (leg, own) in newest.iter().enumerate() {
        let (state, info) = (best.legs[leg], devices.leg(leg));
        if state == LegState::Lost {
            continue;
        }
        let what = match (info, own) {
            (None, _) => "is missing".to_owned(),
            (Some(info), None) => format!("({}) has no whole superblock", info.name),
            (Some(info), Some(_)) if info.size < size => {
                format!("({}) has {} bytes, but the log needs {}", info.name, info.size.0, size.0)
            }
            (Some(_), Some(_)) => continue,
        };
        // A leg that was being copied to has nothing unique (order (g)): nothing is lost with it.
        if state == LegState::Resilvering {
            best.lose(leg);
            continue;
        }
        if best.legs.len() == 1 {
            return Err(format!("the only device of the log {what}: bring it back as it was"));
        }
        if best.geometry.layout == Layout::Stripe {
            return Err(format!(
                "device {leg} of the log {what}, and each device of a stripe holds data that no other has: \
                 bring it back"
            ));
        }
        if !degraded.allows(leg) {
            return Err(format!(
                "device {leg} of the log {what}, and may hold data that no other has: bring it back, or \
                 serve with --degraded and lose that data"
            ));
        }
        best.lose(leg);
    }
    if best.live().next().is_none() {
        return Err("none of the remaining devices has the whole log: bring one back that has".to_owned());
    }
    Ok(best)
}
