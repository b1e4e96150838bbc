//! Tests of the exact calls of each program on files.

use crate::engine::tests::fake::FakeStore;
use crate::engine::tests::play;

/// Returns the calls after the preparation.
fn lines(typed: &str, count: u64) -> Vec<String> {
    let store = FakeStore::default();
    play(typed, count, 1, &store).unwrap();
    store.lines()
}

/// Returns the verbs of the calls after the preparation.
fn verbs(typed: &str, count: u64) -> Vec<String> {
    lines(typed, count).iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn save_writes_a_temporary_file_syncs_it_and_renames() {
    let save = [
        "create documents0/document.tmp",
        "write documents0/document.tmp 0+2000000",
        "fsync documents0/document.tmp",
        "close documents0/document.tmp",
        "rename documents0/document.tmp -> documents0/document",
    ];
    assert_eq!(lines("save", 1), save);
    assert_eq!(lines("save:directory-fsync", 1), [&save[..], &["fsync-directory documents0"]].concat());
    assert_eq!(lines("save:no-sync", 1), [&save[..2], &save[3..]].concat());
}

#[test]
fn registry_kv_syncs_the_file_and_after_the_rename_the_directory() {
    let each = ["create", "write", "fsync", "close", "rename", "fsync-directory"];
    assert_eq!(verbs("registry-kv", 2), [each, each].concat());
    let lines = lines("registry-kv", 1);
    assert_eq!(lines[1], "write registry0/new.tmp 0+4096");
    assert!(lines[4].starts_with("rename registry0/new.tmp -> registry0/key"), "{}", lines[4]);
    assert_eq!(lines[5], "fsync-directory registry0");
}

#[test]
fn etcd_appends_2300_bytes_and_syncs_the_data() {
    let made = lines("etcd-wal", 2);
    let each = ["append 0-0000000000000000.wal 2300", "fdatasync 0-0000000000000000.wal"];
    assert_eq!(made[1..], [each, each].concat());
    // A file of 22 MiB holds 10,029 records; then a new file replaces it.
    let made = lines("etcd-wal", 10_030);
    let rolled = made.iter().position(|line| line.starts_with("unlink")).unwrap();
    assert_eq!(made[..rolled].iter().filter(|line| line.starts_with("fdatasync")).count(), 10_029);
}

#[test]
fn dbf_update_changes_record_index_and_header_in_place() {
    let made = lines("dbf-update:fsync", 3);
    assert_eq!(verbs("dbf-update:fsync", 1)[2..], ["write", "write", "write", "fsync", "fsync"]);
    assert_eq!(verbs("dbf-update:none", 1)[2..], ["write", "write", "write"]);
    for turn in made[2..].chunks(5) {
        assert!(turn[0].starts_with("write table0.dbf ") && turn[0].ends_with("+256"), "{turn:?}");
        let offset: u64 = turn[0].split(' ').nth(2).unwrap().split('+').next().unwrap().parse().unwrap();
        assert!(offset >= 1024 && (offset - 1024).is_multiple_of(256), "{turn:?}");
        assert!(turn[1].starts_with("write table0.cdx ") && turn[1].ends_with("+512"), "{turn:?}");
        assert_eq!(turn[2], "write table0.dbf 0+32");
        assert_eq!(turn[3..], ["fsync table0.dbf", "fsync table0.cdx"]);
    }
}

#[test]
fn desktop_programs_sync_each_change_or_stream_without_a_sync() {
    let verbs_of_turn = [vec!["read"; 8], ["write", "fsync"].repeat(3)].concat();
    let office = lines("desktop:business", 2);
    assert_eq!(office[0], "open source0");
    let turns: Vec<&str> = office[1..].iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(turns, verbs_of_turn.repeat(2));
    let of_a_page = |line: &&String| line.starts_with("fsync") || line.ends_with("+4096");
    assert!(office[1..].iter().all(|line| of_a_page(&line)), "{office:?}");
    let editor = lines("desktop:high-end", 2);
    let first = ["read source0 0+4194304", "write result0 0+4194304"];
    let second = ["read source0 4194304+4194304", "write result0 4194304+4194304"];
    assert_eq!(editor[2..], [first, second].concat());
}

#[test]
fn defrag_flushes_the_extent_before_the_record_that_names_it() {
    let made = lines("defrag", 50);
    assert_eq!(made[0], "open volume0");
    for turn in made[1..].chunks(5) {
        let length: u64 = turn[0].split('+').nth(1).unwrap().parse().unwrap();
        assert!(turn[0].starts_with("read volume0"), "{turn:?}");
        assert!(length.is_multiple_of(64 << 10) && (64 << 10..=1 << 20).contains(&length), "{length}");
        assert!(turn[1].starts_with("write volume0") && turn[1].ends_with(&format!("+{length}")), "{turn:?}");
        assert!(turn[3].starts_with("write volume0") && turn[3].ends_with("+4096"), "{turn:?}");
        assert_eq!([&turn[2], &turn[4]], ["fdatasync volume0"; 2]);
    }
}

#[test]
fn ceph_defers_writes_in_batches() {
    for (typed, batch) in [("ceph-osd-hdd:batch-64", 64), ("ceph-osd-hdd:batch-16", 16)] {
        let made = lines(typed, 2 * batch as u64 + 3);
        let places: Vec<usize> = made
            .iter()
            .enumerate()
            .filter(|(_, line)| *line == "fdatasync volume0")
            .map(|(place, _)| place)
            .collect();
        // Two files are opened; each write is synced; each batch is written and synced; the rest follows at
        // the end.
        let round = 2 * batch + batch + 1;
        assert_eq!(places, [1 + round, 1 + 2 * round, 1 + 2 * round + 3 * 2 + 3 + 1], "{typed}");
        let logged: Vec<&str> =
            made.iter().filter_map(|line| line.strip_prefix("write log0")?.split('+').nth(1)).collect();
        let placed: Vec<&str> =
            made.iter().filter_map(|line| line.strip_prefix("write volume0")?.split('+').nth(1)).collect();
        assert_eq!(logged, placed, "{typed}: what was logged is written to its place, in order");
        assert!(logged.iter().all(|length| length.parse::<u64>().unwrap() < 64 << 10), "{typed}");
    }
}

#[test]
fn unpack_syncs_never_once_or_each() {
    let count = |typed: &str, verb: &str| verbs(typed, 250).iter().filter(|made| *made == verb).count();
    assert_eq!(["fsync", "syncfs", "create"].map(|verb| count("unpack:none", verb)), [0, 0, 250]);
    // At this scale a tree has 100 files: one sync for each of two trees, and one for the rest at the end.
    assert_eq!(["fsync", "syncfs", "create"].map(|verb| count("unpack:syncfs", verb)), [0, 3, 250]);
    assert_eq!(["fsync", "syncfs", "create"].map(|verb| count("unpack:fsync-each", verb)), [250, 0, 250]);
    let made = verbs("unpack:fsync-each", 1);
    assert_eq!(made, ["mkdir", "mkdir", "create", "append", "fsync", "close"]);
    assert_eq!(verbs("unpack:syncfs", 1).last().unwrap(), "syncfs", "what is due at the end is done");
    // The third round removes the tree of the first.
    assert_eq!(count("unpack:none", "unlink"), 100);
}

#[test]
fn copy_reads_and_writes_the_same_and_syncs_nothing() {
    let made = lines("copy", 45);
    let lengths = |verb: &str| -> Vec<String> {
        let of_verb = made.iter().filter(|line| line.starts_with(verb));
        of_verb.map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect()
    };
    assert!(lengths("read").len() >= 45);
    assert_eq!(lengths("read"), lengths("write"));
    assert!(!made.iter().any(|line| line.contains("sync")));
    assert_eq!(verbs("copy", 1), ["mkdir", "mkdir", "open", "create", "read", "write", "close", "close"]);
}

#[test]
fn varmail_and_fileserver_cycle_as_filebench_does() {
    let of_one_thread = |typed: &str, count: u64| -> Vec<String> {
        let store = FakeStore::default();
        play(typed, count, 1, &store).unwrap();
        let threads = store.lines_of_threads();
        threads[0].iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let deliver = ["create", "append", "fsync", "close"];
    let read_and_append = ["open", "read", "append", "fsync", "close"];
    let read = ["open", "read", "close"];
    let cycle = [&["unlink"], &deliver[..], &read_and_append, &read].concat();
    assert_eq!(of_one_thread("varmail", 32), [cycle.clone(), cycle].concat(), "16 threads, 2 cycles each");
    let mut cycle = of_one_thread("fileserver", 50);
    // Files above 1 MiB are read and written in pieces.
    cycle.dedup();
    let expected =
        ["create", "append", "close", "open", "append", "close", "open", "read", "close", "unlink"];
    assert_eq!(cycle, expected, "50 threads, 1 cycle each");
}

#[test]
fn postgres_writes_pages_in_the_traced_shares() {
    let sizes = |typed: &str, count: u64| -> [usize; 3] {
        let made = lines(typed, count);
        let writes: Vec<u64> = made
            .iter()
            .filter(|line| line.starts_with("write"))
            .map(|line| line.split('+').nth(1).unwrap().parse().unwrap())
            .collect();
        [1, 2, 3].map(|pages| writes.iter().filter(|size| **size == pages * 8192).count())
    };
    let single = sizes("pg-wal:single", 20_000);
    for (pages, share) in [(0, 25.0), (1, 48.0), (2, 26.0)] {
        let percent = single[pages] as f64 / 200.0;
        assert!((percent - share / 0.99).abs() < 1.0, "{single:?}: {} pages {percent} %", pages + 1);
    }
    let eight = sizes("pg-wal:eight-clients", 4000);
    let total: usize = eight.iter().sum();
    assert!(total <= 4000, "{total} syncs for 4000 transactions");
    assert!((eight[0] as f64 / total as f64 - 67.0 / 98.0).abs() < 0.06, "{eight:?}");
    assert_eq!(sizes("pg-wal:steady-8k", 100), [100, 0, 0]);
}

#[test]
fn postgres_writes_its_log_one_page_after_the_other_and_its_last_page_again() {
    for (typed, rewrites) in [("pg-wal:single", 1), ("pg-wal:steady-8k", 0)] {
        let made = lines(typed, 5000);
        let mut end = 0;
        let mut segments = 0;
        for line in made.iter().filter(|line| line.starts_with("write")) {
            let (offset, length) = line.split(' ').nth(2).unwrap().split_once('+').unwrap();
            let (offset, length): (u64, u64) = (offset.parse().unwrap(), length.parse().unwrap());
            if offset == 0 && end > 1 << 20 {
                segments += 1;
            } else {
                assert_eq!(offset, end, "{typed}: {line}");
            }
            assert!(offset + length <= 16 << 20, "{typed}: {line}");
            end = offset + length - rewrites * 8192;
        }
        assert!(segments >= 2, "{typed}: {segments} segments were filled");
    }
}
