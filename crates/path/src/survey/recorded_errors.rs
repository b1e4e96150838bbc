//! Errors that the kernel has recorded for a file system or array and keeps until they are cleared: data may
//! have been lost earlier.
//!
//! ext4 counts errors in the superblock (Documentation/ABI/testing/sysfs-fs-ext4), btrfs in its device tree
//! (fs/btrfs/sysfs.c, `devinfo/N/error_stats`), md in the metadata of a member
//! (Documentation/admin-guide/md.rst, `bad_blocks`).

use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};

/// Directory with an entry for each file system of the ext4 driver.
const EXT4: &str = "/sys/fs/ext4";

impl Surveyor<'_> {
    /// Marks an ext4 file system on `device` with errors recorded since its last fsck.
    pub(super) fn ext4_errors(&self, node: &mut Node, device: &str) {
        let root = format!("{EXT4}/{device}");
        let read = |name: &str| self.tree.text(&format!("{root}/{name}")).ok();
        let number = |name: &str| read(name)?.parse::<u64>().ok();
        let Some(count) = number("errors_count").filter(|count| *count > 0) else { return };
        let inode = number("last_error_ino").filter(|inode| *inode > 0);
        let function = read("last_error_func").filter(|function| !function.is_empty());
        let last: Vec<String> =
            [function.map(|function| format!("in {function}")), inode.map(|inode| format!("inode {inode}"))]
                .into_iter()
                .flatten()
                .collect();
        let last =
            if last.is_empty() { String::new() } else { format!(", the last one {}", last.join(", ")) };
        let what = format!("{count} since the last fsck{last}");
        node.saw(
            format!("{root}/errors_count"),
            count.to_string(),
            "errors that ext4 keeps in its superblock",
        );
        node.mark(Mark::ErrorsRecorded { what });
    }

    /// Marks a btrfs file system whose devices have counted errors.
    pub(super) fn btrfs_errors(&self, node: &mut Node, uuid: &str) {
        let root = format!("/sys/fs/btrfs/{uuid}/devinfo");
        for device in self.tree.list(&root).unwrap_or_default() {
            let file = format!("{root}/{device}/error_stats");
            let text = self.tree.text(&file).unwrap_or_default();
            let is_counted = |line: &&str| {
                line.rsplit(' ')
                    .next()
                    .and_then(|count| count.parse().ok())
                    .is_some_and(|count: u64| count > 0)
            };
            let counted: Vec<&str> = text.lines().map(str::trim).filter(is_counted).collect();
            if counted.is_empty() {
                continue;
            }
            let counted = counted.join(", ");
            node.saw(file, &counted, "errors of this device that btrfs keeps until they are reset");
            node.mark(Mark::ErrorsRecorded { what: format!("device {device}: {counted}") });
        }
    }

    /// Marks an array whose members have blocks that could not be written. `sysfs` is its directory.
    pub(super) fn md_bad_blocks(&self, node: &mut Node, sysfs: &str) {
        let members = self.tree.list(&format!("{sysfs}/md")).unwrap_or_default();
        for member in members.iter().filter_map(|name| name.strip_prefix("dev-")) {
            let file = format!("{sysfs}/md/dev-{member}/bad_blocks");
            // One line for each range: first sector and length.
            let ranges = self.tree.text(&file).unwrap_or_default();
            let lengths =
                ranges.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            let sectors: u64 = lengths.sum();
            if sectors > 0 {
                node.saw(file, ranges.lines().next().unwrap_or_default(), "the first range of bad blocks");
                node.mark(Mark::ErrorsRecorded { what: format!("{sectors} bad sectors of {member}") });
            }
        }
    }
}
