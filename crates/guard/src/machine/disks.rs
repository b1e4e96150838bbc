//! Numbering of disks, for `#N`.

use plumb_linux::inventory::{Block, Inventory};

/// Name stems of devices that do not count as disks: memory, files, removable media, raw flash, and devices
/// composed of others.
const NOT_DISKS: [&str; 10] = ["loop", "ram", "zram", "sr", "fd", "dm-", "md", "md_d", "bcache", "mtdblock"];

/// Returns the whole disks in the order of `#0`, `#1`, ...: by driver in alphabetical order (`nvme`, `sd`,
/// `vd`), and within a driver in the order in which the kernel assigns names (`sda`, `sdz`, `sdaa`;
/// `nvme0n1`, `nvme0n2`, `nvme10n1`).
///
/// Disks in use count too, so that mounting one does not renumber the others; the guard decides on writes.
/// Left out are loop devices, memory (ram, zram), optical and floppy drives, raw flash, devices composed of
/// others (device mapper, md, bcache), the boot and RPMB areas of an eMMC, hidden paths of multipath NVMe,
/// and devices of size 0.
///
/// # Limitations
/// Adding or removing a disk may renumber those after it. `/dev/disk/by-id` names are stable.
pub(crate) fn numbered(inventory: &Inventory) -> Vec<&Block> {
    let mut disks: Vec<&Block> = inventory.blocks().filter(|block| is_disk(block)).collect();
    disks.sort_by_cached_key(|block| order(&block.name));
    disks
}

fn is_disk(block: &Block) -> bool {
    let digits = |c: char| c.is_ascii_digit();
    let stem = block.name.trim_end_matches(digits);
    let area = block.name.strip_prefix("mmcblk").map(|rest| rest.trim_start_matches(digits));
    let is_other = block.partition.is_some() || block.hidden || NOT_DISKS.contains(&stem);
    !is_other && area.is_none_or(str::is_empty) && block.sectors.is_some_and(|sectors| sectors > 0)
}

/// Returns the sort key of a name: the driver, then digits by value, and letters in the kernel's order (the
/// shorter first).
fn order(name: &str) -> (String, Vec<(u64, String)>) {
    let lettered = ["sd", "vd", "hd", "xvd", "ubd"].into_iter().find(|driver| name.starts_with(driver));
    let driver_bytes =
        lettered.map_or_else(|| name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len()), str::len);
    let (driver, mut rest) = name.split_at(driver_bytes);
    let mut parts = Vec::new();
    while let Some(first) = rest.chars().next() {
        let digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        let rank = if digit { part.parse().unwrap_or(u64::MAX) } else { part.len() as u64 };
        parts.push((rank, part.to_owned()));
        rest = after;
    }
    (driver.to_owned(), parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_stand_in_the_order_in_which_the_kernel_names_them() {
        let mut names =
            ["vdb", "sdaa", "nvme10n1", "sdb", "nvme2n1", "sdz", "nvme0n2", "sda", "vda", "nvme0n1", "sdab"];
        names.sort_by_cached_key(|name| order(name));
        let expected =
            ["nvme0n1", "nvme0n2", "nvme2n1", "nvme10n1", "sda", "sdb", "sdz", "sdaa", "sdab", "vda", "vdb"];
        assert_eq!(names, expected);
    }

    proptest::proptest! {
        #[test]
        fn any_name_has_its_place(name in ".{0,16}") {
            proptest::prop_assert_eq!(order(&name), order(&name));
        }
    }
}
