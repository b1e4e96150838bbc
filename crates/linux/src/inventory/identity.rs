//! Permanent identifiers of devices, which `--destroy` takes.
//!
//! | device | words |
//! |---|---|
//! | disk | its serial, its WWN or other stable identifier, what a survey of its write path calls its identity, and the names that link to it in /dev/disk/by-id |
//! | partition | each of its disk's words with `-partN`, as in /dev/disk/by-id |
//! | loop device | `loop3=/path/of/the/file`; a partition of it `loop3p1=/path/of/the/file` |
//! | no identity at all (zram, ram) | the kernel's name |
//!
//! An identifier that another disk of this machine shares (cheap USB bridges, two namespaces of one NVMe
//! controller) is ambiguous: it is then prefixed with the kernel's name, `sda=WORD`.

use super::Inventory;
use super::block::Block;
use crate::tree::Tree;

/// Attributes with identifiers, below the directory of a disk, the best first: virtio-blk; NVMe and MMC;
/// NVMe; SCSI; device mapper; md.
const WORDS: [&str; 8] =
    ["serial", "device/serial", "wwid", "device/wwid", "uuid", "device/cid", "dm/uuid", "md/uuid"];

impl Inventory {
    /// Returns the identifiers of `block`, starting with the one to show. Never empty. `surveyed` returns a
    /// survey's name of a disk, which may come from the drive itself.
    pub fn identities(
        &self,
        tree: &dyn Tree,
        block: &Block,
        surveyed: impl FnOnce(&Block) -> Option<String>,
    ) -> Vec<String> {
        let disk = block.partition.as_ref().and_then(|partition| self.get(&partition.disk)).unwrap_or(block);
        if let Some(backing) = disk.backing_file() {
            return vec![format!("{}={backing}", block.name)];
        }
        let suffix = block
            .partition
            .as_ref()
            .map_or_else(String::new, |partition| format!("-part{}", partition.number));
        let words = words(tree, disk);
        let others = self.words_of_others(tree, disk);
        let (shared, mut own): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| others.contains(word));
        let surveyed = surveyed(disk).map(|word| single_spaced(&word));
        own.extend(
            surveyed.filter(|word| is_identity(word) && !own.contains(word) && !others.contains(word)),
        );
        let mut identities: Vec<String> = own.into_iter().map(|word| word + &suffix).collect();
        for link in links_to(tree, block) {
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

    fn words_of_others(&self, tree: &dyn Tree, disk: &Block) -> Vec<String> {
        // The boot areas of an eMMC are on the same chip. The paths below a multipath NVMe namespace are
        // hidden.
        let same_chip = |name: &str| disk.name.starts_with("mmcblk") && name.starts_with(&disk.name);
        let others = self.blocks().filter(|other| other.partition.is_none() && !other.hidden);
        let others = others.filter(|other| other.name != disk.name && !same_chip(&other.name));
        others.flat_map(|other| words(tree, other)).collect()
    }
}

/// Returns the identifiers in /sys of a disk.
fn words(tree: &dyn Tree, disk: &Block) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let from_files = WORDS.iter().filter_map(|file| tree.text(&format!("{}/{file}", disk.sysfs)).ok());
    for word in unit_serial(tree, disk).into_iter().chain(from_files) {
        let word = single_spaced(&word);
        if is_identity(&word) && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Returns the unit serial number of a SCSI disk, which follows a header of four bytes (SPC-6 7.7.19).
fn unit_serial(tree: &dyn Tree, disk: &Block) -> Option<String> {
    let page = tree.read(&format!("{}/device/vpd_pg80", disk.sysfs)).ok()?;
    Some(String::from_utf8_lossy(page.get(4..)?).trim_matches('\0').to_owned())
}

/// Returns the names in /dev/disk/by-id that link to the device.
fn links_to(tree: &dyn Tree, block: &Block) -> Vec<String> {
    let directory = "/dev/disk/by-id";
    let names = tree.list(directory).unwrap_or_default();
    let leads_here =
        |name: &String| tree.canonical(&format!("{directory}/{name}")).is_ok_and(|to| to == block.node());
    names.into_iter().filter(leads_here).collect()
}

/// Returns true if the text can be unique: some drives report only zeroes.
fn is_identity(word: &str) -> bool {
    word.len() >= 3
        && word.chars().any(|c| c.is_ascii_alphanumeric() && c != '0')
        && !word.contains('\u{fffd}')
}

/// Collapses runs of white space in `text`, because drives pad their serials.
pub fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
