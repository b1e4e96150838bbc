//! Tests that try to violate each sentence of the section "Safety" of the README: with layers below a target,
//! with kernel files, with files that change while they are measured, and with names that control a terminal.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::common::{plumb, said, scratch};
use crate::load_support::{LoopDevice, Place, start, stderr, system, wait_for};

/// Runs a command with the words `typed` in `directory`, and returns its exit code and output.
fn tried(directory: &Path, typed: &[&str]) -> (Option<i32>, String) {
    let output = plumb().current_dir(directory).args(typed).output().unwrap();
    (output.status.code(), said(&output))
}

#[test]
fn every_command_that_writes_refuses_a_loop_device_over_a_mounted_one() {
    let place = scratch();
    let image = place.path().join("image");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(lower) = LoopDevice::over(&image, &[]) else { return };
    let point = place.path().join("m");
    fs::create_dir(&point).unwrap();
    let mounted = system("mkfs.ext4", &["-q", &lower.path])
        .and_then(|_| system("mount", &[&lower.path, point.to_str().unwrap()]));
    if let Err(why) = mounted {
        return plumb_testkit::skip(&why);
    }
    let mut wrong = Vec::new();
    // One over the device, one over its file.
    for below in [Path::new(&lower.path), &image] {
        let Some(upper) = LoopDevice::over(below, &[]) else { break };
        let device = upper.path.as_str();
        let log = ["cache", "create", "--name", "x", "--backing", "image2", "--log", device, "--size", "16M"];
        let backing =
            ["cache", "create", "--name", "x", "--backing", device, "--log", "log", "--size", "16M"];
        fs::File::create(place.path().join("image2")).unwrap().set_len(64 << 20).unwrap();
        let commands: [&[&str]; 8] = [
            &["load", device, "--write", "100", "--overwrite", "--count", "10", "--no-record"],
            &["load", device, "--trim", "100", "--overwrite", "--count", "10", "--no-record"],
            &["diskspd", "-w100", "-d1", "-W0", "--overwrite", "--no-record", device],
            &[
                "fio",
                "--name=x",
                "--rw=write",
                "--size=1m",
                "--overwrite",
                "--no-record",
                &format!("--filename={device}"),
            ],
            &[
                "compare",
                "--factor",
                "buffering=cached,direct",
                device,
                "--write",
                "100",
                "--overwrite",
                "--random",
                "--budget",
                "60s",
                "--no-record",
            ],
            &["prove", "writer", device, "--overwrite", "--seconds", "1", "--witness", "cat"],
            &[&log[..], &["--overwrite"]].concat(),
            &[&backing[..], &["--overwrite"]].concat(),
        ];
        for typed in commands {
            let (code, text) = tried(place.path(), typed);
            // An invalid command line is not the expected refusal, so the message is checked, too.
            if code != Some(4) || !text.contains("is mounted at") {
                wrong.push(format!("{typed:?}: {code:?}: {text}"));
            }
        }
    }
    system("umount", &[point.to_str().unwrap()]).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_with_a_signature_is_destroyed_only_by_its_name() {
    let place = Place::new();
    let path = place.path("image");
    fs::File::create(&path).unwrap().set_len(64 << 20).unwrap();
    if let Err(why) = system("mkfs.ext4", &["-q", "-F", path.to_str().unwrap()]) {
        return plumb_testkit::skip(&why);
    }
    let before = fs::read(&path).unwrap();
    fs::File::create(place.path("backing")).unwrap().set_len(64 << 20).unwrap();
    let create = "cache create --name x --backing backing --log image --size 16M --overwrite";
    for typed in ["load image --write 100 --count 10 --no-record --overwrite", create] {
        let words: Vec<&str> = typed.split(' ').collect();
        let (code, text) = tried(place.here.path(), &words);
        assert_eq!(code, Some(4), "{typed}: {text}");
        assert!(text.contains("it holds ext4") && text.contains("--destroy"), "{typed}: {text}");
    }
    assert!(fs::read(&path).unwrap() == before, "a refusal has changed the file");
    let destroy = path.canonicalize().unwrap().display().to_string();
    let typed = ["load", "image", "--write", "100", "--count", "10", "--no-record", "--destroy", &destroy];
    let (code, text) = tried(place.here.path(), &typed);
    assert!(matches!(code, Some(0 | 1)), "{text}");
}

#[test]
fn files_of_the_kernel_are_refused() {
    let place = scratch();
    for typed in [
        &["load", "/proc/self/comm", "--write", "100", "--overwrite", "--count", "1", "--no-record"][..],
        &["load", "/sys/power/state", "--count", "1", "--no-record"],
        &["load", "/proc/new", "--size", "1M", "--write", "100", "--count", "1", "--no-record"],
        &[
            "drive",
            "serve",
            "consumer-sata-ssd",
            "--name",
            "x",
            "--size",
            "16M",
            "--nbd",
            "x.sock",
            "--backing",
            "/proc/self/comm",
        ],
    ] {
        let (code, text) = tried(place.path(), typed);
        if !Path::new(typed[1]).exists() && typed[1].starts_with("/sys/") {
            // The file does not exist on this machine.
            continue;
        }
        assert_eq!(code, Some(4), "{typed:?}: {text}");
        assert!(text.contains("a file of the kernel"), "{text}");
    }
}

#[test]
fn a_file_that_changes_while_it_is_measured_is_not_measured() {
    let cut = |path: &Path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(4096).unwrap();
    let replace = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::write(path, vec![0; 1 << 20]).unwrap();
    };
    let cut_and_grow = |path: &Path| {
        cut(path);
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 20).unwrap();
    };
    type Change<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Change<'_>); 4] = [
        ("lost up to 1020 KiB of its blocks while it was measured", &cut_and_grow),
        ("became shorter, by at least 1020 KiB of 1 MiB,", &cut),
        ("was removed or renamed", &|path| fs::remove_file(path).unwrap()),
        ("was replaced by another file", &replace),
    ];
    for (words, change) in cases {
        let place = Place::new();
        place.foreign("f", 1 << 20);
        fs::File::open(place.path("f")).unwrap().sync_all().unwrap();
        let mut child = start(&mut place.command("load f --duration 2s"));
        let mut lines = wait_for("measur", &mut child);
        // Reading between the steps of a change would see an intermediate state.
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::STOP).unwrap();
        waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        change(&place.path("f"));
        kill_process(pid, Signal::CONT).unwrap();
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(3 | 5)), "{words}: {code:?}: {rest}");
        assert!(rest.contains(words), "{rest}");
    }
}

#[test]
fn holes_that_a_run_makes_or_finds_are_no_change() {
    let place = Place::new();
    place.foreign("f", 1 << 20);
    fs::File::open(place.path("f")).unwrap().sync_all().unwrap();
    fs::OpenOptions::new().write(true).open(place.path("f")).unwrap().set_len(2 << 20).unwrap();
    for options in [&["--write", "50"][..], &["--write", "50", "--trim", "50"]] {
        let typed = ["load", "f", "--overwrite", "--count", "300", "--no-record"];
        let (code, text) = tried(place.here.path(), &[&typed[..], options].concat());
        assert!(matches!(code, Some(0 | 1)) && !text.contains("while it was measured"), "{code:?}: {text}");
    }
}

#[test]
fn a_name_of_two_lines_says_nothing_of_its_own() {
    let place = Place::new();
    let name = "f\nplumb: all is well";
    place.foreign(name, 1 << 20);
    for typed in [
        vec!["load", name, "--write", "100", "--count", "1", "--no-record"],
        vec!["report", name],
        vec!["report", name, "-o", name],
        vec!["load", "sim:memory", "--count", "1", "--out", name],
        vec!["cache", "create", "--name", "x", "--backing", name, "--log", name, "--size", "16M"],
        vec!["survey", name],
        vec!["load", name, "--count", "1", "--no-record"],
    ] {
        let output = plumb().current_dir(place.here.path()).args(&typed).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(!text.lines().any(|line| line.starts_with("plumb: all is well")), "{typed:?}: {text}");
    }
}

#[test]
fn a_name_steers_no_terminal() {
    let place = Place::new();
    let name = "a\u{1b}[31m\u{1b}]0;x\u{7}\u{202e}b";
    place.foreign(name, 1 << 20);
    let missing = format!("no-{name}");
    for typed in [
        vec!["load", name, "--write", "100", "--count", "1", "--no-record"],
        vec!["load", name, "--count", "10", "--no-record"],
        vec!["load", name, "--count", "10", "--no-record", "--json"],
        vec!["load", &missing],
        vec!["load", name, "--block", name],
        vec![name],
        vec!["survey", name],
        vec!["check", &missing],
        vec!["observe", &missing],
        vec!["report", name],
        vec!["diskspd", "-d1", "-W0", "-c1M", name],
        vec!["fio", name],
        vec!["cache", "status", name],
        vec!["cache", "create", "--name", name, "--backing", name, "--log", name, "--size", "16M"],
        vec!["drive", "serve", name],
        vec!["explain", name],
        vec!["policy", "show", name],
    ] {
        let output = plumb().current_dir(place.here.path()).args(&typed).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        let steers = |c: char| (c.is_control() && c != '\n' && c != '\t' && c != '\r') || c == '\u{202e}';
        assert!(!text.contains(steers), "{typed:?}: {text:?}");
    }
}
