//! Tests that an attached device keeps the contract of the waist, seen through the loop device, and that the
//! device below receives requests unchanged: undivided, on its grid, concurrently.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::attach_support::disk::{Disk, FailingKind, SharedDisk};
use crate::attach_support::{Place, run};
use plumb_block::conformance::{self, Rig};
use plumb_block::{
    Bytes, Clock, Device, DeviceInfo, Errno, Lba, LbaRange, Nanos, Outcome, Pool, PoolShape, QueueOptions,
    RealClock, Result,
};
use plumb_linux::{FileDevice, FileOptions};
use plumb_serve::ExportError;
use plumb_serve::attach::{AttachOptions, Attachment};

/// Device or resource busy.
const EBUSY: Errno = Errno(16);

struct LoopRig {
    path: PathBuf,
    clock: Arc<RealClock>,
    pool: Pool,
}

impl LoopRig {
    fn new(path: &Path) -> Self {
        let shape = PoolShape { buffer: Bytes::kib(64), count: 32, alignment: Bytes::kib(4) };
        Self { path: path.to_owned(), clock: Arc::new(RealClock::start()), pool: Pool::new(shape).unwrap() }
    }
}

impl Rig for LoopRig {
    fn describe(&self) -> String {
        format!("{} past the page cache", self.path.display())
    }

    /// Retries, since another program that seeks a free loop device may briefly claim this one before the
    /// kernel reports it as bound (loop_configure in drivers/block/loop.c).
    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        let until = self.clock.now() + Nanos::secs(600);
        loop {
            let clock: Arc<dyn Clock> = self.clock.clone();
            match FileDevice::open(&self.path, FileOptions::write_direct(), clock) {
                Err(error) if error.errno() == Some(EBUSY) && self.clock.now() < until => {
                    std::thread::yield_now()
                }
                opened => return Ok(Arc::new(opened?)),
            }
        }
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: 8, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn range(&self) -> LbaRange {
        LbaRange::new(Lba(8), 64)
    }
}

fn opened(path: &Path, is_direct: bool) -> File {
    let flags = if is_direct { rustix::fs::OFlags::DIRECT.bits() as i32 } else { 0 };
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
}

/// Returns memory whose address is `off` bytes past a multiple of 4096.
fn aligned(length: usize, off: usize) -> (Vec<u8>, usize) {
    let memory = vec![0; length + 8192];
    let start = memory.as_ptr().align_offset(4096) + off;
    (memory, start)
}

#[test]
fn the_loop_device_conforms() {
    let Some(place) = Place::new() else { return };
    for block in [512, 4096] {
        let plain = DeviceInfo::plain("a test disk", Bytes::mib(16), Bytes(block));
        let info = DeviceInfo { discard_max: Bytes::mib(1), discard_zeroes: true, ..plain };
        let mut attachment = place.attach(&Disk::with(info), "conforms");
        conformance::run(&mut LoopRig::new(attachment.path()), 11).assert_conforms();
        attachment.detach().unwrap();
    }
}

#[test]
fn the_kernel_sees_a_block_device_with_the_properties_of_the_device() {
    let Some(place) = Place::new() else { return };
    let with_discard = Disk::new(Bytes::mib(16));
    let without = Disk::with(DeviceInfo::plain("a test disk", Bytes(16 << 20), Bytes(4096)));
    for (disk, block) in [(with_discard, "512"), (without, "4096")] {
        let mut attachment = place.attach(&disk, "properties");
        let name = attachment.path().file_name().unwrap().to_str().unwrap().to_owned();
        let attribute = |attribute: &str| {
            std::fs::read_to_string(format!("/sys/block/{name}/{attribute}")).unwrap().trim().to_owned()
        };
        assert_eq!(attribute("size"), (16 * 2048).to_string());
        assert_eq!(attribute("queue/write_cache"), "write back");
        assert_eq!(attribute("queue/logical_block_size"), block);
        assert_eq!(attribute("loop/dio"), "1");
        assert_eq!(attribute("loop/autoclear"), "1");
        assert_ne!(attribute("queue/discard_max_bytes"), "0");
        assert_ne!(attribute("queue/write_zeroes_max_bytes"), "0");
        attachment.detach().unwrap();
    }
}

#[test]
fn the_limits_of_the_loop_device_are_left_as_they_were() {
    let Some(place) = Place::new() else { return };
    let limit = |name: &str| std::fs::read_to_string(format!("/sys/block/{name}/queue/max_sectors_kb")).ok();
    let plain = |block| Disk::with(DeviceInfo::plain("a test disk", Bytes::mib(16), Bytes(block)));
    // A killed server may have left the limits of a loop device changed.
    let names = (0..256).map(|number| format!("loop{number}"));
    let were_changed: Vec<String> =
        names.filter(|name| limit(name).is_some_and(|kib| kib.trim() == "512")).collect();
    let mut changing = place.attach(&plain(4096), "changing");
    let path = changing.path().to_owned();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(limit(name).unwrap().trim(), "512");
    changing.detach().unwrap();
    let untouched = place.attach(&plain(512), "untouched");
    // Another test may have taken the loop device in between, and changed it again.
    if untouched.path() == path && !were_changed.iter().any(|changed| changed == name) {
        assert_ne!(limit(name).unwrap().trim(), "512");
    }
}

#[test]
fn a_device_without_discards_refuses_them_and_is_still_zeroed() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::with(DeviceInfo::plain("a test disk", Bytes::mib(16), Bytes(512)));
    let attachment = place.attach(&disk, "no-discard");
    let path = attachment.path().display().to_string();
    let file = opened(attachment.path(), false);
    file.write_all_at(&[7; 65536], 0).unwrap();
    file.sync_all().unwrap();
    // The block layer passes the first discard, and disables discards when it fails.
    run("blkdiscard", &[&path]).unwrap();
    run("blkdiscard", &[&path]).unwrap_err();
    run("blkdiscard", &["--zeroout", "--offset", "4096", "--length", "8192", &path]).unwrap();
    let mut read = vec![1; 16384];
    opened(attachment.path(), false).read_exact_at(&mut read, 0).unwrap();
    assert!(read[4096..12288].iter().all(|byte| *byte == 0) && read[..4096].iter().all(|byte| *byte == 7));
    assert_eq!(disk.counts().discards, 0);
}

#[test]
fn requests_stay_on_the_grid_and_within_the_limits_however_the_memory_lies() {
    let Some(place) = Place::new() else { return };
    for transfer_max in [Bytes::kib(64), Bytes::mib(32)] {
        let plain = DeviceInfo::plain("a test disk", Bytes::mib(16), Bytes(4096));
        let disk = Disk::with(DeviceInfo { transfer_max, ..plain });
        let attachment = place.attach(&disk, "grid");
        let file = opened(attachment.path(), true);
        for off in [0, 512, 1536] {
            let length = 4 << 20;
            let (mut memory, start) = aligned(length, off);
            for (index, byte) in memory.iter_mut().enumerate() {
                *byte = (index / 7) as u8 ^ off as u8;
            }
            file.write_all_at(&memory[start..start + length], 4096).unwrap();
            let (mut read, at) = aligned(length, 4096 - off);
            file.read_exact_at(&mut read[at..at + length], 4096).unwrap();
            assert!(read[at..at + length] == memory[start..start + length], "memory {off} bytes off a page");
        }
        assert!(disk.largest() <= transfer_max.0.min(1 << 20));
        assert!(disk.largest() >= transfer_max.0.min(256 << 10), "requests are cut to {}", disk.largest());
    }
}

#[test]
fn one_thread_with_room_for_one_request_conforms() {
    let Some(place) = Place::new() else { return };
    let options = AttachOptions { queues: 1, depth: 1, ..place.options() };
    let device = Arc::new(SharedDisk(Disk::new(Bytes::mib(16))));
    let mut attachment = Attachment::new(device, "narrow", &options).unwrap();
    conformance::run(&mut LoopRig::new(attachment.path()), 12).assert_conforms();
    attachment.detach().unwrap();
}

#[test]
fn requests_come_through_io_uring_where_its_setting_is_on() {
    const SETTING: &str = "/sys/module/fuse/parameters/enable_uring";
    let Some(place) = Place::new() else { return };
    let attachment = place.attach(&Disk::new(Bytes::mib(16)), "ring");
    assert_eq!(attachment.ring_refusal(), None);
    let is_on = std::fs::read_to_string(SETTING).is_ok_and(|setting| setting.trim() == "Y");
    assert_eq!(attachment.transport(), if is_on { "fuse-io-uring" } else { "fuse" });
    if !is_on {
        plumb_testkit::skip("FUSE over io_uring is switched off, so no attachment of these tests uses it");
    }
}

#[test]
fn a_queue_that_breaks_fails_its_requests_and_does_not_hang() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let attachment = place.attach(&disk, "broken");
    let file = opened(attachment.path(), true);
    let (mut memory, start) = aligned(4096, 0);
    disk.break_queues();
    for _ in 0..8 {
        let error = file.write_all_at(&memory[start..start + 4096], 8192).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EIO.0));
        let error = file.read_exact_at(&mut memory[start..start + 4096], 8192).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EIO.0));
    }
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(Errno::EIO.0));
    drop(file);
    drop(attachment);
    assert!(place.loop_devices().is_empty() && !place.has_mounts() && place.left().is_empty());
}

#[test]
fn eight_writes_are_in_flight_at_once_and_a_flush_beside_them() {
    eight_writes_and_a_flush(&Disk::new(Bytes::mib(64)));
}

#[test]
fn so_they_are_on_a_queue_that_has_no_descriptor_to_wait_for() {
    let disk = Disk::new(Bytes::mib(64));
    disk.go_blind();
    eight_writes_and_a_flush(&disk);
}

fn eight_writes_and_a_flush(disk: &Arc<Disk>) {
    let Some(place) = Place::new() else { return };
    let attachment = place.attach(disk, "concurrent");
    disk.close_gate();
    std::thread::scope(|scope| {
        for index in 0..8 {
            let file = opened(attachment.path(), true);
            scope.spawn(move || {
                let (memory, start) = aligned(4096, 0);
                file.write_all_at(&memory[start..start + 4096], index << 20).unwrap();
            });
        }
        disk.wait_for_held(8);
        let file = opened(attachment.path(), true);
        scope.spawn(move || file.sync_all().unwrap());
        let writes = disk.wait_for_flush_beside_writes();
        disk.open_gate();
        assert_eq!(writes, 8, "writes in flight when the flush came");
    });
}

#[test]
fn a_hole_reads_as_zeroes_on_a_device_whose_discards_promise_nothing() {
    let Some(place) = Place::new() else { return };
    let plain = DeviceInfo::plain("a test disk", Bytes::mib(16), Bytes(512));
    let disk = Disk::with(DeviceInfo { discard_max: Bytes::mib(1), discard_zeroes: false, ..plain });
    let attachment = place.attach(&disk, "holes");
    let path = attachment.path().display().to_string();
    let file = opened(attachment.path(), false);
    file.write_all_at(&[7; 65536], 0).unwrap();
    file.sync_all().unwrap();
    run("blkdiscard", &["--offset", "32768", "--length", "4096", &path]).unwrap();
    run("fallocate", &["--punch-hole", "--offset", "4096", "--length", "8192", &path]).unwrap();
    run("fallocate", &["--zero-range", "--keep-size", "--offset", "16384", "--length", "4096", &path])
        .unwrap();
    let mut read = vec![1; 65536];
    opened(attachment.path(), false).read_exact_at(&mut read, 0).unwrap();
    for (index, byte) in read.iter().enumerate() {
        let is_zero = (4096..12288).contains(&index)
            || (16384..20480).contains(&index)
            || (32768..36864).contains(&index);
        assert_eq!(*byte, if is_zero { 0 } else { 7 }, "byte {index}");
    }
    assert_eq!((disk.counts().discards, disk.counts().zeroes), (0, 3));
}

#[test]
fn whatever_goes_wrong_below_is_an_input_output_error() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let attachment = place.attach(&disk, "failing");
    let file = opened(attachment.path(), true);
    let (mut memory, start) = aligned(4096, 0);
    for outcome in [Outcome::Failed(Errno::EINVAL), Outcome::Unknown, Outcome::PowerLost] {
        disk.fail(Some((FailingKind::Writes, outcome)));
        let error = file.write_all_at(&memory[start..start + 4096], 8192).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EIO.0), "a write that ended {outcome:?}");
        disk.fail(Some((FailingKind::Reads, outcome)));
        let error = file.read_exact_at(&mut memory[start..start + 4096], 8192).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EIO.0), "a read that ended {outcome:?}");
        disk.fail(None);
        file.write_all_at(&memory[start..start + 4096], 8192).unwrap();
        file.sync_all().unwrap();
    }
}

#[test]
fn a_failed_flush_latches_and_a_loss_of_power_does_not() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let mut attachment = place.attach(&disk, "latch");
    let file = opened(attachment.path(), true);
    disk.fail(Some((FailingKind::Flushes, Outcome::PowerLost)));
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(Errno::EIO.0));
    disk.fail(None);
    file.sync_all().unwrap();
    assert!(!attachment.has_failed_flush());
    disk.fail(Some((FailingKind::Flushes, Outcome::Failed(Errno::EIO))));
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(Errno::EIO.0));
    disk.fail(None);
    let flushes = disk.counts().flushes;
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(Errno::EIO.0));
    assert_eq!(disk.counts().flushes, flushes, "a latched device was asked again");
    assert!(attachment.has_failed_flush());
    drop(file);
    let error = attachment.detach().unwrap_err();
    assert!(matches!(error, ExportError::Flush { .. }), "{error}");
    drop(attachment);
    assert!(place.loop_devices().is_empty() && !place.has_mounts() && place.left().is_empty());
}

#[test]
fn devices_that_no_loop_device_can_stand_for_are_refused() {
    let Some(place) = Place::new() else { return };
    let plain = |size, block| DeviceInfo::plain("a test disk", Bytes(size), Bytes(block));
    let narrow = DeviceInfo { transfer_max: Bytes(2048), ..plain(1 << 20, 512) };
    for info in [plain(1 << 20, 8192), plain(1 << 20, 520), plain(0, 512), narrow] {
        let device = Arc::new(SharedDisk(Disk::with(info.clone())));
        let error = Attachment::new(device, "refused", &place.options()).err();
        assert!(matches!(error, Some(ExportError::Geometry { .. })), "{info:?}: {error:?}");
    }
}
