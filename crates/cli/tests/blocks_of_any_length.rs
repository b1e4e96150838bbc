//! Tests of block sizes that are not a multiple of a sector, which databases and well-known fio command lines
//! use.

use std::process::Command;

use crate::common::said;
use crate::load_support::{Place, stderr};
use serde_json::Value;

/// Number of whole blocks of 2300 bytes in 22 MiB.
const ETCD_WRITES: u64 = (22 << 20) / 2300;

fn ios(document: &Value, part: &str) -> u64 {
    document["targets"][0][part]["ios"].as_u64().unwrap()
}

/// Returns the numbers of writes and of fdatasyncs of a command, counted by strace; `None` without strace.
fn calls(command: &mut Command) -> Option<(u64, u64)> {
    let counts = tempfile::NamedTempFile::new().unwrap();
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-c", "-e", "trace=write,pwrite64,pwritev2,fdatasync", "-U", "name,calls", "-o"])
        .arg(counts.path())
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .output()
        .ok()?;
    assert!(traced.status.success(), "{}", said(&traced));
    let text = std::fs::read_to_string(counts.path()).unwrap();
    let of = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.map_or(0, |line| line.split_whitespace().nth(1).unwrap().parse().unwrap())
    };
    // fio's sync engine seeks and writes.
    Some((of("write") + of("pwrite64") + of("pwritev2"), of("fdatasync")))
}

#[test]
fn the_etcd_line_writes_and_syncs_as_often_as_fio_does() {
    let typed = "--name=etcd --rw=write --ioengine=sync --fdatasync=1 --size=22m --bs=2300 --directory=.";
    let place = Place::new();
    let document = place.json(&format!("fio {typed}"), 0);
    // The size is not a multiple of the block, so the last write is also followed by a sync.
    assert_eq!((ios(&document, "write"), ios(&document, "sync")), (ETCD_WRITES, ETCD_WRITES));
    assert_eq!(document["targets"][0]["write"]["bytes"], ETCD_WRITES * 2300);
    assert_eq!(std::fs::metadata(place.path("etcd.0.0")).unwrap().len(), 22 << 20);
    let mut fio = Command::new("fio");
    fio.args(typed.split_whitespace()).current_dir(place.here.path());
    let Some((writes, syncs)) = calls(&mut fio) else {
        return plumb_testkit::skip("neither strace nor fio to compare with");
    };
    // fio's other writes are its output; it lays out nothing, because the file exists.
    assert!((ETCD_WRITES..ETCD_WRITES + 500).contains(&writes), "fio made {writes} writes");
    assert_eq!(syncs, ETCD_WRITES, "those of fio");
}

#[test]
fn such_lengths_go_through_the_page_cache_in_every_language() {
    for (typed, writes) in [
        ("fio --name=a --filename=f --rw=write --bs=2300 --size=1000001", Some(434)),
        (
            "fio --name=a --filename=f --rw=randwrite --bs=4k --kb_base=1000 --size=1m --fdatasync=8",
            Some(250),
        ),
        ("fio --name=a --filename=f --rw=write --ioengine=mmap --bs=2300 --size=1m", Some(455)),
        ("fio --name=a --filename=f --rw=randwrite --bssplit=700/50:1300/50 --size=1m --verify=crc32c", None),
        ("fio --name=a --filename=f --rw=write --bs=7 --size=7k", Some(1024)),
        ("diskspd -b1000 -c1M -w100 -r -d1 -W0 f", None),
        ("diskspd -b1000 -c1M -w50 -s -d1 -W0 f", None),
        ("load f --size 1MiB --block-size 2300 --write 100 --count 500 --cached --verify", Some(500)),
        ("load f --size 1MiB --block-size 2300 --write 100 --count 50 --cached --precondition", Some(50)),
    ] {
        let place = Place::new();
        let document = place.json(typed, 0);
        let made = ios(&document, "write");
        assert!(made > 0 && writes.is_none_or(|writes| made == writes), "{typed}: {made}");
        let verified = &document["targets"][0]["verified"];
        if typed.contains("verify") {
            let wrong = ["lost", "torn", "stale", "misdirected"].map(|kind| verified[kind].as_u64().unwrap());
            assert_eq!(wrong, [0; 4], "{typed}: {verified}");
            assert!(verified["blocks"].as_u64().unwrap() > 200, "{typed}: {verified}");
        }
    }
}

#[test]
fn blocks_of_another_length_in_the_same_file_are_not_taken_for_wrong_ones() {
    let place = Place::new();
    let load = "load f --size 1MiB --cached --verify --write 50 --seed 4 --count 2000 --block-size";
    for block in ["2300", "4KiB", "1000", "2300"] {
        let document = place.json(&format!("{load} {block}"), 0);
        let verified = &document["targets"][0]["verified"];
        let wrong = ["lost", "torn", "stale", "misdirected"].map(|kind| verified[kind].as_u64().unwrap());
        assert_eq!(wrong, [0; 4], "{block}: {verified}");
    }
}

#[test]
fn past_the_page_cache_they_are_refused_with_what_to_do() {
    let place = Place::new();
    for typed in [
        "fio --name=a --filename=f --rw=write --bs=2300 --size=1m --direct=1",
        "diskspd -b1000 -Sh -c1M -w100 -d1 f",
        "diskspd -b1000 -Su -c1M -w100 -d1 f",
        "load f --size 1MiB --block-size 2300 --write 100 --count 5",
        "load sim:sas-15k --block-size 2300 --write 100 --count 5",
    ] {
        let output = place.run(typed);
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        let said = stderr(&output);
        assert!(
            said.contains("multiple of the logical block") && said.contains("page cache"),
            "{typed}: {said}"
        );
        assert!(!place.path("f").exists(), "{typed}");
    }
    let tiny = place.run("load f --size 1MiB --block-size 20 --write 100 --count 5 --cached --verify");
    assert!(stderr(&tiny).contains("holds a stamp"), "{}", said(&tiny));
}

#[test]
fn what_is_shown_in_our_words_means_the_same_when_it_is_read_back() {
    let place = Place::new();
    let shown = place
        .run("fio --name=etcd --filename=f --rw=write --fdatasync=1 --size=2m --bs=2300 --show-workload");
    assert_eq!(shown.status.code(), Some(0), "{}", said(&shown));
    std::fs::write(place.path("etcd.toml"), &shown.stdout).unwrap();
    let document = place.json("load etcd.toml", 0);
    let writes = (2 << 20) / 2300;
    assert_eq!((ios(&document, "write"), ios(&document, "sync")), (writes, writes));
}
