//! Tests of requests that must leave nothing in the page cache: guards against a flag that does not reach the
//! kernel, and against use of the page cache where the flag is refused.

use std::os::fd::AsFd as _;
use std::sync::Arc;

use crate::support::{answer, queue, test_file};
use plumb_block::{
    Bytes, Caching, Device as _, EngineChoice, ErrorKind, Lba, LbaRange, RealClock, Request, Tag,
};
use plumb_linux::pagecache::{drop_clean, residency};
use plumb_linux::{FileOptions, TestFile};

const PIECE: Bytes = Bytes::kib(64);

/// Reads the whole file piece by piece. Returns the amount that is then in memory.
fn resident_after_reading(file: &TestFile, options: FileOptions) -> plumb_block::Result<Bytes> {
    drop_clean(file.as_fd(), Bytes(0), file.size(), "the file")?;
    let device = file.open(options, Arc::new(RealClock::start()))?;
    let (mut queue, _pool) = queue(&device);
    let block = device.info().logical_block;
    for piece in 0..file.size().0 / PIECE.0 {
        let range = LbaRange::new(Lba(piece * PIECE.0 / block.0), PIECE.0 / block.0);
        let outcome = answer(&mut *queue, Request::read(Tag(0), range)).outcome;
        assert!(outcome.is_done(), "{options:?}: {outcome:?}");
    }
    Ok(residency(file.as_fd(), Bytes(0), file.size(), "the file")?.resident)
}

#[test]
fn what_was_read_uncached_is_not_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = test_file(directory.path());
    for engine in [EngineChoice::Auto, EngineChoice::Synchronous] {
        let buffered = FileOptions::read_buffered().engine(engine);
        let cached = resident_after_reading(&file, buffered).unwrap();
        if cached < file.size() {
            return plumb_testkit::skip(&format!("the page cache keeps only {cached} of {}", file.size()));
        }
        match resident_after_reading(&file, buffered.caching(Caching::DropBehind)) {
            // Read-ahead may leave a part, but not the pieces that requests have read.
            Ok(left) => assert!(left.0 * 4 <= cached.0, "{left} of {cached} stayed with {engine:?}"),
            Err(error) => plumb_testkit::skip(&format!("{error}")),
        }
    }
}

#[test]
fn where_it_is_refused_opening_fails_and_names_the_flag() {
    let directory = match tempfile::tempdir_in("/dev/shm") {
        Ok(directory) => directory,
        Err(error) => return plumb_testkit::skip(&format!("no tmpfs at /dev/shm: {error}")),
    };
    let file = test_file(directory.path());
    for engine in [EngineChoice::Auto, EngineChoice::Synchronous] {
        let options = FileOptions::write_buffered().caching(Caching::DropBehind).engine(engine);
        match file.open(options, Arc::new(RealClock::start())) {
            Ok(_) => plumb_testkit::skip("tmpfs takes RWF_DONTCACHE here"),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unsupported);
                assert!(error.to_string().contains("RWF_DONTCACHE"), "{error}");
            }
        }
    }
}
