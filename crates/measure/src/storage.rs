//! Differences between two readings of device counters.
//!
//! Counters are meaningful only as differences, and only for the same device. In case of doubt the result is
//! a reason instead of a figure: [`NoDelta`].
//!
//! Linux also counts an empty flush (blkdev_issue_flush) as a write without sectors: the request counts as a
//! write (blk_account_io_done), and the flush that serves it, perhaps together with other waiting requests,
//! as one flush (blk_account_io_flush). [`calibrate`] determines whether this kernel does so.
//!
//! Limitations: after calibration every flush counts as an empty one. Flushes with data (a journal's commit
//! record, FUA on a device without it) have no empty write, so many of them make the writes too low, by at
//! most the number of flushes. A flush that serves several requests leaves their other empty writes among the
//! writes. If the [sizes](WriteSizes) of the writes are known, the bytes bound their number. A device that
//! wrote bytes always has at least one write.

use plumb_block::{Bytes, DeviceCounters, Nanos, StorageSnapshot};

use crate::result::{FlushWrites, FlushesOf, StorageSide};

/// Reason why two readings cannot be subtracted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoDelta(String);

/// Knowledge about the writes in a device's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountsOfWrites {
    /// Result of a [calibration](calibrate) of the same devices.
    pub flush_writes: FlushWrites,
    /// Sizes of the writes; `None` if other programs may write to the devices too.
    pub sizes: Option<WriteSizes>,
}

/// Range of the sizes of all writes to the devices before the kernel merges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSizes {
    /// Smallest size.
    pub min: Bytes,
    /// Largest size.
    pub max: Bytes,
}

impl WriteSizes {
    /// Returns the minimum and maximum number of writes to `device`.
    fn bounds(self, device: &DeviceCounters) -> [u64; 2] {
        let requests = |size: Bytes| {
            device
                .write_bytes
                .0
                .div_ceil(size.0.max(1))
                .saturating_sub(device.write_merges)
                .min(device.writes)
        };
        [requests(self.max), requests(self.min)]
    }
}

impl From<FlushWrites> for CountsOfWrites {
    fn from(flush_writes: FlushWrites) -> Self {
        Self { flush_writes, sizes: None }
    }
}

impl CountsOfWrites {
    /// Estimates the number of writes with data in a difference.
    fn with_data(self, device: &DeviceCounters) -> u64 {
        match (self.flush_writes, device.flushes) {
            (FlushWrites::TakenOut, Some(flushes)) => {
                let [least, most] = self.sizes.map_or([0, device.writes], |sizes| sizes.bounds(device));
                let some = u64::from(device.write_bytes > Bytes(0)).min(device.writes);
                device.writes.saturating_sub(flushes).clamp(least, most).max(some)
            }
            _ => device.writes,
        }
    }
}

/// Returns the storage side of the window between two readings: the sum of all devices, and each device.
///
/// `counts` describes how the devices count writes. An empty window has rates of zero.
///
/// # Errors
/// If a device vanished, appeared or was replaced in between.
pub fn storage_side(
    before: &StorageSnapshot,
    after: &StorageSnapshot,
    counts: impl Into<CountsOfWrites>,
) -> Result<StorageSide, NoDelta> {
    let counts = counts.into();
    let devices = delta(before, after)?;
    let seconds = after.at.since(before.at).as_secs_f64();
    let total = |value: fn(&DeviceCounters) -> u64| devices.iter().map(value).sum::<u64>();
    let writes = devices.iter().map(|device| counts.with_data(device)).sum::<u64>();
    let reads = total(|device| device.reads);
    let (read_bytes, write_bytes) = (total(|d| d.read_bytes.0), total(|d| d.write_bytes.0));
    let flushes = devices.iter().map(|device| device.flushes).sum::<Option<u64>>();
    let flush_time = total(|device| device.flush_time.0);
    let rate = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let (operations, bytes) = (reads + writes, read_bytes + write_bytes);
    Ok(StorageSide {
        iops: rate(operations),
        bytes_per_second: rate(bytes),
        io_bytes_mean: (operations > 0).then(|| bytes as f64 / operations as f64),
        flushes,
        flush_mean: flushes
            .filter(|count| *count > 0)
            .map(|count| Nanos(flush_time).as_secs_f64() / count as f64),
        reads,
        writes,
        read_bytes,
        write_bytes,
        merges: total(|device| device.read_merges + device.write_merges),
        flush_writes: counts.flush_writes,
        devices,
        above: Vec::new(),
        attribution: None,
    })
}

/// Combines different devices in the same window.
pub fn beside(mut one: StorageSide, other: &StorageSide) -> StorageSide {
    let flushed = one.flush_time() + other.flush_time();
    one.iops += other.iops;
    one.bytes_per_second += other.bytes_per_second;
    one.devices.extend(other.devices.iter().cloned());
    one.count_in(other, flushed);
    one
}

/// Combines two consecutive windows of together `seconds`.
pub fn one_after_the_other(mut one: StorageSide, other: &StorageSide, seconds: f64) -> StorageSide {
    let rate = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let flushed = one.flush_time() + other.flush_time();
    one.count_in(other, flushed);
    one.iops = rate(one.reads + one.writes);
    one.bytes_per_second = rate(one.read_bytes + one.write_bytes);
    for (mine, theirs) in one.devices.iter_mut().zip(&other.devices) {
        add(mine, theirs);
    }
    one
}

impl StorageSide {
    /// Returns the flushes of the run and of its file system's journal; without attribution all counted
    /// flushes. `None` if they were not counted or cannot be distinguished from those of other programs.
    pub fn own_flushes(&self) -> Option<u64> {
        let all = self.flushes?;
        let Some(whose) = self.attribution.as_ref().filter(|_| all > 0) else { return Some(all) };
        let journal = whose.journal_flushes.unwrap_or(0);
        match (whose.flushes, whose.own_flushes) {
            (FlushesOf::AllPrograms, _) => None,
            (FlushesOf::Traced, Some(own)) => Some(own.saturating_add(journal).min(all)),
            (FlushesOf::Traced, None) | (FlushesOf::OwnDevice, _) => Some(all),
        }
    }

    /// Returns the total time of all flushes, in seconds.
    fn flush_time(&self) -> f64 {
        self.flush_mean.zip(self.flushes).map_or(0.0, |(mean, count)| mean * count as f64)
    }

    /// Adds the counts of `other`; `flushed` is the flush time of both in seconds.
    fn count_in(&mut self, other: &Self, flushed: f64) {
        self.flushes = self.flushes.zip(other.flushes).map(|(one, other)| one + other);
        self.flush_mean = self.flushes.filter(|count| *count > 0).map(|count| flushed / count as f64);
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.merges += other.merges;
        let (operations, bytes) = (self.reads + self.writes, self.read_bytes + self.write_bytes);
        self.io_bytes_mean = (operations > 0).then(|| bytes as f64 / operations as f64);
    }
}

/// Adds a device's counts of another window.
pub fn add(mine: &mut DeviceCounters, theirs: &DeviceCounters) {
    mine.reads += theirs.reads;
    mine.read_merges += theirs.read_merges;
    mine.read_bytes += theirs.read_bytes;
    mine.read_time += theirs.read_time;
    mine.writes += theirs.writes;
    mine.write_merges += theirs.write_merges;
    mine.write_bytes += theirs.write_bytes;
    mine.write_time += theirs.write_time;
    mine.discards += theirs.discards;
    mine.discard_bytes += theirs.discard_bytes;
    mine.flushes = mine.flushes.zip(theirs.flushes).map(|(mine, theirs)| mine + theirs);
    mine.flush_time += theirs.flush_time;
    mine.busy_time += theirs.busy_time;
}

/// Determines whether the kernel counts empty flushes among the writes, from readings before and after
/// `syncs` clean syncs (of a file with nothing dirty) on an otherwise idle device.
///
/// Returns [`Unknown`](FlushWrites::Unknown) if anything else happened in between, or if fewer flushes than
/// syncs were counted.
///
/// # Errors
/// If a device vanished, appeared or was replaced in between.
pub fn calibrate(
    before: &StorageSnapshot,
    after: &StorageSnapshot,
    syncs: u64,
) -> Result<FlushWrites, NoDelta> {
    let devices = delta(before, after)?;
    let disturbed = devices.iter().any(|device| device.write_bytes > Bytes(0) || device.discards > 0);
    let flushes = devices.iter().map(|device| device.flushes).sum::<Option<u64>>();
    let Some(flushes) = flushes.filter(|flushes| !disturbed && *flushes > 0 && *flushes >= syncs) else {
        return Ok(FlushWrites::Unknown);
    };
    let writes = devices.iter().map(|device| device.writes).sum::<u64>();
    Ok(match writes {
        0 => FlushWrites::NotCounted,
        writes if writes == flushes => FlushWrites::TakenOut,
        _ => FlushWrites::Unknown,
    })
}

/// Subtracts two readings, device by device, in the order of the first.
///
/// # Errors
/// If a device vanished, appeared or was replaced in between.
pub fn delta(before: &StorageSnapshot, after: &StorageSnapshot) -> Result<Vec<DeviceCounters>, NoDelta> {
    let known = |snapshot: &StorageSnapshot, name: &str| snapshot.devices.iter().any(|d| d.name == name);
    if let Some(new) = after.devices.iter().find(|device| !known(before, &device.name)) {
        // The device did not exist at the start, so its counters may include earlier activity.
        let reason = format!("device {} appeared between the two readings of the counters", new.name);
        return Err(NoDelta(reason));
    }
    before
        .devices
        .iter()
        .map(|old| match after.devices.iter().find(|device| device.name == old.name) {
            Some(new) => device_delta(old, new),
            None => {
                Err(NoDelta(format!("device {} vanished between the two readings of its counters", old.name)))
            }
        })
        .collect()
}

fn device_delta(old: &DeviceCounters, new: &DeviceCounters) -> Result<DeviceCounters, NoDelta> {
    let counter = |name, unit, before, after| {
        // More than a wrap can explain: another device took the name.
        grown(unit, before, after).ok_or_else(|| {
            NoDelta(format!(
                "the {name} of device {} went back from {before} to {after}: another device has its place \
                 now",
                old.name
            ))
        })
    };
    let count = |name, before, after| counter(name, 1, before, after);
    let sectors = |name, before: Bytes, after: Bytes| counter(name, SECTOR, before.0, after.0).map(Bytes);
    let time = |name, before: Nanos, after: Nanos| counter(name, MILLISECOND, before.0, after.0).map(Nanos);
    Ok(DeviceCounters {
        name: old.name.clone(),
        reads: count("reads", old.reads, new.reads)?,
        read_merges: count("read merges", old.read_merges, new.read_merges)?,
        read_bytes: sectors("bytes read", old.read_bytes, new.read_bytes)?,
        read_time: time("time of reads", old.read_time, new.read_time)?,
        writes: count("writes", old.writes, new.writes)?,
        write_merges: count("write merges", old.write_merges, new.write_merges)?,
        write_bytes: sectors("bytes written", old.write_bytes, new.write_bytes)?,
        write_time: time("time of writes", old.write_time, new.write_time)?,
        discards: count("discards", old.discards, new.discards)?,
        discard_bytes: sectors("bytes discarded", old.discard_bytes, new.discard_bytes)?,
        flushes: match (old.flushes, new.flushes) {
            (Some(before), Some(after)) => Some(count("flushes", before, after)?),
            _ => None,
        },
        flush_time: time("time of flushes", old.flush_time, new.flush_time)?,
        in_flight: new.in_flight,
        busy_time: time("busy time", old.busy_time, new.busy_time)?,
    })
}

/// Unit in which the kernel counts transfers, in bytes.
const SECTOR: u64 = 512;
/// Unit in which the kernel prints times, in nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// Returns the growth of a counter of `unit`s. The kernel prints some as 32-bit numbers (all on a 32-bit
/// kernel, times everywhere), so a step from near 2^32 to near 0 is a wrap; any other decrease gives `None`.
fn grown(unit: u64, before: u64, after: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    if let Some(grown) = after.checked_sub(before) {
        return Some(grown);
    }
    let (before_units, after_units) = (before / unit, after / unit);
    let is_wrap = (WRAP - WRAP / 4..WRAP).contains(&before_units) && after_units < WRAP / 4;
    is_wrap.then(|| WRAP * unit - before + after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(at: Nanos, devices: &[DeviceCounters]) -> StorageSnapshot {
        StorageSnapshot { at, devices: devices.to_vec() }
    }

    fn device(name: &str, writes: u64, write_bytes: u64, flushes: Option<u64>) -> DeviceCounters {
        DeviceCounters {
            name: name.to_owned(),
            writes,
            write_bytes: Bytes(write_bytes),
            flushes,
            ..DeviceCounters::default()
        }
    }

    #[test]
    fn several_devices_are_summed_and_listed_over_the_window() {
        let before =
            snapshot(Nanos::secs(10), &[device("vda", 100, 4096, Some(7)), device("vdb", 5, 0, Some(0))]);
        let mut second = device("vdb", 15, 10 * 4096, Some(10));
        second.reads = 20;
        second.read_bytes = Bytes(20 * 8192);
        second.flush_time = Nanos::millis(30);
        let after = snapshot(Nanos::secs(12), &[device("vda", 140, 21 * 4096, Some(27)), second]);
        let side = storage_side(&before, &after, FlushWrites::TakenOut).unwrap();
        assert_eq!(
            (side.reads, side.writes),
            (20, 20 + 1),
            "40 - 20 flushes, and 10 - 10 but bytes were written"
        );
        assert_eq!(side.flushes, Some(30));
        assert_eq!(side.iops, 20.5);
        assert_eq!(side.flush_mean, Some(0.001));
        assert_eq!((side.read_bytes, side.write_bytes), (20 * 8192, 30 * 4096));
        assert_eq!(side.devices.len(), 2);
        assert_eq!(side.devices[0].writes, 40, "the list is as the kernel counts");
        let raw = storage_side(&before, &after, FlushWrites::Unknown).unwrap();
        assert_eq!(raw.writes, 50);
    }

    #[test]
    fn where_the_sizes_of_writes_are_known_flushes_do_not_hide_them() {
        let none = snapshot(Nanos::ZERO, &[device("vdb", 0, 0, Some(0))]);
        // FUA on a device without it: 100 writes of 4 KiB and 100 empty ones, each with a flush.
        let mut after = snapshot(Nanos::secs(1), &[device("vdb", 200, 100 * 4096, Some(200))]);
        let writes = |after: &StorageSnapshot, size: Option<u64>| {
            let sizes = size.map(|size| WriteSizes { min: Bytes(size), max: Bytes(size) });
            let counts = CountsOfWrites { flush_writes: FlushWrites::TakenOut, sizes };
            let side = storage_side(&none, after, counts).unwrap();
            (side.writes, side.io_bytes_mean)
        };
        assert_eq!(writes(&after, Some(4096)), (100, Some(4096.0)));
        assert_eq!(writes(&after, None).0, 1);
        after.devices[0].write_merges = 30;
        assert_eq!(writes(&after, Some(4096)).0, 70);
        // One flush for two syncs.
        let shared = snapshot(Nanos::secs(1), &[device("vdb", 200, 100 * 4096, Some(50))]);
        assert_eq!((writes(&shared, Some(4096)).0, writes(&shared, None).0), (100, 150));
    }

    #[test]
    fn an_idle_window_has_no_means_and_no_infinities() {
        let same = snapshot(Nanos::secs(1), &[device("vda", 1, 512, None)]);
        let side = storage_side(&same, &same, FlushWrites::Unknown).unwrap();
        assert_eq!((side.iops, side.io_bytes_mean, side.flushes, side.flush_mean), (0.0, None, None, None));
    }

    #[test]
    fn wraps_are_seen_through_and_replacements_are_not() {
        assert_eq!(grown(1, (1 << 32) - 5, 3), Some(8));
        assert_eq!(grown(SECTOR, ((1 << 32) - 1) * SECTOR, SECTOR), Some(2 * SECTOR));
        assert_eq!(grown(MILLISECOND, ((1 << 32) - 10) * MILLISECOND, 0), Some(10 * MILLISECOND));
        assert_eq!(grown(1, 1000, 3), None);
        assert_eq!(grown(1, 1 << 33, 3), None);
        let before = snapshot(Nanos::ZERO, &[device("sda", 500, 0, None)]);
        let after = snapshot(Nanos::secs(1), &[device("sda", 20, 0, None)]);
        assert_eq!(
            delta(&before, &after).unwrap_err().to_string(),
            "the writes of device sda went back from 500 to 20: another device has its place now"
        );
    }

    #[test]
    fn devices_that_come_or_go_are_named() {
        let one = snapshot(Nanos::ZERO, &[device("sda", 1, 0, None)]);
        let two = snapshot(Nanos::ZERO, &[device("sda", 1, 0, None), device("sdb", 1, 0, None)]);
        let why = |from, to| delta(from, to).unwrap_err().to_string();
        assert!(why(&one, &two).starts_with("device sdb appeared"));
        assert!(why(&two, &one).starts_with("device sdb vanished"));
    }

    #[test]
    fn calibration_believes_only_clean_windows() {
        let before = snapshot(Nanos::ZERO, &[device("vda", 10, 512, Some(4))]);
        let found = |writes: u64, bytes: u64, flushes: u64| {
            let after =
                snapshot(Nanos::secs(1), &[device("vda", 10 + writes, 512 + bytes, Some(4 + flushes))]);
            calibrate(&before, &after, 20).unwrap()
        };
        assert_eq!(found(20, 0, 20), FlushWrites::TakenOut);
        assert_eq!(found(0, 0, 20), FlushWrites::NotCounted);
        assert_eq!(found(21, 4096, 20), FlushWrites::Unknown, "somebody else wrote");
        assert_eq!(found(13, 0, 20), FlushWrites::Unknown);
        assert_eq!(found(0, 0, 0), FlushWrites::Unknown, "no flush was seen");
        let uncounted = snapshot(Nanos::ZERO, &[device("vda", 10, 0, None)]);
        assert_eq!(calibrate(&uncounted, &uncounted, 20), Ok(FlushWrites::Unknown));
    }
}
