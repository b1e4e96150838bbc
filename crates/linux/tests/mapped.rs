//! Tests of a mapping with unavailable pages: guards against a process killed by SIGBUS, and against options
//! that a mapping cannot honour but ignores.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::support::{Mount, alone, answer, queue, test_file};
use plumb_block::{
    Bytes, Caching, Device as _, DurableWrite, Errno, ErrorKind, FlushCall, Lba, LbaRange, Outcome, Payload,
    Pool, RealClock, Request, Tag,
};
use plumb_linux::{FileDevice, FileOptions};

const BLOCK: u64 = 512;

fn mapped(path: &Path) -> FileDevice {
    let options = FileOptions::write_buffered().caching(Caching::Mapped);
    FileDevice::open(path, options, Arc::new(RealClock::start())).unwrap()
}

fn at(offset: Bytes, length: Bytes) -> LbaRange {
    LbaRange::new(Lba(offset.0 / BLOCK), length.0 / BLOCK)
}

fn sevens(pool: &Pool, length: Bytes) -> Payload {
    let mut bytes = pool.take(length).unwrap();
    bytes.fill(7);
    Payload::Bytes(bytes.freeze())
}

#[test]
fn beyond_the_end_of_a_file_that_shrank_requests_fail_and_the_process_lives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![1; 4 << 20]).unwrap();
    let device = mapped(&path);
    let (mut queue, pool) = queue(&device);
    let gone = at(Bytes::mib(2), Bytes::kib(16));
    assert_eq!(answer(&mut *queue, Request::read(Tag(1), gone)).outcome, Outcome::Done);
    File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let failed = Outcome::Failed(Errno::EIO);
    assert_eq!(answer(&mut *queue, Request::read(Tag(1), gone)).outcome, failed);
    let into = Request::read_into(Tag(1), gone, pool.take(Bytes::kib(16)).unwrap());
    assert_eq!(answer(&mut *queue, into).outcome, failed);
    let write = Request::write(Tag(1), gone, sevens(&pool, Bytes::kib(16)));
    assert_eq!(answer(&mut *queue, write).outcome, failed);
    let durable = Request::write_fua(Tag(1), gone, sevens(&pool, Bytes::kib(16)));
    assert_eq!(answer(&mut *queue, durable).outcome, failed);
    assert!(device.latched().is_none(), "no sync has failed");
    // Half of the range exists.
    let across = at(Bytes(Bytes::MIB - 8192), Bytes::kib(16));
    assert_eq!(answer(&mut *queue, Request::read(Tag(1), across)).outcome, failed);
    // Requests within the shorter file work as before.
    let here = at(Bytes::kib(512), Bytes::kib(16));
    let write = Request::write_fua(Tag(1), here, sevens(&pool, Bytes::kib(16)));
    assert_eq!(answer(&mut *queue, write).outcome, Outcome::Done);
    assert_eq!(answer(&mut *queue, Request::flush(Tag(1))).outcome, Outcome::Done);
    let mut bytes = [0; 16 << 10];
    File::open(&path).unwrap().read_exact_at(&mut bytes, 512 << 10).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7));
}

#[test]
fn a_file_that_grew_is_mapped_to_its_new_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let device = mapped(&path);
    let (mut queue, pool) = queue(&device);
    let later = at(Bytes::mib(3), Bytes::kib(4));
    let early = answer(&mut *queue, Request::read(Tag(1), later)).outcome;
    assert_eq!(early, Outcome::Failed(Errno::EINVAL));
    File::options().write(true).open(&path).unwrap().set_len(4 << 20).unwrap();
    assert_eq!(device.info().size, Bytes::mib(4));
    let write = Request::write(Tag(1), later, sevens(&pool, Bytes::kib(4)));
    assert_eq!(answer(&mut *queue, write).outcome, Outcome::Done);
    assert_eq!(answer(&mut *queue, Request::flush(Tag(1))).outcome, Outcome::Done);
    let mut bytes = [0; 4096];
    File::open(&path).unwrap().read_exact_at(&mut bytes, 3 << 20).unwrap();
    assert_eq!(bytes, [7; 4096]);
}

/// Tests a store into a hole of a file on a full file system, which raises SIGBUS.
#[test]
fn a_hole_on_a_full_file_system_fails_and_the_process_lives() {
    let _alone = alone();
    let mount = match Mount::new(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"]) {
        Ok(mount) => mount,
        Err(why) => return plumb_testkit::skip(&format!("cannot mount: {why}")),
    };
    let path = mount.point.path().join("file");
    File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let device = mapped(&path);
    let (mut queue, pool) = queue(&device);
    let outcomes: Vec<Outcome> = (0..16)
        .map(|piece| {
            let range = at(Bytes::kib(64) * piece, Bytes::kib(64));
            answer(&mut *queue, Request::write(Tag(1), range, sevens(&pool, Bytes::kib(64)))).outcome
        })
        .collect();
    assert_eq!(outcomes[0], Outcome::Done);
    assert_eq!(outcomes[15], Outcome::Failed(Errno::EIO), "{outcomes:?}");
}

#[test]
fn a_file_opened_for_reading_is_read_and_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let options = FileOptions::read_buffered().caching(Caching::Mapped);
    let device = FileDevice::open(&path, options, Arc::new(RealClock::start())).unwrap();
    let (mut queue, pool) = queue(&device);
    let range = at(Bytes::kib(8), Bytes::kib(8));
    let read = answer(&mut *queue, Request::read_into(Tag(1), range, pool.take(Bytes::kib(8)).unwrap()));
    let Payload::Into(bytes) = &read.payload else { panic!("{read:?}") };
    assert!(read.outcome.is_done() && bytes.iter().all(|byte| *byte == 1));
    let write = Request::write(Tag(1), range, sevens(&pool, Bytes::kib(8)));
    assert_eq!(answer(&mut *queue, write).outcome, Outcome::Failed(Errno::EROFS));
}

#[test]
fn what_a_mapping_cannot_honour_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = test_file(directory.path());
    let plain = FileOptions::write_buffered();
    for (options, named) in [
        (FileOptions { append: Some(Bytes::mib(1)), ..plain }, "grows"),
        (plain.flush(FlushCall::Range), "msync"),
        (plain.durable_write(DurableWrite::Sync), "RWF_SYNC"),
    ] {
        let clock = Arc::new(RealClock::start());
        let Err(error) = FileDevice::open(&file.path(), options.caching(Caching::Mapped), clock) else {
            panic!("{options:?} was taken")
        };
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    let device = mapped(&file.path());
    assert_eq!((device.engine().name(), device.engine().depth_max()), ("mmap/msync", Some(1)));
}
