//! Tests of `plumb fio` against the real fio: created files, folders, reads of a verification, and the time
//! of day. They guard against a job that measures something else because its file was created differently.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output};

use plumb_testkit::program::fio_is_here;
use serde_json::Value;

use crate::common::{document, exited, has_run, said};
use crate::load_support::Place;

/// Runs the same words with fio and with plumb, each in a new directory.
fn both(words: &str) -> [(Place, Output); 2] {
    both_in([Place::new(), Place::new()], words)
}

/// Runs the same words with fio in the first place and with plumb in the second.
fn both_in([theirs, ours]: [Place; 2], words: &str) -> [(Place, Output); 2] {
    let of_fio = Command::new("fio").args(words.split(' ')).current_dir(theirs.here.path()).output().unwrap();
    assert!(of_fio.status.success(), "{words}: {}", said(&of_fio));
    let of_plumb = ours.run(&format!("fio {words}"));
    assert!(has_run(&of_plumb), "{words}: {}", said(&of_plumb));
    [(theirs, of_fio), (ours, of_plumb)]
}

/// Returns true if no block of a file is an unwritten extent, which filefrag(8) lists.
fn is_written(path: &Path) -> Option<bool> {
    let output = Command::new("filefrag").arg("-v").arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| !text.contains("unwritten"))
}

#[test]
fn files_are_made_as_fio_makes_them() {
    if !fio_is_here() {
        return;
    }
    let cases = [
        ("--rw=write", 256),
        ("--rw=randwrite --direct=1 --fdatasync=1", 256),
        ("--rw=write --fallocate=posix --fsync=1", 256),
        ("--rw=write --fallocate=truncate", 256),
        ("--rw=write --overwrite=1", 256),
        ("--rw=randrw", 256),
        ("--rw=read", 256),
    ];
    for (words, kibibytes) in cases {
        let words = format!(
            "--name=a --filename=f --size={kibibytes}k --bs=4k --number_ios=2 {words} --output-format=json"
        );
        let [theirs, ours] = both(&words).map(|(place, _)| {
            let path = place.path("f");
            let file = std::fs::metadata(&path).unwrap();
            // Blocks of the extent tree depend on the file system.
            (file.size(), file.blocks() / 64, is_written(&path))
        });
        assert_eq!(ours, theirs, "size, blocks and whether all are written: {words}");
    }
}

#[test]
fn a_directory_that_is_not_there_is_refused_as_by_fio() {
    if !fio_is_here() {
        return;
    }
    let words = "--name=a --directory=disk --size=64k --rw=write --bs=4k";
    let place = Place::new();
    let theirs = Command::new("fio").args(words.split(' ')).current_dir(place.here.path()).output().unwrap();
    assert!(!theirs.status.success(), "{}", said(&theirs));
    let ours = exited(place.run(&format!("fio {words}")), 2);
    assert!(said(&ours).contains("disk is not a directory"), "{}", said(&ours));
    assert!(!place.path("disk").exists());
}

#[test]
fn folders_are_made_as_fio_makes_them() {
    if !fio_is_here() {
        return;
    }
    for words in ["--name=a --filename=x/y/f", "--name=b/a"] {
        let words = format!("{words} --size=64k --rw=write --bs=4k --output-format=json");
        let [theirs, ours] = both(&words).map(|(place, _)| {
            let mut found = Vec::new();
            let mut folders = vec![place.here.path().to_owned()];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                    if entry.path().is_dir() {
                        folders.push(entry.path());
                        let name =
                            entry.path().strip_prefix(place.here.path()).unwrap().display().to_string();
                        found.push((name, entry.metadata().unwrap().permissions().mode() & 0o777));
                    }
                }
            }
            found
        });
        assert_eq!(ours, theirs, "{words}");
    }
}

#[test]
fn as_much_is_moved_as_by_fio() {
    if !fio_is_here() {
        return;
    }
    for more in [
        "--rw=read --loops=3 --number_ios=300",
        "--rw=write --loops=2 --number_ios=100",
        "--rw=randwrite --loops=2",
        "--rw=read --nrfiles=4 --filesize=128k",
        "--rw=randwrite --nrfiles=4 --filesize=128k",
        "--rw=write --filesize=128k",
        "--rw=write --filesize=2m",
        "--rw=write --filesize=128k --io_size=1m",
        "--rw=write --offset=256k --io_size=4m --bs=64k",
        "--rw=write --numjobs=3",
        "--rw=write --fsync=3",
        "--rw=write --fsync=1",
        "--rw=write --fsync=8 --numjobs=2",
        "--rw=write --ioengine=mmap --fsync=16",
        "--rw=randwrite --fsync=4",
        // A walk with skips ends at the end of the file, or starts again.
        "--rw=write:8k",
        "--rw=read:16k",
        "--rw=write:4k --size=32k --offset=16k",
        "--rw=write --bssplit=4k/50:16k/50",
        "--rw=randwrite --size=70000 --filesize=1m",
        "--rw=read --size=16k --io_size=40k --loops=2",
        "--rw=write --size=64k --file_append=1 --numjobs=3",
    ] {
        let words = format!("--name=a --size=1m --bs=4k --output-format=json {more}");
        let [theirs, ours] = both(&words).map(|(place, output)| {
            let jobs = document(&output)["jobs"].as_array().unwrap().clone();
            let of = |job: &Value| {
                let moved =
                    ["read", "write"].map(|way| ["total_ios", "io_bytes"].map(|of| job[way][of].clone()));
                (moved, job["sync"]["total_ios"].clone())
            };
            let mut files: Vec<_> = std::fs::read_dir(place.here.path())
                .unwrap()
                .map(|entry| (entry.as_ref().unwrap().file_name(), entry.unwrap().metadata().unwrap().len()))
                .collect();
            files.sort();
            (jobs.iter().map(of).collect::<Vec<_>>(), files)
        });
        assert_eq!(ours, theirs, "{words}");
    }
}

#[test]
fn blocks_of_drawn_lengths_move_no_more_than_the_size() {
    if !fio_is_here() {
        return;
    }
    // The number of operations is random.
    for more in ["--bssplit=4k/50:16k/50", "--bsrange=4k-64k", "--bsrange=4k-64k --size=1000k"] {
        let words = format!("--name=a --size=1m --rw=randwrite --output-format=json {more}");
        let [theirs, ours] =
            both(&words).map(|(_, output)| document(&output)["jobs"][0]["write"]["io_bytes"].clone());
        assert_eq!(ours, theirs, "{words}");
    }
}

#[test]
fn reads_of_a_verification_count() {
    if !fio_is_here() {
        return;
    }
    for more in ["", "--verify_backlog=16", "--bs=64k", "--rw=randwrite"] {
        let words = format!(
            "--name=a --filename=f --size=2m --rw=write --bs=4k --verify=md5 --output-format=json {more}"
        );
        let [theirs, ours] = both(words.trim()).map(|(_, output)| {
            let document: Value = document(&output);
            let read = &document["jobs"][0]["read"];
            for rate in ["iops", "bw_bytes"] {
                assert!(read[rate].as_f64().unwrap() > 0.0, "{words}: {rate} in {read:#}");
            }
            ["io_bytes", "io_kbytes", "total_ios"].map(|name| read[name].as_u64().unwrap())
        });
        assert_eq!(ours, theirs, "{words}");
    }
}

#[test]
fn appended_files_become_as_long() {
    if !fio_is_here() {
        return;
    }
    for more in ["", "--loops=2", "--io_size=1m", "--offset=64k", "--fallocate=none"] {
        // The file is written first, so that both have one to append to.
        let first = "--name=a --filename=f --size=1m --rw=write --bs=64k --output-format=json";
        let second = format!("{first} --file_append=1 --size=2m {more}");
        let places = both(first).map(|(place, _)| place);
        let [theirs, ours] = both_in(places, second.trim()).map(|(place, output)| {
            let job = document(&output)["jobs"][0]["write"].clone();
            let length = std::fs::metadata(place.path("f")).unwrap().len();
            (length, job["total_ios"].clone(), job["io_bytes"].clone())
        });
        assert_eq!(ours, theirs, "{more}");
    }
}

#[test]
fn the_null_engine_moves_nothing_and_counts_everything() {
    if !fio_is_here() {
        return;
    }
    let words = "--name=a --ioengine=null --size=1m --rw=write --bs=4k --fdatasync=4 --output-format=json";
    let [theirs, ours] = both(words).map(|(place, output)| {
        let job = document(&output)["jobs"][0].clone();
        let left = std::fs::read_dir(place.here.path()).unwrap().count();
        (left, job["write"]["total_ios"].clone(), job["write"]["io_bytes"].clone())
    });
    assert_eq!(ours, theirs);
}

#[test]
fn the_time_is_that_of_the_place() {
    if !fio_is_here() {
        return;
    }
    let words = "--name=a --filename=f --size=64k --rw=write --bs=4k --output-format=json";
    let place = Place::new();
    for zone in ["Asia/Kolkata", "America/New_York", "UTC"] {
        let time = |command: &mut Command| {
            let output = command.env("TZ", zone).current_dir(place.here.path()).output().unwrap();
            let text = document(&output)["time"].as_str().unwrap().to_owned();
            // Minutes and seconds may change meanwhile.
            (text[..13].to_owned(), text[20..].to_owned())
        };
        // A new hour may begin between two of them.
        let theirs = || time(Command::new("fio").args(words.split(' ')));
        let before = theirs();
        let ours = time(&mut place.command(&format!("fio {words} --overwrite")));
        assert!([before, theirs()].contains(&ours), "{zone}: {ours:?}");
    }
}
