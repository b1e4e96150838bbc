//! Tests of traces: a trace recorded by fio is replayed at its times on the intended targets, and an invalid
//! or unsuitable trace is refused with the position of the problem.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{document, exited, plumb, said, scratch};
use plumb_testkit::program::fio_is_here;
use serde_json::Value;

/// Runs `plumb load` with these arguments in `place`, and returns the output.
fn load(place: &Path, arguments: &[&str]) -> Output {
    plumb()
        .current_dir(place)
        .arg("load")
        .args(arguments)
        .args(["--cached", "--json", "--out", "run"])
        .output()
        .unwrap()
}

fn replayed(place: &Path, arguments: &[&str]) -> Value {
    let output = load(place, arguments);
    // Findings about a shared machine do not matter here.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    document(&output)
}

fn counts(document: &Value, kind: &str) -> (u64, u64) {
    let side = &document["total"][kind];
    (side["ios"].as_u64().unwrap(), side["bytes"].as_u64().unwrap())
}

fn notes(document: &Value) -> String {
    document["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Makes fio write a file and a trace, and returns fio's results.
fn recorded_by_fio(place: &Path) -> Value {
    let typed = "--name=x --filename=data --rw=randrw --bs=4k,8k --size=1m --fsync=16 --ioengine=psync \
                 --write_iolog=trace.log --randseed=1 --output-format=json";
    let output = exited(Command::new("fio").current_dir(place).args(typed.split(' ')).output().unwrap(), 0);
    document(&output)["jobs"][0].clone()
}

#[test]
fn what_fio_recorded_is_done_again() {
    if !fio_is_here() {
        return;
    }
    let place = scratch();
    let theirs = recorded_by_fio(place.path());
    let expected = |kind: &str| {
        let number = |name: &str| theirs[kind][name].as_u64().unwrap();
        (number("total_ios"), number("io_bytes"))
    };
    // The trace's own target is a file that plumb did not create.
    exited(load(place.path(), &["--trace", "trace.log"]), 4);
    let ours = replayed(place.path(), &["--trace", "trace.log", "--trace-speed", "unpaced", "--overwrite"]);
    assert_eq!((counts(&ours, "read"), counts(&ours, "write")), (expected("read"), expected("write")));
    let syncs = theirs["sync"]["lat_ns"]["N"].as_u64().unwrap();
    assert_eq!(ours["total"]["sync"]["ios"].as_u64().unwrap(), syncs);
    assert!(ours["targets"][0]["name"].as_str().unwrap().ends_with("data"), "{ours}");
    assert!(notes(&ours).contains("as fast as the depth allows"), "{}", notes(&ours));
    // The trace is also replayed through plumb fio, on a file that is created and removed.
    let typed = "fio --json --out second --name=x --read_iolog=trace.log --replay_no_stall=1 --replay_redirect=made \
                 --size=1m --unlink=1";
    let output = plumb().current_dir(place.path()).args(typed.split(' ')).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    let ours = document(&output);
    assert_eq!((counts(&ours, "read"), counts(&ours, "write")), (expected("read"), expected("write")));
    assert!(!place.path().join("made").exists(), "unlink removes what the run made");
    assert!(place.path().join("data").exists());
}

#[test]
fn times_are_kept_and_scaled() {
    let place = scratch();
    let trace = "fio version 3 iolog\n0 a add\n0 a open\n5 a write 0 4096\n100005 a read 0 4096\n\
                 250005 a datasync 0 0\n400005 a write 8192 512\n400006 a close\n";
    std::fs::write(place.path().join("t"), trace).unwrap();
    let seconds = |speed: &str, name: &str| {
        let ours = replayed(place.path(), &[name, "--size", "64k", "--trace", "t", "--trace-speed", speed]);
        assert_eq!((counts(&ours, "write"), counts(&ours, "read")), ((2, 4608), (1, 4096)));
        assert_eq!(ours["total"]["sync"]["ios"], 1);
        let schedule = &ours["total"]["schedule"];
        assert_eq!(schedule["unstarted"], 0, "{schedule}");
        assert!(notes(&ours).contains("4 of the 4 events of t were replayed"), "{}", notes(&ours));
        ours["duration"].as_f64().unwrap()
    };
    // Never earlier than intended; the delay depends on the machine.
    assert!(seconds("100", "one") >= 0.4);
    std::fs::remove_dir_all(place.path().join("run")).unwrap();
    assert!(seconds("50", "two") >= 0.8);
}

/// Returns a blktrace record: a request of `bytes` at `sector`, queued at `time`, of the device 8:0.
fn queued(big: bool, time: u64, sector: u64, bytes: u32, kind: u32) -> Vec<u8> {
    const QUEUED: u32 = 1 | 1 << 20;
    let u32s = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let u64s = |value: u64| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut record = [u32s(0x6561_7407), u32s(0)].concat();
    record.extend(u64s(time));
    record.extend(u64s(sector));
    for field in [bytes, QUEUED | kind, 1, 8 << 20, 0, 0] {
        record.extend(u32s(field));
    }
    record
}

fn blktrace(big: bool) -> Vec<u8> {
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    [
        queued(big, 1_000_000, 0, 4096, READ),
        queued(big, 1_200_000, 8, 8192, WRITE),
        queued(big, 1_300_000, 64, 512, WRITE | 1 << 31),
        queued(big, 1_400_000, 0, 0, WRITE | 1 << 18),
    ]
    .concat()
}

#[test]
fn blktrace_of_either_byte_order_goes_where_it_is_sent() {
    for big in [false, true] {
        let place = scratch();
        std::fs::write(place.path().join("sda.blktrace.0"), blktrace(big)).unwrap();
        let ours = replayed(place.path(), &["target", "--size", "1M", "--trace", "sda"]);
        assert_eq!((counts(&ours, "read"), counts(&ours, "write")), ((1, 4096), (2, 8704)));
        assert_eq!(ours["total"]["sync"]["ios"], 1);
    }
}

#[test]
fn what_is_broken_or_does_not_fit_is_refused_by_its_place() {
    let place = scratch();
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.path().join(name), bytes).unwrap();
    write("words", b"fio version 3 iolog\n1 a add\n2 a read 0\n");
    write("other", b"\x7fELF\x02\x01\x01\n");
    write("cut", &blktrace(false)[..100]);
    write("far", b"fio version 2 iolog\na read 1073741824 4096\n");
    write("empty", b"fio version 2 iolog\na add\n");
    for (arguments, told) in [
        (&["--trace", "words"][..], "words, line 3"),
        (&["--trace", "other"], "other, line 1"),
        (&["--trace", "cut"], "cut, byte 96"),
        (&["--trace", "none"], "there is no such trace"),
        (&["--trace", "empty"], "a trace with reads, writes or trims"),
        (&["--trace", "far", "--write", "30"], "--trace: contradicts --write"),
        (&["--trace-scale", "3", "x"], "--trace-scale: means nothing without --trace"),
        (&["--trace", "far", "--steady", "9", "--duration", "1"], "replayed once"),
        (&["--trace", "far", "x", "y"], "none, one for all"),
        (&["--trace", "far", "small", "--size", "1M"], "--trace-scale 1029"),
        (&["--trace", "far", "missing"], "there is no such file"),
    ] {
        let output = load(place.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(told), "{arguments:?}: {}", said(&output));
    }
    assert!(!place.path().join("small").exists(), "what was made is removed again");
    let ours = replayed(
        place.path(),
        &["--trace", "far", "small", "--size", "1M", "--trace-scale", "1029", "--trace-align", "4k"],
    );
    assert_eq!(counts(&ours, "read"), (1, 4096));
}

#[test]
fn what_would_be_replayed_is_said_in_words_that_read_the_same() {
    let place = scratch();
    std::fs::write(place.path().join("t"), "fio version 2 iolog\na read 0 4096\n").unwrap();
    let show = |arguments: &[&str]| {
        let output =
            plumb().current_dir(place.path()).args(arguments).arg("--show-workload").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let words =
        show(&["load", "--trace", "t", "--trace-skip", "trim", "--trace-speed", "200", "--seed", "1"]);
    assert!(words.contains("trace = \"t\"") && words.contains("trace-speed = 200"), "{words}");
    std::fs::write(place.path().join("job.toml"), &words).unwrap();
    assert_eq!(show(&["load", "job.toml"]), words);
    let of_fio = show(&["fio", "--name=x", "--read_iolog=t", "--replay_redirect=b"]);
    assert!(of_fio.contains("trace = \"t\"") && of_fio.contains("targets = [\"b\"]"), "{of_fio}");
}
