//! Medium of a served drive: no foreign file becomes one without permission. Guards against writing a drive
//! over an image that is mounted or kept.

use std::fs::{self, File};
use std::path::Path;
use std::sync::LazyLock;

use crate::support::alone;
use plumb_block::Bytes;
use plumb_targets::{Error, Kind, Medium, MediumWanted, Permission};
use plumb_testkit::loop_device::LoopDevice;

const SIZE: u64 = 1 << 20;

/// Without and with `--overwrite`.
static ALLOWED: LazyLock<[Permission; 2]> =
    LazyLock::new(|| [false, true].map(|overwrite| Permission { overwrite, ..Permission::default() }));

fn wanted(overwrite: bool) -> MediumWanted<'static> {
    let permission = &ALLOWED[usize::from(overwrite)];
    MediumWanted { size: Bytes(SIZE), block: Bytes(512), model: "a model", permission }
}

fn take(path: &Path, overwrite: bool) -> Result<Option<String>, Error> {
    Medium::open(path, &path.display().to_string(), wanted(overwrite)).map(|medium| medium.pending.settle())
}

/// Returns the refusal of a file, which must stay unchanged.
fn refusal(path: &Path, overwrite: bool) -> String {
    let before = fs::read(path).unwrap();
    let error = take(path, overwrite).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    assert!(fs::read(path).unwrap() == before, "a refusal has changed the file");
    error.to_string()
}

#[test]
fn what_plumb_made_is_taken_again_and_what_somebody_keeps_only_as_told() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("short"), "hello\n").unwrap();
    let said = refusal(&at("short"), true);
    assert!(said.contains("6 bytes long") && !said.contains("--size"), "{said}");
    fs::write(at("theirs"), vec![7; SIZE as usize]).unwrap();
    let said = refusal(&at("theirs"), false);
    assert!(said.contains("--overwrite"), "{said}");
    File::create(at("hole")).unwrap().set_len(SIZE).unwrap();
    take(&at("hole"), false).unwrap();
    fs::write(at("empty"), "").unwrap();
    take(&at("empty"), false).unwrap();
    assert_eq!(fs::metadata(at("empty")).unwrap().len(), SIZE);
    let note = take(&at("new"), false).unwrap();
    // A used drive has written to its medium.
    fs::write(at("new"), vec![9; SIZE as usize]).unwrap();
    if note.is_some() {
        assert!(refusal(&at("new"), false).contains("--overwrite"));
        return plumb_testkit::skip("the temporary directory keeps no user attributes");
    }
    assert_eq!(take(&at("new"), false).unwrap(), None);
    let other = MediumWanted { block: Bytes(4096), ..wanted(false) };
    let said = Medium::open(&at("new"), "new", other).unwrap_err().to_string();
    assert!(said.contains("a model") && said.contains("512 B"), "{said}");
    take(&at("theirs"), true).unwrap();
    assert_eq!(fs::read(at("theirs")).unwrap(), vec![7; SIZE as usize]);
    take(&at("theirs"), false).unwrap();
}

#[test]
fn one_drive_has_it_and_a_drive_that_came_to_nothing_leaves_nothing() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new");
    let medium = Medium::open(&path, "new", wanted(false)).unwrap();
    let second = Medium::open(&path, "new", wanted(true)).unwrap_err();
    assert!(second.to_string().contains("another drive or run of plumb has it"), "{second}");
    medium.pending.undo();
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    Medium::open(&path, "new", wanted(false)).unwrap().pending.undo();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    for (path, kind) in [("/dev/null/x", Kind::NotFound), ("/dev/zero", Kind::Usage)] {
        assert_eq!(take(Path::new(path), true).unwrap_err().kind(), kind, "{path}");
    }
}

#[test]
fn a_file_behind_a_loop_device_and_the_device_are_refused_whatever_is_said() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("image");
    fs::write(&path, vec![7; SIZE as usize]).unwrap();
    let Some(device) = LoopDevice::over(&path, &[]) else { return };
    let said = refusal(&path, true);
    assert!(said.contains(&format!("behind {}", device.name)), "{said}");
    let said = take(device.as_path(), true).unwrap_err();
    assert!(said.kind() == Kind::Refused && said.found().contains("block device"), "{said}");
}
