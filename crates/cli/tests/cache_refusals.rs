//! Tests of the refusals of `plumb cache`: exit codes, messages, and no half-done changes.

use std::process::Command;

use crate::cache_support::{Place, refused, served_mounted};
use crate::common::{can_mount, document, exited, in_own_mounts, said, scratch};
use crate::drive_support::{Kind, MountedFileSystem, cannot_attach, run};
use crate::load_support::LoopDevice;

#[test]
fn a_cache_is_made_only_of_what_may_be_used() {
    let place = Place::new(8 << 20);
    std::fs::write(place.path("theirs"), vec![7; 128 << 20]).unwrap();
    let with = |more: &[&'static str]| [&["create", "--name", "x"][..], more].concat();
    refused(
        &place,
        &with(&["--backing", "backing", "--log", "theirs", "--size", "64M"]),
        4,
        &["plumb did not make", "--overwrite"],
    );
    refused(
        &place,
        &with(&["--backing", "none", "--log", "log", "--size", "64M"]),
        2,
        &["none", "no such file"],
    );
    refused(&place, &with(&["--backing", "backing", "--log", "log", "--size", "1M"]), 2, &["segment"]);
    assert!(!place.path("log").exists(), "what was made is left behind");
    // Refused before any overwriting.
    let too_little = ["--backing", "backing", "--log", "theirs", "--size", "1M", "--overwrite"];
    refused(&place, &with(&too_little), 2, &["segment"]);
    refused(
        &place,
        &with(&["--backing", "backing", "--log", "backing", "--size", "1M", "--overwrite"]),
        4,
        &["is the same device as", "a different device for each"],
    );
    refused(
        &place,
        &with(&["--backing", "sim:memory", "--log", "log", "--size", "64M"]),
        2,
        &["cache:backing=sim:"],
    );
    refused(
        &place,
        &["create", "--name", "../x", "--backing", "backing", "--log", "log", "--size", "64M"],
        2,
        &["not a name"],
    );
    refused(&place, &["serve", "x", "--nbd", "s"], 2, &["no cache of this name"]);
    refused(&place, &["serve", "x"], 2, &["--nbd"]);
    assert_eq!(std::fs::read(place.path("theirs")).unwrap(), vec![7; 128 << 20]);
}

#[test]
fn a_backing_device_keeps_to_its_cache() {
    let place = Place::new(8 << 20);
    let made = place.create(&[]);
    let uuid = made["uuid"].as_str().unwrap();
    let second = ["create", "--name", "second", "--backing", "backing", "--log", "other", "--size", "64M"];
    refused(&place, &second, 4, &[uuid, "--discard-dirty"]);
    // The log is missing, or another file has its path.
    std::fs::rename(place.path("log"), place.path("away")).unwrap();
    let anew = ["missing", "plumb cache adopt", "--log NEW", "--discard-dirty"];
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &anew);
    std::fs::write(place.path("log"), vec![0; 64 << 20]).unwrap();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["superblock"]);
    std::fs::rename(place.path("away"), place.path("log")).unwrap();
    // An old copy of the log.
    std::fs::copy(place.path("log"), place.path("old")).unwrap();
    drop(place.serve());
    std::fs::rename(place.path("log"), place.path("new")).unwrap();
    std::fs::rename(place.path("old"), place.path("log")).unwrap();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["old copy"]);
    std::fs::rename(place.path("new"), place.path("log")).unwrap();
    // A backing file that was truncated.
    std::fs::File::options().write(true).open(place.path("backing")).unwrap().set_len(4 << 20).unwrap();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["smaller"]);
    std::fs::File::options().write(true).open(place.path("backing")).unwrap().set_len(8 << 20).unwrap();
    // Two servers.
    let server = place.serve();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["already served"]);
    let offline = ["detach", &place.name, "--discard-dirty", "00000000-0000-0000-0000-000000000000"];
    refused(&place, &offline, 4, &[]);
    drop(server);
    refused(&place, &offline, 4, &[uuid]);
    let gone = place.cache(&["detach", &place.name, "--discard-dirty", uuid]);
    assert_eq!(gone["discarded"], true);
    place.cache(&second);
}

#[test]
fn a_cache_is_checked_only_if_what_is_on_it_may_go() {
    let place = Place::new(32 << 20);
    place.create(&[]);
    let name = format!("cache:{}", place.name);
    let check = |more: &[&str]| {
        let fixed = ["check", &name, "--json", "--seconds", "2", "--size", "16M", "--no-record"];
        place.plumb().args(fixed).args(more).output().unwrap()
    };
    let refused = exited(check(&[]), 4);
    assert!(said(&refused).contains("--overwrite"), "{}", said(&refused));
    let done = check(&["--overwrite"]);
    assert!(matches!(done.status.code(), Some(0 | 1)), "{}", said(&done));
    let found = document(&done);
    assert_eq!(found["path"]["layers"][1]["kind"], "write-back-cache", "{found:#}");
    assert!(found["sync"][0]["operations"].as_u64() > Some(0), "{found:#}");
    let server = place.serve();
    exited(check(&["--overwrite"]), 4);
    drop(server);
}

#[test]
fn a_full_file_system_is_found_when_the_cache_is_made() {
    let place = Place::new(8 << 20);
    let huge = ["create", "--name", "x", "--backing", "backing", "--log", "log", "--size", "900T"];
    let output = place.try_cache(&huge);
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!place.path("log").exists(), "{}", said(&output));
}

#[test]
fn a_cache_that_could_not_be_made_known_leaves_its_devices_as_they_were() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let create = "$plumb cache create --name x --backing backing --log log --size 16M --json";
    // The only page of the tmpfs is taken: a directory needs none, but the configuration does.
    let script = format!(
        "cd $place; truncate -s 32M backing; mkdir full; mount -t tmpfs -o size=4k none full; \
         dd if=/dev/zero of=full/filling bs=4k count=1 status=none; \
         code=0; STATE_DIRECTORY=$place/full {create} || code=$?; test $code = 5; test ! -e log; \
         STATE_DIRECTORY=$place {create}"
    );
    exited(in_own_mounts(&script, place.path()), 0);
}

/// Checks a cache on read-only devices, such as a snapshot or preserved evidence.
#[test]
fn what_can_only_be_read_is_looked_at_and_not_recovered() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let script = "cd $place; export STATE_DIRECTORY=$place/state; mkdir kept; truncate -s 32M kept/backing; \
                  $plumb cache create --name x --backing kept/backing --log kept/log --size 16M --json; \
                  mount --bind kept kept; mount -o remount,bind,ro kept; \
                  $plumb cache verify x; $plumb cache recover x --dry-run; \
                  code=0; $plumb cache recover x || code=$?; test $code = 4";
    exited(in_own_mounts(script, place.path()), 0);
}

/// Checks a log on a file system that became read-only, as on a dying SSD: it is read, and the cache
/// continues without it.
#[test]
fn a_log_that_can_only_be_read_is_written_back() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let script = "cd $place; export STATE_DIRECTORY=$place/state; mkdir kept; truncate -s 32M backing; \
                  make() { $plumb cache create --name x --backing backing --log kept/log $1 --size 16M; \
                  $plumb load cache:x --overwrite --no-record --write 100 --bytes 4M --block-size 64k || test $? = 1; \
                  mount --bind kept kept; mount -o remount,bind,ro kept; }; \
                  make ''; $plumb cache verify x; $plumb cache recover x || test $? = 1; \
                  $plumb cache replace-log x new; $plumb cache status x; $plumb cache detach x; umount kept; rm -r kept/log; \
                  make ''; $plumb cache detach x 2>told; grep -q 'not erased' told; umount kept; rm kept/log; \
                  make '--log other'; $plumb cache recover x; $plumb cache detach x";
    exited(in_own_mounts(script, place.path()), 0);
}

/// The other leg of a mirror may have the only copy: only the named leg may be missing.
#[test]
fn a_device_is_not_replaced_while_another_one_is_missing() {
    let place = Place::new(8 << 20);
    place.create(&["--log", "log2"]);
    std::fs::rename(place.path("log"), place.path("away")).unwrap();
    refused(
        &place,
        &["replace-leg", &place.name, "--lost", "log2", "--log", "log3"],
        4,
        &["device 0 of the log is missing", "--degraded"],
    );
    refused(
        &place,
        &["serve", &place.name, "--nbd", "s"],
        4,
        &["device 0 of the log is missing", "--degraded"],
    );
    std::fs::rename(place.path("away"), place.path("log")).unwrap();
    drop(place.serve());
}

/// Files created for a device that is not used after all are removed, whether the cache is served or not.
#[test]
fn a_refused_replacement_leaves_no_file() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let replace = ["replace-leg", &place.name, "--lost", "0", "--log", "new"];
    refused(&place, &replace, 4, &["the last that has everything"]);
    assert!(!place.path("new").exists(), "it is left behind");
    let server = place.serve();
    refused(&place, &replace, 4, &["the last that has everything"]);
    assert!(!place.path("new").exists(), "it is left behind");
    drop(server);
    place.cache(&["verify", &place.name]);
}

/// A leg that the log records as lost does not prevent anything.
#[test]
fn a_mirror_without_its_lost_device_is_served_and_detached() {
    let place = Place::new(8 << 20);
    place.create(&["--log", "log2"]);
    std::fs::rename(place.path("log"), place.path("away")).unwrap();
    let name = &place.name;
    let arguments = ["cache", "serve", name, "--nbd", "socket", "--json", "--degraded"];
    let (_, mut child) = crate::drive_support::served(place.plumb().args(arguments));
    place.cache(&["stop", name]);
    child.wait().unwrap();
    assert_eq!(place.try_cache(&["verify", name]).status.code(), Some(1), "a device is missing");
    place.cache(&["recover", name]);
    drop(place.serve());
    // The other leg does not know that it is stale; the backing device does.
    std::fs::rename(place.path("log2"), place.path("away2")).unwrap();
    std::fs::rename(place.path("away"), place.path("log")).unwrap();
    refused(&place, &["serve", name, "--nbd", "s", "--degraded"], 4, &["old copy", "device that had failed"]);
    std::fs::rename(place.path("away2"), place.path("log2")).unwrap();
    std::fs::remove_file(place.path("log")).unwrap();
    let gone = place.cache(&["detach", name]);
    assert_eq!(gone["discarded"], false);
}

/// The devices of a cache that is not served still belong to it: the log may have the only copy.
#[test]
fn what_a_cache_needs_is_written_by_nobody_else() {
    let place = Place::new(8 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    std::fs::File::create(place.path("other")).unwrap().set_len(8 << 20).unwrap();
    let other = |log: &'static str, more: &[&'static str]| {
        let fixed = ["create", "--name", "x", "--backing", "other", "--log", log, "--size", "64M"];
        [&fixed[..], more].concat()
    };
    refused(&place, &other("log", &["--overwrite"]), 4, &["log of a plumb cache", "detach", "--destroy"]);
    for (device, what) in [("backing", "backing device of a plumb cache"), ("log", "log of a plumb cache")] {
        let load = ["load", device, "--write", "100", "--overwrite", "--count", "1", "--no-record"];
        let output = exited(place.plumb().args(load).output().unwrap(), 4);
        assert!(said(&output).contains(what) && said(&output).contains("--destroy"), "{}", said(&output));
    }
    // A cache may overwrite its own log when it is created again.
    let again = ["create", "--name", "y", "--backing", "backing", "--log", "log", "--size", "64M"];
    refused(&place, &again, 4, &[&uuid]);
    place.cache(&["detach", &place.name, "--discard-dirty", &uuid]);
    // Afterwards it is no longer the log of a cache.
    place.cache(&other("log", &[]));
}

/// Checks that files of a served cache are refused in every role, like block devices in use.
#[test]
fn the_files_of_a_served_cache_are_written_by_nobody_else() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let server = place.serve();
    let write = |device: &str| {
        let load = ["load", device, "--write", "100", "--count", "1", "--no-record", "--destroy"];
        place.plumb().args(load).arg(place.path(device)).output().unwrap()
    };
    for device in ["backing", "log"] {
        let output = exited(write(device), 4);
        assert!(said(&output).contains("a cache, a drive or a run of plumb"), "{}", said(&output));
    }
    drop(server);
    exited(write("log"), 0);
}

/// A failing log must not prevent discarding a cache. Its remains are refused like an erased log.
#[test]
fn a_cache_is_given_up_though_its_log_cannot_be_erased() {
    let place = Place::new(8 << 20);
    let room = place.path("room");
    // Creating a cache writes four superblocks, discarding it another four.
    let drive = ["memory", "--size", "80M", "--nbd", room.to_str().unwrap(), "--fault", "write:eio:nth=7"];
    let drive = crate::drive_support::Server::start(&drive);
    let uri = drive.document["nbd"].as_str().unwrap();
    let name = &place.name;
    let with_drive = ["create", "--name", name, "--backing", "backing", "--log", uri, "--size", "64M"];
    let uuid =
        place.cache(&[&with_drive[..], &["--destroy", uri]].concat())["uuid"].as_str().unwrap().to_owned();
    let give_up = ["detach", name, "--discard-dirty", &uuid];
    let given_up = exited(place.try_cache(&give_up), 0);
    assert!(said(&given_up).contains("not erased"), "{}", said(&given_up));
    // No backing device asks for the rest of the log.
    let adopt = ["adopt", "--name", name, "--backing", "backing", "--log", uri];
    refused(&place, &adopt, 4, &["does not say that it needs a cache"]);
    let second = ["create", "--name", "second", "--backing", "backing", "--log", "other", "--size", "64M"];
    let second = place.cache(&second)["uuid"].as_str().unwrap().to_owned();
    // The zeroes leave the state of a crash after the first step. A device that another cache marked keeps
    // its marker.
    let end = std::fs::metadata(place.path("other")).unwrap().len() - 8192;
    let log = std::fs::File::options().write(true).open(place.path("other")).unwrap();
    for at in [0, end] {
        std::os::unix::fs::FileExt::write_all_at(&log, &[0; 8192], at).unwrap();
    }
    refused(&place, &["serve", "second", "--nbd", "s"], 4, &["superblock", "--discard-dirty", &second]);
    place.cache(&["detach", "second", "--discard-dirty", &second]);
    place.create(&[]);
}

/// The cached device is one block shorter, so a file system that needs that block could not be mounted.
#[test]
fn a_file_system_that_reaches_to_the_end_of_its_device_is_not_cached() {
    if let Some(why) = cannot_attach(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"]) {
        return plumb_testkit::skip(&why);
    }
    let place = Place::new(320 << 20);
    let Some(device) = LoopDevice::over(&place.path("backing"), &[]) else { return };
    let create =
        ["create", "--name", &place.name, "--backing", &device.path, "--log", "log", "--size", "64M"];
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs] {
        kind.make(&device.path);
        refused(&place, &create, 4, &["file system uses", "4096", "wipefs"]);
        assert!(kind.check(&device.path).0, "{} was changed", kind.word());
    }
    let wipe = || run(Command::new("wipefs").args(["--all", "--quiet", &device.path]));
    wipe();
    run(Command::new("mkswap").arg(&device.path));
    refused(&place, &create, 4, &["swap", "may use all of it"]);
    wipe();
    let blocks = ((320 << 10) - 4).to_string() + "k";
    run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096", &device.path, &blocks]));
    place.cache(&create);
    place.cache(&["detach", &place.name]);
    assert!(Kind::Ext4.check(&device.path).0);
}

/// A mounted file system may have unwritten data, so a signal ends the server only after it is unmounted.
#[test]
fn a_server_that_is_asked_to_end_waits_for_what_is_mounted() {
    let Some((place, server, at, mounted)) = served_mounted() else { return };
    server.terminate();
    std::fs::write(at.path().join("file"), "after the signal").unwrap();
    for command in ["stop", "detach"] {
        refused(&place, &[command, &place.name], 4, &["mounted", "--cut-off"]);
    }
    drop(mounted);
    assert_eq!(server.wait(), Some(0));
    let server = place.serve_as(&["--attach"]);
    let mounted = MountedFileSystem::new(Kind::Ext4, server.device(), at.path()).unwrap();
    assert_eq!(std::fs::read_to_string(at.path().join("file")).unwrap(), "after the signal");
    drop(mounted);
    server.terminate();
    assert_eq!(server.wait(), Some(0));
}

/// Returns true if the file system of an attached cache is mounted, or its directory exists.
fn is_left(place: &Place) -> bool {
    // The name of another cache may have this one as its prefix.
    let directory = format!("/run/plumb/attach/{}/", place.name);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.contains(&directory) || std::path::Path::new(&directory).exists()
}

/// A second signal detaches the block device from its users. No mount of plumb stays, and synced data is
/// there.
#[test]
fn a_second_signal_takes_the_device_away_and_leaves_nothing_mounted() {
    let Some((place, mut server, at, mounted)) = served_mounted() else { return };
    let file = std::fs::File::create(at.path().join("file")).unwrap();
    std::io::Write::write_all(&mut &file, b"synced").unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(is_left(&place));
    // A signal within a second of the first counts as the same.
    server.terminate_until("although it is in use");
    assert_eq!(server.wait(), Some(5), "it was taken from those who used it");
    assert!(!is_left(&place));
    drop(mounted);
    let server = place.serve_as(&["--attach"]);
    let mounted = MountedFileSystem::new(Kind::Ext4, server.device(), at.path()).unwrap();
    assert_eq!(std::fs::read_to_string(at.path().join("file")).unwrap(), "synced");
    drop(mounted);
    server.terminate();
    assert_eq!(server.wait(), Some(0));
}

/// After SIGKILL each command works, removes the leftovers of the server, and reports that once.
#[test]
fn commands_after_a_server_was_killed_say_so_and_take_away_what_it_left() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let name = &place.name;
    let way: &[&str] = if cannot_attach(&[]).is_none() { &["--attach"] } else { &["--nbd", "socket"] };
    for (command, code) in [("status", 0), ("drain", 2), ("verify", 0), ("detach", 0)] {
        place.serve_as(way).kill();
        let output = place.try_cache(&[command, name]);
        assert_eq!(output.status.code(), Some(code), "{command}: {}", said(&output));
        let told = format!("served {name} was killed");
        assert_eq!(said(&output).matches(&told).count(), 1, "{command}: {}", said(&output));
        assert!(!is_left(&place), "{command}");
    }
}

/// The creating process was killed after it wrote the marker, and before it saved the configuration.
#[test]
fn what_a_killed_create_has_made_is_taken_away() {
    let place = Place::new(32 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    let state = |ending: &str| place.path("cache").join(format!("{}.{ending}", place.name));
    let record = |files: &[&str]| {
        let files: Vec<_> = files.iter().map(|name| place.path(name)).collect();
        serde_json::json!({"cache": uuid, "backing": place.path("backing"), "files": files}).to_string()
    };
    // A process that has completed leaves nothing.
    std::fs::write(state("making"), record(&["log"])).unwrap();
    let restore = |words: &[&str]| place.plumb().args(["restore", "--json"]).args(words).output().unwrap();
    restore(&[]);
    assert!(place.path("log").exists() && !state("making").exists());
    std::fs::remove_file(state("json")).unwrap();
    std::fs::write(place.path("other"), "a file of somebody").unwrap();
    // Killed before it had extended the file.
    std::fs::write(place.path("empty"), "").unwrap();
    std::fs::write(state("making"), record(&["log", "empty", "other", "missing"])).unwrap();
    let listed = restore(&["--dry-run"]);
    assert!(said(&listed).contains("unfinished-log") && place.path("log").exists(), "{}", said(&listed));
    let create = ["create", "--name", &place.name, "--backing", "backing", "--log", "new", "--size", "16M"];
    let created = place.try_cache(&create);
    assert!(created.status.success() && said(&created).contains("restored"), "{}", said(&created));
    assert!(
        !place.path("log").exists()
            && !place.path("empty").exists()
            && place.path("other").exists()
            && !state("making").exists()
    );
}

/// A write beyond the file size limit fails, and the process reports it.
#[test]
fn a_limit_of_the_size_of_files_is_an_error_and_no_signal() {
    let place = Place::new(8 << 20);
    let script = "ulimit -f 0; exec $0 cache create --name x --backing backing --log log --size 64M";
    let plumb = place.plumb();
    let mut limited = Command::new("sh");
    limited.args(["-c", script]).arg(plumb.get_program()).current_dir(place.here.path());
    let output = exited(limited.env("STATE_DIRECTORY", place.here.path()).output().unwrap(), 5);
    assert!(said(&output).contains("File too large"), "{}", said(&output));
    assert!(!place.path("log").exists());
}

/// The configuration must be able to name the new log before the old one is given up.
#[test]
fn a_log_is_not_changed_while_the_state_directory_is_full() {
    if !can_mount() {
        return;
    }
    let place = scratch();
    let script = "cd $place; truncate -s 32M backing; mkdir s; mount -t tmpfs -o size=128k none s; export STATE_DIRECTORY=$place/s; \
                  name=full-$$; $plumb cache create --name $name --backing backing --log log --size 16M; \
                  mkfifo ready; $plumb cache serve $name --nbd $place/socket --json >ready & server=$!; \
                  head -c 1 ready >/dev/null; for free in 0 4 8; do \
                  dd if=/dev/zero of=s/filling bs=1k 2>/dev/null || true; truncate -s -${free}k s/filling; \
                  code=0; $plumb cache replace-log $name new || code=$?; test $code = 5; test ! -e new; \
                  code=0; $plumb cache replace-leg $name --lost 0 --log new || code=$?; test $code = 5; test ! -e new; \
                  if test $free = 0; then code=0; $plumb cache grow $name --size 24M 2>told || code=$?; test $code = 5; \
                  if grep 'left behind' told; then exit 1; fi; fi; \
                  $plumb cache status $name --json >status; grep -q '\"log_error\": null' status; rm s/filling; done; \
                  $plumb cache replace-log $name new; \
                  $plumb cache replace-log $name new 2>told; grep -q 'already on' told; $plumb cache stop $name; wait $server";
    exited(in_own_mounts(script, place.path()), 0);
}
