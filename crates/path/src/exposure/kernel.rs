//! The kernel's counts of pages that their device does not have yet: for one device in debugfs
//! (mm/backing-dev.c), for the machine in /proc/meminfo.
//!
//! Each processor may withhold the last few pages that it counted, which limits the error of a count.

use plumb_linux::pagecache::page_size;
use plumb_linux::tree::process::field;
use plumb_linux::tree::{Tree, mountinfo, possible_processors};

/// Maximum number of pages that one processor withholds from a count of the machine:
/// `calculate_normal_threshold` of mm/vmstat.c.
const MACHINE_PAGES_MAX: u64 = 125;
const KIB: u64 = 1024;

/// Bytes that are dirty or under writeback by the kernel's count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Count {
    /// Lower bound for the device.
    pub(super) least: u64,
    /// Upper bound for the device.
    pub(super) most: u64,
    /// Source of the figures, for display.
    pub(super) source: String,
}

/// Reads the count for the device that the kernel calls `device` (`8:0`, `btrfs-1`). The count of the machine
/// replaces the upper bound if it is lower or the only one. `None` if neither can be read.
pub(super) fn count(tree: &dyn Tree, device: Option<&str>) -> Option<Count> {
    let own = device.and_then(|device| of_device(tree, device));
    match (own, of_machine(tree)) {
        (Some(own), Some(all)) if all.most < own.most => Some(Count { least: own.least, ..all }),
        (own, all) => own.or(all),
    }
}

/// Reads `BdiWriteback` and `BdiReclaimable`. Before Linux 6.10 (which added `wb_stats`) they exclude the
/// pages of control groups, so they are not bounds.
fn of_device(tree: &dyn Tree, device: &str) -> Option<Count> {
    let mounts = mountinfo::parse(&tree.read("/proc/self/mountinfo").ok()?);
    let point = &mounts.iter().find(|mount| mount.kind == "debugfs")?.point;
    let directory = format!("{point}/bdi/{device}");
    let groups = tree.text(&format!("{directory}/wb_stats")).ok()?;
    let groups = groups.lines().filter(|line| line.starts_with("WbCgIno:")).count().max(1) as u64;
    let file = format!("{directory}/stats");
    let bytes = sum(&tree.text(&file).ok()?, ["BdiWriteback:", "BdiReclaimable:"])?;
    // WB_STAT_BATCH of include/linux/backing-dev-defs.h: a processor withholds fewer pages than that.
    let processors = possible_processors(tree)?;
    let kept = 8 * (1 + u64::from(processors.ilog2())) - 1;
    let error = 2 * groups * processors * kept * page();
    Some(Count {
        least: bytes.saturating_sub(error),
        most: bytes + error,
        source: format!("{file}, which is accurate to within {} KiB", error / KIB),
    })
}

fn of_machine(tree: &dyn Tree) -> Option<Count> {
    let bytes = sum(&tree.text("/proc/meminfo").ok()?, ["Dirty:", "Writeback:"])?;
    let error = 2 * possible_processors(tree)? * MACHINE_PAGES_MAX * page();
    let source = format!(
        "/proc/meminfo, which counts all file systems together and is accurate to within {} KiB (the count of one device is in \
         debugfs, for root, since Linux 6.10)",
        error / KIB
    );
    Some(Count { least: 0, most: bytes + error, source })
}

/// Adds the two figures of `text`, which are in kB. Returns bytes.
fn sum(text: &str, keys: [&str; 2]) -> Option<u64> {
    keys.into_iter().map(|key| field::<u64>(text, key)).sum::<Option<u64>>().map(|sum| sum * KIB)
}

fn page() -> u64 {
    page_size().0
}

#[cfg(test)]
mod tests {
    use plumb_linux::tree::RecordedTree;

    use super::*;

    fn machine(stats: &str, dirty: &str) -> RecordedTree {
        let mut tree = RecordedTree::new();
        tree.put_text("/proc/self/mountinfo", "30 1 0:7 / /debug rw - debugfs debugfs rw\n");
        tree.put_text("/sys/devices/system/cpu/possible", "0-1\n");
        tree.put_text("/debug/bdi/7:0/stats", stats);
        tree.put_text("/debug/bdi/7:0/wb_stats", "WbCgIno:   1\n");
        tree.put_text("/proc/meminfo", dirty);
        tree
    }

    #[test]
    fn the_tighter_of_two_bounds_holds() {
        let stats = "BdiWriteback:   88 kB\nBdiReclaimable:   1000 kB\nBdiDirtied:  9 kB\n";
        let much = "Dirty:   90000 kB\nWriteback:   0 kB\nWritebackTmp: 5 kB\n";
        let own = count(&machine(stats, much), Some("7:0")).unwrap();
        // Two counts of two processors, each of which keeps 15 pages at most.
        let error = 2 * 2 * 15 * page();
        assert_eq!((own.least, own.most), (1088 * KIB - error, 1088 * KIB + error));
        let error = 2 * 2 * MACHINE_PAGES_MAX * page();
        let other = count(&machine(stats, much), Some("7:1")).unwrap();
        assert_eq!((other.least, other.most), (0, 90000 * KIB + error));
        let huge = "BdiWriteback: 0 kB\nBdiReclaimable: 999999 kB\n";
        assert_eq!(count(&machine(huge, much), Some("7:0")).unwrap().most, 90000 * KIB + error);
    }

    #[test]
    fn a_count_that_leaves_out_control_groups_is_not_taken() {
        let mut tree =
            machine("BdiWriteback: 0 kB\nBdiReclaimable: 400 kB\n", "Dirty: 6400 kB\nWriteback: 0 kB\n");
        tree.remove("/debug/bdi/7:0/wb_stats");
        assert_eq!(count(&tree, Some("7:0")).unwrap().least, 0);
        assert!(count(&tree, Some("7:0")).unwrap().most > 6400 * KIB);
    }
}
