//! Tests of places that cannot be checked, or only in part: a clear message, the documented exit code, and
//! nothing left behind.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Output;

use rustix::fs::{FileType, Mode};

use crate::common::{can_mount, document, entries, exited, in_own_mounts, own_words, plumb, said, scratch};

/// Returns stderr without progress lines.
fn stderr(output: &Output) -> String {
    own_words(&output.stderr)
}

#[test]
fn a_missing_path_is_a_usage_error_that_names_it() {
    let here = scratch();
    let output = plumb().args(["check", "no/such/place"]).current_dir(here.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("no/such/place"), "{}", said(&output));
    assert_eq!(entries(here.path()), Vec::<String>::new());
}

#[test]
fn what_has_no_write_path_or_no_name_in_text_is_refused_for_that_reason() {
    let here = scratch();
    let directory = here.path().join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&directory).unwrap();
    let pipe = here.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let refused = |command: &str, target: &Path, from: &Path| {
        let output = exited(plumb().arg(command).arg(target).current_dir(from).output().unwrap(), 2);
        stderr(&output)
    };
    let survey = refused("survey", &pipe, here.path());
    assert!(survey.contains("neither a file nor a block device"), "{survey}");
    for command in ["survey", "check"] {
        for (target, from) in [(&*directory, here.path()), (Path::new("."), &*directory)] {
            let said = refused(command, target, from);
            assert!(said.contains("its name is not UTF-8") && !said.contains("no such path"), "{said}");
        }
    }
}

#[test]
fn nonsense_on_the_command_line_is_a_usage_error() {
    let here = scratch();
    for (arguments, named) in [
        (vec!["check", "--seconds", "0"], "0"),
        (vec!["check", "--seconds", "soon"], "soon"),
        (vec!["check", "--size", "12x"], "12x"),
        (vec!["check", "--size", "1k"], "1 KiB"),
        (vec!["check", "--size", "80000P"], "80000P"),
        (vec!["check", "--size", "900T"], "900 TiB"),
        (vec!["report", "nowhere"], "nowhere"),
        (vec!["survey", ".", "--format", "pdf"], "pdf"),
        (vec!["survey", "no/such/place"], "no/such/place"),
        (vec!["frobnicate"], "frobnicate"),
    ] {
        let output = plumb().args(&arguments).current_dir(here.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(stderr(&output).contains(named), "{arguments:?}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(entries(here.path()), Vec::<String>::new());
}

#[test]
fn a_raw_disk_is_refused() {
    // Memory disks and partitions of loop devices come and go with other tests.
    let stays = |name: &String| !name.starts_with("zram") && !name.trim_start_matches("loop").contains('p');
    let names = std::fs::read_dir("/sys/class/block").into_iter().flatten();
    let mut names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    let Some(device) =
        names.find(stays).map(|name| Path::new("/dev").join(name)).filter(|device| device.exists())
    else {
        return plumb_testkit::skip("there is no block device in /dev");
    };
    let output = exited(plumb().arg("check").arg(&device).output().unwrap(), 4);
    assert!(stderr(&output).contains("block device"), "{}", said(&output));
}

#[test]
fn a_read_only_file_system_is_surveyed_but_not_measured() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let script = "mount -t tmpfs -o ro none $place; cd /; exec $plumb check --json --out $(mktemp -d) $place";
    let output = in_own_mounts(script, place.path());
    assert!(matches!(output.status.code(), Some(1 | 3)), "{}", said(&output));
    assert!(stderr(&output).contains("read-only"), "{}", said(&output));
    assert_eq!(document(&output)["complete"], false);
}

#[test]
fn a_full_file_system_is_not_filled_further() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let script = "mount -t tmpfs -o size=4m none $place; cd $place; $plumb check --json . && code=0 || code=$?; \
                  ls -A $place >&2; exit $code";
    let output = in_own_mounts(script, place.path());
    assert!(matches!(output.status.code(), Some(1 | 3)), "{}", said(&output));
    assert!(stderr(&output).contains("free"), "{}", said(&output));
    assert!(!stderr(&output).contains("plumb-check-"), "a run directory of nothing: {}", said(&output));
}

#[test]
fn without_o_direct_the_rest_is_measured() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let script = "mount -t ramfs none $place; \
                  $plumb check --seconds 2 --size 4M --json --out $(mktemp -d) $place && code=0 || code=$?; \
                  ls -A $place >&2; exit $code";
    let output = in_own_mounts(script, place.path());
    assert_eq!(output.status.code(), Some(1), "memory is a finding: {}", said(&output));
    let document = document(&output);
    assert_eq!(document["complete"], true, "the place has no O_DIRECT: {}", said(&output));
    for io in document["io"].as_array().unwrap() {
        let direct = io["name"].as_str().unwrap().ends_with("direct");
        assert_eq!(io["application"].is_null(), direct, "{io}");
        assert_eq!(io["failed_because"].is_string(), direct, "{io}");
    }
    assert!(stderr(&output).contains("O_DIRECT"), "{}", said(&output));
}

#[test]
fn a_device_that_fails_ends_the_check_and_is_said() {
    if !can_mount() {
        return;
    }
    if !Path::new("/dev/loop-control").exists() {
        return plumb_testkit::skip("a failing loop device needs root and /dev/loop-control");
    }
    let place = scratch();
    // The disk's backing file is on a tmpfs that is too small for it, so writes fail eventually.
    let script = "mount -t tmpfs -o size=8m none $place; truncate -s 512M $place/disk; \
                  loop=$(losetup --find --show $place/disk); trap 'umount $place/mnt; losetup -d $loop' EXIT; \
                  mkfs.ext4 -q -E lazy_itable_init=1,lazy_journal_init=1 -O ^has_journal $loop; mkdir $place/mnt; \
                  mount $loop $place/mnt; \
                  $plumb check --seconds 2 --json --out $(mktemp -d) $place/mnt && code=0 || code=$?; exit $code";
    let output = in_own_mounts(script, place.path());
    // The loop driver answers with EIO or, since Linux 5.10, with ENOSPC. The tmpfs is a finding, which
    // outranks "not measured".
    assert!(matches!(output.status.code(), Some(1 | 5)), "{}", said(&output));
    let document = document(&output);
    assert_eq!(document["complete"], false);
    assert!(document["incomplete_because"].is_string(), "{}", said(&output));
}

/// One reason has one exit code, whatever was to be written.
#[test]
fn what_is_to_be_written_to_a_read_only_place_is_refused() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let load = "load --size 1M --write 100 --duration 100ms --no-record --overwrite";
    let commands = [
        &format!("{load} ro/old"),
        &format!("{load} ro/new"),
        &format!("{load} ro"),
        "fio --name=x --filename=ro/new --size=1m --rw=write --no-record",
        "check sim:null --out ro/run",
        "survey . --record ro/run",
        "fio --name=x --filename=new --size=64k --rw=write --output=ro/out --no-record",
        "observe . --duration 100ms --out ro/run",
        "prove app --fs posix --run true --out ro/run",
        "drive serve null --nbd ro/socket",
        "drive serve memory --size 4M --backing ro/new --nbd socket",
        "cache create --name x --backing backing --log ro/new --size 16M",
    ];
    let each = |command: &&str| format!("code=0; $plumb {command} || code=$?; test $code = 4; ");
    let script = format!(
        "cd $place; export STATE_DIRECTORY=$place/state; truncate -s 32M backing; mkdir ro; mount -t tmpfs none ro; \
         truncate -s 1M ro/old; mount -o remount,ro ro; {}",
        commands.iter().map(each).collect::<String>()
    );
    exited(in_own_mounts(&script, place.path()), 0);
}
