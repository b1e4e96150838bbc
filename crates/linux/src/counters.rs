//! Counters of block devices: `/proc/diskstats` (Documentation/admin-guide/iostats.rst).
//!
//! The counters cover what the block layer handed to the driver, not what reached the drive. Flushes are
//! counted separately since Linux 5.5; before that their number is unknown, not zero.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::{
    Bytes, Clock, DeviceCounters, Error, ErrorKind, Nanos, Result, StorageCounters, StorageSnapshot,
};

/// Unit of the byte counters, independent of the device's block size.
const SECTOR: u64 = 512;

/// Counters of selected block devices of this machine.
pub struct BlockCounters {
    names: Vec<String>,
    clock: Arc<dyn Clock>,
    diskstats: PathBuf,
}

impl BlockCounters {
    /// Creates counters for the devices with these kernel names (`vda`, `nvme0n1p2`), reported in this order.
    pub fn new(names: Vec<String>, clock: Arc<dyn Clock>) -> Self {
        Self::rooted(Path::new("/proc"), names, clock)
    }

    /// Creates counters as [`new`](Self::new) does, with procfs mounted at `procfs`.
    pub(crate) fn rooted(procfs: &Path, names: Vec<String>, clock: Arc<dyn Clock>) -> Self {
        Self { names, clock, diskstats: procfs.join("diskstats") }
    }
}

impl StorageCounters for BlockCounters {
    fn read(&self) -> Result<StorageSnapshot> {
        let place = || self.diskstats.display().to_string();
        // Read as bytes: an invalid device name must not cause an error.
        let text = fs::read(&self.diskstats).map_err(|error| Error::io(&error, "read", place()))?;
        let at = self.clock.now();
        let all = parse(&String::from_utf8_lossy(&text));
        let mut devices = Vec::with_capacity(self.names.len());
        for name in &self.names {
            let found = all.iter().find(|device| device.name == *name).ok_or_else(|| {
                Error::new(ErrorKind::Invalid, "read the counters of", name.as_str())
                    .because(format!("{} does not list it; it is gone or was never there", place()))
            })?;
            devices.push(found.clone());
        }
        Ok(StorageSnapshot { at, devices })
    }
}

/// Parses `/proc/diskstats`, and skips lines in another format. Kernels before 4.18 print 11 numbers, before
/// 5.5 15, since then 17.
pub fn parse(text: &str) -> Vec<DeviceCounters> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<DeviceCounters> {
    let mut words = line.split_ascii_whitespace();
    let _major = words.next()?.parse::<u32>().ok()?;
    let _minor = words.next()?.parse::<u32>().ok()?;
    let name = words.next()?.to_owned();
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    if numbers.len() < 11 {
        return None;
    }
    let number = |index: usize| numbers.get(index).copied();
    let count = |index: usize| number(index).unwrap_or(0);
    let bytes = |index: usize| Bytes(count(index).saturating_mul(SECTOR));
    let millis = |index: usize| Nanos(count(index).saturating_mul(1_000_000));
    Some(DeviceCounters {
        name,
        reads: count(0),
        read_merges: count(1),
        read_bytes: bytes(2),
        read_time: millis(3),
        writes: count(4),
        write_merges: count(5),
        write_bytes: bytes(6),
        write_time: millis(7),
        in_flight: count(8),
        busy_time: millis(9),
        // Field 10 is the weighted time in the queue, 12 the merged discards, 14 the time of discards.
        discards: count(11),
        discard_bytes: bytes(13),
        flushes: number(15),
        flush_time: millis(16),
    })
}

#[cfg(test)]
mod tests {
    use plumb_block::VirtualClock;

    use super::*;

    const NEW: &str =
        " 254       0 vda 8115 2011 713602 2384 1542 1027 50032 812 3 2400 3396 11 2 4096 5 120 88";
    const BEFORE_5_5: &str = "   8       0 sda 10 1 80 4 20 2 160 8 0 10 12 1 0 8 1\n";
    const BEFORE_4_18: &str = "   8       1 sda1 10 1 80 4 20 2 160 8 0 10 12\n";

    #[test]
    fn counters_of_every_kernel_age_are_read() {
        let devices = parse(&format!("{NEW}\n{BEFORE_5_5}{BEFORE_4_18}"));
        assert_eq!(devices.len(), 3);
        let vda = &devices[0];
        assert_eq!((vda.name.as_str(), vda.reads, vda.read_merges), ("vda", 8115, 2011));
        assert_eq!((vda.read_bytes, vda.write_bytes), (Bytes(713_602 * 512), Bytes(50_032 * 512)));
        assert_eq!((vda.writes, vda.write_time), (1542, Nanos::millis(812)));
        assert_eq!((vda.in_flight, vda.busy_time), (3, Nanos::millis(2400)));
        assert_eq!((vda.discards, vda.discard_bytes), (11, Bytes(4096 * 512)));
        assert_eq!((vda.flushes, vda.flush_time), (Some(120), Nanos::millis(88)));
        assert_eq!(devices[1].flushes, None, "an old kernel does not count flushes");
        assert_eq!((devices[2].discards, devices[2].flushes), (0, None));
    }

    #[test]
    fn a_device_that_is_gone_is_an_error_with_its_name() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("diskstats"), NEW).unwrap();
        let read = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            BlockCounters::rooted(root.path(), names, Arc::new(VirtualClock::new())).read()
        };
        assert_eq!(read(&["vda"]).unwrap().devices.len(), 1);
        assert_eq!(read(&[]).unwrap().devices.len(), 0);
        let error = read(&["vda", "vdb"]).unwrap_err().to_string();
        assert!(error.contains("vdb"), "{error}");
    }

    #[test]
    fn this_machines_counters_are_read() {
        let devices = parse(&fs::read_to_string("/proc/diskstats").unwrap());
        let lines = fs::read_to_string("/proc/diskstats").unwrap().lines().count();
        assert_eq!(devices.len(), lines);
    }

    proptest::proptest! {
        #[test]
        fn hostile_text_never_panics(text in "[0-9a-z \\n\\t.-]{0,200}", tail in ".{0,40}") {
            let count = parse(&format!("{text}{tail}")).len();
            proptest::prop_assert!(count <= text.lines().count() + tail.lines().count() + 1);
        }

        #[test]
        fn huge_numbers_saturate(numbers in proptest::collection::vec(proptest::prelude::any::<u64>(), 11..20)) {
            let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let devices = parse(&format!("8 0 sda {}", words.join(" ")));
            proptest::prop_assert_eq!(devices.len(), 1);
        }
    }
}
