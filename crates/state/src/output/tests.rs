//! Tests of the contract of output files, case by case. A result once replaced a device node.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn to(path: &Path, overwrite: bool) -> OutputFile<'_> {
    OutputFile { path, overwrite }
}

/// Returns the refusal of a write, with or without `--overwrite`: both checks must agree.
fn refusal(path: &Path, overwrite: bool) -> OutputError {
    let checked = to(path, overwrite).check().unwrap_err();
    let written = to(path, overwrite).write(b"result").unwrap_err();
    assert_eq!(checked.to_string(), written.to_string());
    written
}

#[test]
fn a_foreign_file_is_replaced_only_with_overwrite_and_keeps_its_permissions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("theirs");
    fs::write(&path, "precious").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = refusal(&path, false);
    assert_eq!(error.kind, FailureKind::Refused);
    assert!(error.to_string().contains("theirs") && error.to_string().contains("--overwrite"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    to(&path, true).write(b"result").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"result");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_file_of_the_kernel_is_no_output_file() {
    // Files of /proc have the length of empty ones. The links there lead to the open files of the process.
    for (path, system) in [
        ("/proc/version", "proc"),
        ("/proc/none", "proc"),
        ("/sys/kernel/uevent_seqnum", "sysfs"),
        ("/sys/none", "sysfs"),
    ] {
        for overwrite in [false, true] {
            let error = refusal(Path::new(path), overwrite);
            assert_eq!(error.kind, FailureKind::Refused);
            let expected =
                format!("{path}: it is in a file system of the kernel ({system}), which stores nothing");
            assert!(error.to_string().starts_with(&expected), "{error}");
            assert!(error.to_string().ends_with("name a file in another directory"), "{error}");
        }
    }
}

#[test]
fn new_empty_and_own_files_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ours");
    for before in [None, Some(""), Some("{\"schema\": \"plumb/load/1\"}\n")] {
        if let Some(before) = before {
            fs::write(&path, before).unwrap();
        }
        to(&path, false).write(b"result").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"result", "{before:?}");
        fs::remove_file(&path).unwrap();
    }
    let error = refusal(&directory.path().join("none/ours"), false);
    assert_eq!(error.kind, FailureKind::Usage);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn parts_of_a_recording_are_replaced_only_with_overwrite() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let own = "{\"schema\": \"plumb/load/1\"}\n";
    for record in ["manifest.json", "recording.json", "campaign.json", "snapshot.json"] {
        fs::write(at("result.json"), own).unwrap();
        fs::write(at(record), "{\"schema\": \"other/1\"}").unwrap();
        to(&at("result.json"), false).write(own.as_bytes()).unwrap();
        fs::write(at(record), own).unwrap();
        for part in ["result.json", record] {
            let error = refusal(&at(part), false);
            assert!(error.to_string().contains("part of the recording"), "{error}");
            assert_eq!(fs::read_to_string(at(part)).unwrap(), own);
        }
        // A page is generated from the other files, and a new file destroys nothing.
        fs::write(at("report.html"), own).unwrap();
        to(&at("report.html"), false).write(b"page").unwrap();
        to(&at("new"), false).write(b"new").unwrap();
        to(&at("result.json"), true).write(b"result").unwrap();
        fs::remove_file(at("new")).unwrap();
        fs::remove_file(at(record)).unwrap();
    }
}

#[test]
fn a_result_of_any_format_is_recognised_until_somebody_changes_it() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("out");
    let results = [
        "<html></html>\n",
        "[{\"check_name\": \"plumb\"}]",
        "a,b\n1,2\n",
        "Starting 1 process\nplumb-0.1.0\n",
    ];
    for result in results {
        to(&path, true).write(result.as_bytes()).unwrap();
        let mut sum = [0; 64];
        if rustix::fs::getxattr(&path, "user.plumb.result", &mut sum) == Err(rustix::io::Errno::OPNOTSUPP) {
            plumb_testkit::skip("the file system of the sources keeps no extended attributes");
            return;
        }
        to(&path, false).write(result.as_bytes()).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"my notes\n").unwrap();
        assert!(refusal(&path, false).to_string().contains("does not recognise it"), "{result}");
    }
    write_page(&path, b"page").unwrap();
    to(&path, false).write(b"another").unwrap();
}

/// Tests that markup contains its checksum: a copy without attributes is recognised, too.
#[test]
fn markup_carries_its_sum() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("out"), directory.path().join("copy"));
    for result in ["<html></html>\n", "# plumb load\n\n<!-- end of a report of plumb -->\n"] {
        to(&path, true).write(result.as_bytes()).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.starts_with(result) && written.lines().count() == result.lines().count() + 1);
        fs::write(&copy, &written).unwrap();
        to(&copy, false).write(b"another").unwrap();
        for changed in [
            result.to_owned(),
            format!("{written}my notes\n"),
            written.replacen('p', "q", 1),
            format!("mine\n{written}"),
        ] {
            fs::write(&copy, &changed).unwrap();
            assert!(refusal(&copy, false).to_string().contains("does not recognise it"), "{changed}");
        }
    }
}

#[test]
fn a_name_among_devices_is_no_place_for_a_file() {
    let error = refusal(Path::new("/dev/none-such"), true);
    assert!(error.kind == FailureKind::Usage && error.to_string().contains("no such device"), "{error}");
    assert!(!Path::new("/dev/none-such").exists());
}

#[test]
fn names_that_cannot_be_a_file_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("file"), "x").unwrap();
    symlink("two", at("one")).unwrap();
    symlink("one", at("two")).unwrap();
    for (name, kind, says) in [
        ("new/", FailureKind::Usage, "there is no directory"),
        ("file/below", FailureKind::Usage, "there is no directory"),
        ("one", FailureKind::Refused, "leads to itself"),
        (&"x".repeat(300), FailureKind::Usage, "longer than a file system takes"),
    ] {
        let error = refusal(&at(name), true);
        assert!(error.kind == kind && error.to_string().contains(says), "{name}: {error}");
    }
}

#[test]
fn a_link_is_followed_only_to_what_could_be_named_itself() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("theirs"), "precious").unwrap();
    fs::write(at("empty"), "").unwrap();
    for (link, target) in [("a", "theirs"), ("b", "empty"), ("c", "none"), ("d", "/dev/full"), ("e", "b")] {
        symlink(target, at(link)).unwrap();
    }
    assert!(refusal(&at("a"), false).to_string().contains("theirs"));
    assert!(refusal(&at("c"), true).to_string().contains("symbolic link"));
    assert!(refusal(&at("d"), true).to_string().contains("character device"));
    to(&at("e"), false).write(b"through two links").unwrap();
    assert_eq!(fs::read(at("empty")).unwrap(), b"through two links");
    assert_eq!(fs::read(at("theirs")).unwrap(), b"precious");
    assert!(at("a").is_symlink() && at("e").is_symlink() && at("b").is_symlink() && !at("none").exists());
}

#[test]
fn nodes_are_written_to_or_refused_but_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    to(Path::new("/dev/null"), false).write(b"gone").unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    for node in ["/dev/full", "/dev/zero", "/dev"] {
        assert_eq!(refusal(Path::new(node), true).kind, FailureKind::Refused, "{node}");
    }
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(refusal(&socket, true).to_string().contains("socket"));
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    to(&fifo, false).write(b"through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn a_descriptor_is_written_at_its_end_and_one_that_is_read_is_refused() {
    use std::os::fd::AsRawFd as _;
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("theirs"), directory.path().join("link"));
    fs::write(&path, "precious ").unwrap();
    let read = File::open(&path).unwrap();
    let error = refusal(Path::new(&format!("/dev/fd/{}", read.as_raw_fd())), true);
    assert!(error.to_string().contains("not open for writing"), "{error}");
    let written = File::options().append(true).open(&path).unwrap();
    symlink(format!("/proc/self/fd/{}", written.as_raw_fd()), &link).unwrap();
    to(&link, false).write(b"and more").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"precious and more");
    assert!(link.is_symlink());
}

#[test]
fn a_result_that_cannot_be_made_leaves_the_old_contents() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ours");
    fs::write(&path, "# HELP plumb_x X.\n").unwrap();
    let error = to(&path, false).write_with(|file| {
        file.write_all(b"half").unwrap();
        Err(io::Error::other("no more"))
    });
    assert!(matches!(error, Err(WriteError::Content(_))));
    assert_eq!(fs::read(&path).unwrap(), b"# HELP plumb_x X.\n");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
