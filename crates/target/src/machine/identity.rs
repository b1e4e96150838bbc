//! What names a device for good: the words that `--destroy` takes.
//!
//! | device | words |
//! |---|---|
//! | disk | its serial, its WWN or other stable identifier, what a survey of its write path calls its identity, and the names that link to it in /dev/disk/by-id |
//! | partition | each of its disk's words with `-partN`, as in /dev/disk/by-id |
//! | loop device | `loop3=/path/of/the/file`; a partition of it `loop3p1=/path/of/the/file` |
//! | no identity at all (zram, ram) | the kernel's name |
//!
//! A word that another disk of this machine has too (cheap USB bridges, two namespaces of one NVMe controller) names
//! neither: the kernel's name is then put before it, `sda=WORD`.

use plumb_path::survey_path;

use super::{Block, Machine};
use crate::permission::single_spaced;

/// Where drivers keep identities, below the directory of a disk, the best first: virtio-blk; NVMe and MMC; NVMe; SCSI;
/// device mapper; md.
const WORDS: [&str; 8] =
    ["serial", "device/serial", "wwid", "device/wwid", "uuid", "device/cid", "dm/uuid", "md/uuid"];

impl Machine<'_> {
    /// The words that name `block`, the one to show first. Never empty.
    pub(crate) fn identities(&self, block: &Block) -> Vec<String> {
        let disk = block.part.as_ref().and_then(|part| self.block_named(&part.disk));
        let disk = disk.as_ref().unwrap_or(block);
        if let Some(backing) = self.backing_of(disk) {
            return vec![format!("{}={backing}", block.name)];
        }
        let suffix = block.part.as_ref().map_or_else(String::new, |part| format!("-part{}", part.number));
        let words = self.words(disk);
        let others = self.words_of_others(disk);
        let (shared, mut own): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| others.contains(word));
        let surveyed = self.surveyed(disk).filter(|word| !own.contains(word) && !others.contains(word));
        own.extend(surveyed);
        let mut identities: Vec<String> = own.into_iter().map(|word| word + &suffix).collect();
        for link in self.links_to(block) {
            if !identities.contains(&link) {
                identities.push(link);
            }
        }
        if identities.is_empty() {
            let last = shared.first().map_or_else(String::new, |word| format!("={word}"));
            identities.push(block.name.clone() + &last);
        }
        identities
    }

    /// What a loop device is set up over.
    fn backing_of(&self, disk: &Block) -> Option<String> {
        let backing = self.says(disk, "loop/backing_file");
        (!backing.is_empty()).then_some(backing)
    }

    /// What /sys says of a disk.
    fn words(&self, disk: &Block) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let from_files = WORDS.iter().map(|file| self.says(disk, file));
        for word in self.unit_serial(disk).into_iter().chain(from_files) {
            let word = single_spaced(&word);
            if is_identity(&word) && !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }

    /// SPC-6 7.7.19: the unit serial number page has a header of four bytes.
    fn unit_serial(&self, disk: &Block) -> Option<String> {
        let page = self.tree.read(&format!("{}/device/vpd_pg80", disk.sysfs)).ok()?;
        Some(String::from_utf8_lossy(page.get(4..)?).trim_matches('\0').to_owned())
    }

    fn words_of_others(&self, disk: &Block) -> Vec<String> {
        let names = self.tree.list("/sys/block").unwrap_or_default();
        // The boot areas of an eMMC are the same chip; the paths below a multipath NVMe namespace are hidden.
        let same_chip = |name: &str| disk.name.starts_with("mmcblk") && name.starts_with(&disk.name);
        let others = names.iter().filter(|name| **name != disk.name && !same_chip(name));
        let others = others.filter_map(|name| self.block_named(name));
        others
            .filter(|other| self.says(other, "hidden") != "1")
            .flat_map(|other| self.words(&other))
            .collect()
    }

    /// What the survey of the write path calls the disk; it may ask the drive itself.
    fn surveyed(&self, disk: &Block) -> Option<String> {
        let path = survey_path(self.tree, self.probe, &disk.node()).ok()?;
        let word = single_spaced(path.layer(&disk.name)?.identity.as_deref()?);
        is_identity(&word).then_some(word)
    }

    /// The names in /dev/disk/by-id that link to the device.
    fn links_to(&self, block: &Block) -> Vec<String> {
        let directory = "/dev/disk/by-id";
        let names = self.tree.list(directory).unwrap_or_default();
        let leads_here = |name: &String| {
            self.tree.canonical(&format!("{directory}/{name}")).is_ok_and(|to| to == block.node())
        };
        names.into_iter().filter(leads_here).collect()
    }
}

/// Whether a word can tell one device from another: some drives answer with zeroes.
fn is_identity(word: &str) -> bool {
    word.len() >= 3
        && word.chars().any(|c| c.is_ascii_alphanumeric() && c != '0')
        && !word.contains('\u{fffd}')
}
