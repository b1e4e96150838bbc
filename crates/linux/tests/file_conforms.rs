//! Regular files keep the contract of the waist, on both engines, through and past the page cache.

mod support;

use plumb_block::conformance::run;
use plumb_linux::{EngineChoice, FileOptions};
use support::{FileRig, test_file};

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
    conforms(FileOptions::write_direct().engine(EngineChoice::Positioned));
}

#[test]
fn buffered_on_pread_and_pwrite() {
    conforms(FileOptions::write_buffered().engine(EngineChoice::Positioned));
}

/// tmpfs has no zero range and no extents: the slow ways are taken.
#[test]
fn buffered_in_memory() {
    let file = match tempfile::tempdir_in("/dev/shm") {
        Ok(directory) => (test_file(directory.path()), directory),
        Err(error) => return plumb_testkit::skip(&format!("no tmpfs at /dev/shm: {error}")),
    };
    for engine in [EngineChoice::Auto, EngineChoice::Positioned] {
        let options = FileOptions::write_buffered().engine(engine);
        run(&mut FileRig::new(&file.0.path(), options), 2).assert_conforms();
    }
}
