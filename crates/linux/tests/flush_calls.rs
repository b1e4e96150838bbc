//! Tests of the system call of a flush, by the number of writes and flushes that a loop device below the file
//! system receives. Guards against a flush by another call than the requested one.

use std::fs::{File, FileTimes};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::support::{LoopDevice, Mount, alone, answer, queue, run, test_file};
use plumb_block::{
    Bytes, Caching, Device as _, DurableWrite, EngineChoice, FlushCall, Lba, LbaRange, Pattern, Payload,
    RealClock, Request, StorageCounters as _, Tag,
};
use plumb_linux::{BlockCounters, FileOptions, TestFile};

const ROUNDS: u64 = 20;

/// Returns the flushes and bytes that the device has received so far.
fn counted(device: &str) -> (u64, Bytes) {
    let counters = BlockCounters::new(vec![device.to_owned()], Arc::new(RealClock::start()));
    let snapshot = counters.read().unwrap();
    (snapshot.devices[0].flushes.unwrap_or(0), snapshot.devices[0].write_bytes)
}

/// Returns the flushes and bytes that ROUNDS overwrites of one block, each with a flush or durable itself,
/// send to `device`.
fn sent(file: &TestFile, device: &str, options: FileOptions, durable: bool) -> (u64, Bytes) {
    let opened = file.open(options, Arc::new(RealClock::start())).unwrap();
    let (mut queue, _pool) = queue(&opened);
    let nlb = 4096 / opened.info().logical_block.0;
    let mut one = |request: Request| {
        let outcome = answer(&mut *queue, request).outcome;
        assert!(outcome.is_done(), "{options:?}: {outcome:?}");
    };
    let times = File::from(file.as_fd().try_clone_to_owned().unwrap());
    let before = counted(device);
    for generation in 0..ROUNDS {
        let pattern = Payload::Pattern(Pattern { seed: 1, lba: Lba(0), generation });
        let range = LbaRange::new(Lba(0), nlb);
        // The kernel's own times are too coarse to change with each write.
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(generation);
        times.set_times(FileTimes::new().set_modified(time)).unwrap();
        if durable {
            one(Request::write_fua(Tag(0), range, pattern));
        } else {
            one(Request::write(Tag(0), range, pattern));
            one(Request::flush(Tag(0)));
        }
    }
    let after = counted(device);
    (after.0 - before.0, Bytes(after.1.0 - before.1.0))
}

#[test]
fn each_call_sends_to_the_device_what_it_is_known_for() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    // Only fsync and O_SYNC write the times of a file; lazytime would delay that.
    let made = run("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0", &image.display().to_string()])
        .and_then(|_| LoopDevice::try_over(&image, &[]))
        .and_then(|device| {
            let mount = Mount::new(&["-t", "ext4", "-o", "nolazytime", &device.path])?;
            Ok((mount, device))
        });
    let (mount, device) = match made {
        Ok(made) => made,
        Err(why) => return plumb_testkit::skip(&format!("no file system of our own: {why}")),
    };
    let file = test_file(mount.point.path());
    for engine in [EngineChoice::Auto, EngineChoice::Synchronous] {
        let options = FileOptions::write_buffered().engine(engine);
        let mut all = Vec::new();
        for flush in [FlushCall::Fdatasync, FlushCall::Fsync, FlushCall::Range] {
            let (flushes, bytes) = sent(&file, &device.name, options.flush(flush), false);
            all.push((flushes, bytes));
        }
        let [fdatasync, fsync, range] = all[..] else { panic!("{all:?}") };
        assert!(fdatasync.0 >= ROUNDS, "fdatasync flushes the device: {all:?}");
        assert!(fsync.1.0 >= fdatasync.1.0 + ROUNDS * 2048, "fsync commits the inode, too: {all:?}");
        assert!(range.0 < ROUNDS / 2 && range.1.0 >= ROUNDS * 4096, "written back, not flushed: {all:?}");
        let dsync = sent(&file, &device.name, options, true);
        let sync = sent(&file, &device.name, options.durable_write(DurableWrite::Sync), true);
        assert!(dsync.0 >= ROUNDS, "O_DSYNC flushes the device: {dsync:?}");
        assert!(sync.1.0 >= dsync.1.0 + ROUNDS * 2048, "O_SYNC commits the inode, too: {sync:?}, {dsync:?}");
    }
    let mapped = FileOptions::write_buffered().caching(Caching::Mapped);
    for durable in [false, true] {
        let (flushes, bytes) = sent(&file, &device.name, mapped, durable);
        assert!(
            flushes >= ROUNDS && bytes.0 >= ROUNDS * 4096,
            "msync flushes the device: {flushes}, {bytes}"
        );
    }
}
