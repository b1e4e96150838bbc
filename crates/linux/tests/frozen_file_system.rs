//! Tests that a request that the kernel does not answer is abandoned at its deadline, and that its memory is
//! kept until the kernel answers. A frozen file system delays every write; only root can freeze one.

use std::fs::File;

use crate::support::{FileRig, Mount, alone, run, test_file};
use plumb_block::EngineChoice;
use plumb_block::conformance::{Verdict, run_some};
use plumb_linux::FileOptions;

#[test]
fn a_write_to_a_frozen_file_system_is_unknown_at_its_deadline() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(32 << 20).unwrap();
    let image = image.display().to_string();
    let made = run("mkfs.ext4", &["-q", "-F", &image]).and_then(|_| Mount::new(&["-o", "loop", &image]));
    let mount = match made {
        Ok(mount) => mount,
        Err(why) => return plumb_testkit::skip(&format!("no file system of our own: {why}")),
    };
    let place = mount.point.path().display().to_string();
    let file = test_file(mount.point.path());
    for options in [FileOptions::write_direct(), FileOptions::write_buffered()] {
        let mut rig = FileRig::new(&file.path(), options.engine(EngineChoice::Auto));
        let (frozen, thawed) = (place.clone(), place.clone());
        let freeze = move || drop(run("fsfreeze", &["--freeze", &frozen]).unwrap());
        // Also called when nothing is frozen.
        let thaw = move || drop(run("fsfreeze", &["--unfreeze", &thawed]));
        rig.hold = Some((Box::new(freeze), Box::new(thaw)));
        let report = run_some(&mut rig, 6, &["past-its-deadline-a-request-is-unknown"]);
        report.assert_conforms();
        assert_eq!(report.checks[0].verdict, Verdict::Passed);
    }
}
