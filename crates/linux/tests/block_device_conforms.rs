//! Tests that block devices keep the contract of the waist, with own loop devices, so only root can run them.
//! One loop device is on a full file system, so that a write-back really fails.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::support::{FileRig, LoopDevice, Mount, alone};
use plumb_block::conformance::{Verdict, run, run_some};
use plumb_block::{Caching, EngineChoice};
use plumb_linux::FileOptions;

#[test]
fn loop_devices_conform() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let backing = directory.path().join("backing");
    File::create(&backing).unwrap().set_len(8 << 20).unwrap();
    let Some(device) = LoopDevice::over(&backing, &[]) else { return };
    for options in [FileOptions::write_direct(), FileOptions::write_buffered()] {
        for engine in [EngineChoice::Auto, EngineChoice::Synchronous] {
            run(&mut FileRig::new(device.as_path(), options.engine(engine)), 3).assert_conforms();
        }
    }
    let mapped = FileOptions::write_buffered().caching(Caching::Mapped);
    run(&mut FileRig::new(device.as_path(), mapped), 3).assert_conforms();
}

#[test]
fn a_failed_write_back_latches_the_device() {
    let _alone = alone();
    let mount = match Mount::new(&["-t", "tmpfs", "-o", "size=2m", "tmpfs"]) {
        Ok(mount) => mount,
        Err(why) => return plumb_testkit::skip(&format!("cannot mount: {why}")),
    };
    let backing = mount.point.path().join("backing");
    File::create(&backing).unwrap().set_len(16 << 20).unwrap();
    let Some(device) = LoopDevice::over(&backing, &[]) else { return };
    for options in [
        FileOptions::write_buffered(),
        FileOptions::write_buffered().engine(EngineChoice::Synchronous),
        FileOptions::write_buffered().caching(Caching::Mapped),
    ] {
        let mut rig = FileRig::new(device.as_path(), options);
        let (path, filler) = (device.path.clone(), mount.point.path().join("filler"));
        rig.fail_flush = Some(Box::new(move || {
            fill(&filler);
            // A dirty page for which the backing file system has no room; the next flush writes it back.
            let disk = OpenOptions::new().write(true).open(&path).unwrap();
            disk.write_all_at(&[1; 4096], 12 << 20).unwrap();
            // Closing the descriptor does not write the page back, since others have the device open.
        }));
        let report = run_some(&mut rig, 4, &["a-failed-flush-latches"]);
        report.assert_conforms();
        assert_eq!(report.checks[0].verdict, Verdict::Passed);
    }
}

/// Fills the file system of `filler` to the last page.
fn fill(filler: &Path) {
    let mut file = OpenOptions::new().append(true).create(true).open(filler).expect("a filler");
    while file.write_all(&[0xff; 4096]).is_ok() {}
}
