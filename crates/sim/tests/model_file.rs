//! Tests of models in files that a user names, which may hold anything: no file hangs the program or fills
//! its memory, and the error states what was found, what was expected, and where.
use std::fs::File;
use std::path::Path;

use plumb_sim::model::Model;
use rustix::fs::{CWD, FileType, Mode, mknodat};

fn refusal(path: &Path) -> String {
    let error = Model::from_file(path).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    let said = format!("{error} {source}");
    assert!(said.contains(&path.display().to_string()), "which one? {said}");
    said
}

#[test]
fn a_file_is_read_and_what_is_wrong_in_it_is_told_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, include_str!("../models/plp-nvme-ssd.toml")).unwrap();
    assert_eq!(Model::from_file(&path).unwrap().name, "plp-nvme-ssd");
    std::fs::write(&path, "name = 1").unwrap();
    assert!(refusal(&path).contains("mine.toml:1"));
    std::fs::write(&path, [b'#', b'\n', 0xff, 0xfe]).unwrap();
    assert!(refusal(&path).contains("line 2 is not UTF-8"));
}

#[test]
fn what_is_no_regular_file_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe.toml");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for (path, found) in [
        (pipe.as_path(), "is a pipe"),
        (directory.path(), "is a directory"),
        (Path::new("/dev/zero"), "is a character device"),
    ] {
        let said = refusal(path);
        assert!(said.contains(found) && said.contains("a regular file of at most 1 MiB"), "{said}");
    }
}

#[test]
fn what_is_longer_than_a_model_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.toml");
    let mebibyte = 1 << 20;
    for length in [1 << 30, mebibyte + 1] {
        File::create(&path).unwrap().set_len(length).unwrap();
        assert!(refusal(&path).contains("is longer than 1 MiB"), "{length}");
    }
    // A file of exactly 1 MiB is read.
    let comment = "#".repeat(mebibyte as usize - 1) + "\n";
    std::fs::write(&path, comment).unwrap();
    assert!(refusal(&path).contains("name: is missing"));
}
