//! Tests that every run has the write path below its targets, and the attribution of the flushes that the
//! devices counted. They guard against a load on memory, or on a mount that issues no flush, that found
//! nothing because flushes of another program were taken for its own.

use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::load_support::{LoopDevice, MountedFileSystem, Place};

/// Returns a directory in memory; `None` if there is none here, which is reported.
fn memory() -> Option<tempfile::TempDir> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    match mounts.lines().any(|line| line.contains(" /dev/shm tmpfs ")) {
        true => Some(tempfile::tempdir_in("/dev/shm").unwrap()),
        false => {
            plumb_testkit::skip("no tmpfs at /dev/shm");
            None
        }
    }
}

fn finds(document: &Value, id: &str) -> bool {
    document["verdicts"].as_array().unwrap().iter().any(|verdict| verdict["id"] == id)
}

#[test]
fn a_load_and_a_profile_in_memory_are_in_danger() {
    let Some(memory) = memory() else { return };
    let here = memory.path().display();
    for typed in [
        format!("load {here}/file --size 1m --write 100 --sync-every 1 --count 100"),
        format!("fio --name=a --filename={here}/fio --size=1m --rw=write --fsync=1"),
        format!("diskspd -c1M -w100 -d1 -W0 {here}/diskspd"),
        format!("load {here} --profile sqlite-wal --count 20"),
    ] {
        let run = Place::new().json(&typed, 1);
        assert_eq!(run["level"], "danger", "{typed}: {}", run["verdicts"]);
        assert!(run["paths"][0]["path"]["layers"].to_string().contains("tmpfs"), "{typed}");
    }
}

#[test]
fn each_path_stands_once_with_the_targets_that_it_is_beneath() {
    let Some(memory) = memory() else { return };
    let place = Place::new();
    let typed = format!("load one two {}/three --size 1m --count 20", memory.path().display());
    let run = place.json(&typed, 1);
    let paths = run["paths"].as_array().unwrap();
    let targets: Vec<usize> = paths.iter().map(|one| one["targets"].as_array().unwrap().len()).collect();
    assert_eq!(targets, [2, 1], "{}", run["paths"]);
    assert_eq!(run["path"], paths[0]["path"]);
    let simulated = place_of_simulated();
    assert!(simulated["path"]["layers"].to_string().contains("simulated-drive"));
    assert_eq!(simulated["total"]["storage"]["attribution"]["flushes"], "own-device");
    assert_eq!(
        simulated["total"]["storage"]["attribution"]["own_flushes"],
        simulated["total"]["storage"]["flushes"]
    );
}

fn place_of_simulated() -> Value {
    Place::new().json("load sim:sas-15k --write 100 --sync-every 4 --count 100", 0)
}

#[test]
fn the_flushes_of_another_program_are_not_taken_for_ones_own() {
    let place = Place::new();
    let image = place.path("image");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(mounted) = MountedFileSystem::ext4(&image, place.path("mounted"), &[], "nobarrier") else {
        return;
    };
    let other = std::fs::File::create(place.path("other")).unwrap();
    let over = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                other.write_all_at(&[1; 4096], 0).unwrap();
                other.sync_data().unwrap();
            }
        });
        let typed = format!(
            "load {}/file --size 4m --random --write 100 --sync-every 1 --count 50 --rate 100iops",
            mounted.at.display()
        );
        let run = Place::new().json(&typed, 1);
        over.store(true, Ordering::Relaxed);
        run
    });
    drop(mounted);
    assert_eq!(run["level"], "danger", "{}", run["verdicts"]);
    assert!(finds(&run, "barriers-off"), "{}", run["verdicts"]);
    let storage = &run["total"]["storage"];
    let attribution = &storage["attribution"];
    assert!(["all-programs", "traced"].contains(&attribution["flushes"].as_str().unwrap()), "{attribution}");
    assert!(attribution["own_flushes"].as_u64().unwrap_or(0) == 0, "{attribution}");
    assert!(attribution["because"].as_str().unwrap().contains("loop"), "{attribution}");
    assert!(storage["above"][0]["name"].as_str().unwrap().starts_with("loop"), "{storage}");
}

/// The mount flushes each write, so the devices count flushes that the program did not call for, and each
/// write is durable.
#[test]
fn flushes_of_a_mount_that_syncs_each_write_are_not_missing() {
    let place = Place::new();
    let image = place.path("image");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(mounted) = MountedFileSystem::ext4(&image, place.path("mounted"), &[], "sync") else { return };
    for typed in ["--sync-every 1", "--sync-every 8", ""] {
        let at = mounted.at.display();
        let run = Place::new()
            .json(&format!("load {at}/file --size 1m --write 100 --cached {typed} --count 64"), 0);
        for id in ["flushes-missing", "no-flush-seen", "flush-dropped", "acknowledged-not-durable"] {
            assert!(!finds(&run, id), "{typed}: {}", run["verdicts"]);
        }
        assert!(run["path"].to_string().contains("sync"), "{}", run["path"]);
    }
}

/// The kernel counts empty flushes as writes of a device, and plumb does not count them as I/Os: neither
/// those of syncs nor those that accompany durable writes.
#[test]
fn the_writes_of_a_device_that_is_the_target_are_those_with_data() {
    let place = Place::new();
    let Some(memory) = memory() else { return };
    let image = memory.path().join("image");
    std::fs::write(&image, vec![0; 4 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    for words in ["--sync-every 1", "--dsync"] {
        let typed = format!("load {} --overwrite --write 100 --count 100 {words}", device.path);
        let storage = &place.json(&typed, 1)["total"]["storage"];
        assert_eq!(
            (&storage["writes"], &storage["io_bytes_mean"]),
            (&100.into(), &4096.0.into()),
            "{storage:#}"
        );
    }
}
