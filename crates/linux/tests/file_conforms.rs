//! Tests that regular files keep the contract of the waist, on every engine, through and past the page cache,
//! and with every method to make writes durable.

use crate::support::{FileRig, test_file};
use plumb_block::conformance::run;
use plumb_block::{Caching, DurableWrite, EngineChoice, FlushCall};
use plumb_linux::FileOptions;

fn conforms(options: FileOptions) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = test_file(directory.path());
    run(&mut FileRig::new(&file.path(), options), 1).assert_conforms();
}

fn on_io_uring(options: FileOptions) {
    let options = options.engine(EngineChoice::IoUring);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = test_file(directory.path());
    let clock = std::sync::Arc::new(plumb_block::RealClock::start());
    match file.open(options, clock) {
        Err(error) => plumb_testkit::skip(&format!("{error}")),
        Ok(_) => conforms(options),
    }
}

#[test]
fn direct_on_io_uring() {
    on_io_uring(FileOptions::write_direct());
}

#[test]
fn buffered_on_io_uring() {
    on_io_uring(FileOptions::write_buffered());
}

#[test]
fn direct_on_pread_and_pwrite() {
    conforms(FileOptions::write_direct().engine(EngineChoice::Synchronous));
}

#[test]
fn buffered_on_pread_and_pwrite() {
    conforms(FileOptions::write_buffered().engine(EngineChoice::Synchronous));
}

#[test]
fn mapped() {
    conforms(FileOptions::write_buffered().caching(Caching::Mapped));
}

#[test]
fn uncached_on_both() {
    let uncached = FileOptions::write_buffered().caching(Caching::DropBehind);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = test_file(directory.path());
    let clock = std::sync::Arc::new(plumb_block::RealClock::start());
    if let Err(error) = file.open(uncached, clock) {
        return plumb_testkit::skip(&format!("{error}"));
    }
    on_io_uring(uncached);
    conforms(uncached.engine(EngineChoice::Synchronous));
}

#[test]
fn fsync_and_o_sync_on_both() {
    let options = FileOptions::write_direct().flush(FlushCall::Fsync).durable_write(DurableWrite::Sync);
    on_io_uring(options);
    conforms(options.engine(EngineChoice::Synchronous));
}

/// Uses the slow methods, since tmpfs has no zero range and no extents.
#[test]
fn buffered_in_memory() {
    let file = match tempfile::tempdir_in("/dev/shm") {
        Ok(directory) => (test_file(directory.path()), directory),
        Err(error) => return plumb_testkit::skip(&format!("no tmpfs at /dev/shm: {error}")),
    };
    for options in [
        FileOptions::write_buffered(),
        FileOptions::write_buffered().engine(EngineChoice::Synchronous),
        FileOptions::write_buffered().caching(Caching::Mapped),
    ] {
        run(&mut FileRig::new(&file.0.path(), options), 2).assert_conforms();
    }
}
