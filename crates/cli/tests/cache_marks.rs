//! Tests of the marks on the backing device of a cache: after it grew, was renamed, copied, or written by
//! another program. They guard against commands that overwrite data needed with the log, and against serving
//! a log over contents that it does not fit.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::cache_support::{AttachedLoop, Place, Server, refused};
use crate::common::said;
use crate::drive_support::{Kind, MountedFileSystem, cannot_attach};
use crate::load_support::Zram;

/// Loads a target without recording, and returns the output.
fn load_may_fail(place: &Place, target: &str, words: &[&str]) -> Output {
    let load = ["load", target, "--overwrite", "--no-record"];
    place.plumb().args(load).args(words).output().unwrap()
}

/// Loads a target without recording; the load must succeed.
fn load(place: &Place, target: &str, words: &[&str]) {
    let output = load_may_fail(place, target, words);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
}

fn grow(file: &Path, size: u64) {
    File::options().write(true).open(file).unwrap().set_len(size).unwrap();
}

/// Creates the cache over this device, and returns its UUID.
fn create(place: &Place, backing: &str) -> String {
    let create = ["create", "--name", &place.name, "--backing", backing, "--log", "log", "--size", "64M"];
    place.cache(&create)["uuid"].as_str().unwrap().to_owned()
}

/// Writes to the cache, so that its log has data, and stops it.
fn fill_and_stop(place: &Place, server: Server) {
    place.put_to_sleep();
    load(place, &server.uri(), &["--write", "100", "--random", "--count", "200"]);
    place.stop(server);
}

/// Asserts that neither a load nor another cache can use this device.
fn assert_kept(place: &Place, device: &str) {
    let output = load_may_fail(place, device, &["--write", "100", "--count", "5"]);
    assert_eq!(output.status.code(), Some(4), "a load of {device}: {}", said(&output));
    let other = ["create", "--name", "other", "--backing", device, "--log", "other", "--size", "64M"];
    refused(place, &other, 4, &["may hold the only copy", "--discard-dirty"]);
}

#[test]
fn a_device_that_has_grown_is_kept_and_served_as_large_as_it_was() {
    let place = Place::new(64 << 20);
    let Some(device) = AttachedLoop::over(&place.path("backing")) else { return };
    create(&place, &device.0);
    fill_and_stop(&place, place.serve());
    assert_kept(&place, &device.0);
    grow(&place.path("backing"), 80 << 20);
    device.losetup("--set-capacity");
    assert_kept(&place, &device.0);
    // The marker is no longer in the last block; the configuration has the size, and so its place.
    let server = place.serve();
    assert_eq!(server.document["backing"]["size"], (64 << 20) - 4096);
    drop(server);
    place.cache(&["detach", &place.name]);
    assert!(load_may_fail(&place, &device.0, &["--write", "100", "--count", "5"]).status.success());
}

/// The cache grows to the rest of a file, and of a device, whose marker moves to the new end.
#[test]
fn a_device_that_has_grown_is_cached_to_its_end_once_that_is_ordered() {
    let place = Place::new(64 << 20);
    let Some(device) = AttachedLoop::over(&place.path("backing")) else { return };
    let uuid = create(&place, &device.0);
    let name = &place.name;
    let has_it_all = || {
        let again = place.try_cache(&["grow", name, "--backing"]);
        assert!(again.status.success() && said(&again).contains("already caches all"), "{}", said(&again));
    };
    has_it_all();
    fill_and_stop(&place, place.serve());
    grow(&place.path("backing"), 80 << 20);
    device.losetup("--set-capacity");
    // While served: clients that connect later see the new size.
    let server = place.serve();
    assert_eq!(server.document["backing"]["size"], (64 << 20) - 4096);
    let grown = place.cache(&["grow", name, "--backing"]);
    assert_eq!(grown["backing"]["size"], (80 << 20) - 4096, "{grown}");
    has_it_all();
    let file = File::open(place.path("backing")).unwrap();
    let marker_at = |at: u64| {
        let mut block = [0; 11];
        file.read_exact_at(&mut block, at).unwrap();
        block == *b"plumb-cache"
    };
    assert!(marker_at((80 << 20) - 4096) && !marker_at((64 << 20) - 4096), "the marker has moved");
    load(&place, &server.uri(), &["--write", "100", "--random", "--verify", "--bytes", "32M", "--seed", "5"]);
    server.kill();
    // Blocks written beyond the old end are recovered.
    let server = place.serve();
    assert_eq!(server.document["backing"]["size"], (80 << 20) - 4096);
    load(&place, &server.uri(), &["--write", "0", "--random", "--verify", "--bytes", "32M", "--seed", "5"]);
    place.stop(server);
    // While not served.
    grow(&place.path("backing"), 88 << 20);
    device.losetup("--set-capacity");
    assert_eq!(place.cache(&["grow", name, "--backing"])["backing"]["size"], (88 << 20) - 4096);
    // A crash between the new marker and the new superblocks leaves two markers of one session.
    grow(&place.path("backing"), 96 << 20);
    device.losetup("--set-capacity");
    let marker = {
        let mut block = vec![0; 4096];
        file.read_exact_at(&mut block, (88 << 20) - 4096).unwrap();
        let text = String::from_utf8(block[..512].to_vec()).unwrap();
        let (old, new) = (((88 << 20) - 4096).to_string(), ((96 << 20) - 4096).to_string());
        let mut words: Vec<_> =
            text.trim_end_matches('\0').trim_end().split(' ').map(str::to_owned).collect();
        assert_eq!(words[5], old);
        words[5] = new;
        let silent = "-".repeat(8 * 32);
        words[8] = silent;
        format!("{}\n", words.join(" "))
    };
    File::options()
        .write(true)
        .open(place.path("backing"))
        .unwrap()
        .write_all_at(marker.as_bytes(), (96 << 20) - 4096)
        .unwrap();
    let server = place.serve();
    assert_eq!(server.document["backing"]["size"], (96 << 20) - 4096);
    assert!(!marker_at((88 << 20) - 4096), "the older marker is gone");
    drop(server);
    assert_eq!(place.cache(&["detach", name])["uuid"], uuid);
    assert!(!marker_at((96 << 20) - 4096), "nothing asks for the cache any more");
}

/// The loop device of a served cache grows while a file system on it is mounted, and the file system uses the
/// new space.
#[test]
fn a_loop_device_grows_with_the_file_beneath_its_cache_while_it_is_mounted() {
    if let Some(why) = cannot_attach(&["mkfs.ext4", "resize2fs", "e2fsck"]) {
        plumb_testkit::skip(&why);
        return;
    }
    let place = Place::new(64 << 20);
    place.create(&[]);
    let server = place.serve_as(&["--attach"]);
    Kind::Ext4.make(server.device());
    let at = tempfile::tempdir().unwrap();
    let mount = |server: &Server| MountedFileSystem::new(Kind::Ext4, server.device(), at.path()).unwrap();
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{program}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let size =
        |server: &Server| run("blockdev", &["--getsize64", server.device()]).trim().parse::<u64>().unwrap();
    let mounted = mount(&server);
    assert_eq!(size(&server), 64 << 20);
    grow(&place.path("backing"), 128 << 20);
    let grown = place.cache(&["grow", &place.name, "--backing"]);
    assert_eq!(grown["backing"]["size"], 128 << 20);
    assert!(!grown["warnings"].to_string().contains("is not as large"), "{grown}");
    assert_eq!(size(&server), 128 << 20);
    // Growing a mounted file system needs CAP_SYS_RESOURCE, which a container may lack.
    drop(mounted);
    run("e2fsck", &["-fy", server.device()]);
    run("resize2fs", &[server.device()]);
    let mounted = mount(&server);
    let bytes: Vec<u8> = (0..90_u32 << 20).map(|at| (at >> 12) as u8).collect();
    fs::write(at.path().join("large"), &bytes).unwrap();
    File::open(at.path().join("large")).unwrap().sync_all().unwrap();
    drop(mounted);
    place.stop(server);
    let server = place.serve_as(&["--attach"]);
    assert_eq!(size(&server), 128 << 20);
    let mounted = mount(&server);
    assert!(fs::read(at.path().join("large")).unwrap() == bytes, "what lies beyond the old end is there");
    drop(mounted);
    place.stop(server);
    place.cache(&["detach", &place.name]);
}

/// The file system has the former size of the device, even without a configuration.
#[test]
fn a_grown_device_without_configuration_is_kept_by_what_it_begins_with() {
    if let Some(why) = cannot_attach(&["mkfs.ext4"]) {
        return plumb_testkit::skip(&why);
    }
    let place = Place::new(64 << 20);
    let Some(device) = AttachedLoop::over(&place.path("backing")) else { return };
    let blocks = ((64 << 10) - 4).to_string() + "k";
    assert!(
        Command::new("mkfs.ext4")
            .args(["-q", "-F", "-b", "4096", &device.0, &blocks])
            .status()
            .unwrap()
            .success()
    );
    create(&place, &device.0);
    grow(&place.path("backing"), 80 << 20);
    device.losetup("--set-capacity");
    fs::rename(place.path("cache"), place.path("away")).unwrap();
    refused(
        &place,
        &["create", "--name", "other", "--backing", &device.0, "--log", "other", "--size", "64M"],
        4,
        &["may hold the only copy"],
    );
}

#[test]
fn the_file_of_a_loop_device_is_known_and_so_is_a_loop_device_over_a_file() {
    let place = Place::new(64 << 20);
    let Some(device) = AttachedLoop::over(&place.path("backing")) else { return };
    create(&place, &device.0);
    fill_and_stop(&place, place.serve());
    drop(device);
    assert_kept(&place, place.path("backing").to_str().unwrap());
    // Under its other name it is the same cache.
    let adopt = ["adopt", "--name", &place.name, "--backing", "backing", "--log", "log"];
    place.cache(&adopt);
    place.cache(&["detach", &place.name]);
    place.create(&[]);
    fill_and_stop(&place, place.serve());
    let Some(device) = AttachedLoop::over(&place.path("backing")) else { return };
    assert_kept(&place, &device.0);
}

#[test]
fn a_copy_without_attributes_is_adopted_by_the_word_of_the_user() {
    let place = Place::new(64 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    fill_and_stop(&place, place.serve());
    fs::copy(place.path("backing"), place.path("copy")).unwrap();
    fs::remove_file(place.path("backing")).unwrap();
    fs::rename(place.path("copy"), place.path("backing")).unwrap();
    // The configuration identifies it nevertheless.
    assert_kept(&place, "backing");
    let adopt = ["adopt", "--name", &place.name, "--backing", "backing", "--log", "log"];
    refused(&place, &adopt, 4, &["made without its attributes", "--unmarked"]);
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["does not say that it needs the cache"]);
    let other = "00000000-0000-0000-0000-000000000000";
    refused(&place, &[&adopt[..], &["--unmarked", other]].concat(), 4, &["none of the named devices"]);
    place.cache(&[&adopt[..], &["--unmarked", &uuid]].concat());
    place.cache(&["detach", &place.name]);
}

/// Serves, mounts and writes through the cache, and stops or kills it. Returns the device and the mount
/// point, too.
fn used_by_a_file_system(is_killed: bool) -> Option<(Place, AttachedLoop, String, tempfile::TempDir)> {
    if let Some(why) = cannot_attach(&["mkfs.ext4"]) {
        plumb_testkit::skip(&why);
        return None;
    }
    let place = Place::new(128 << 20);
    let device = AttachedLoop::over(&place.path("backing"))?;
    let uuid = create(&place, &device.0);
    place.put_to_sleep();
    let at = tempfile::tempdir().unwrap();
    let server = place.serve_as(&["--attach"]);
    Kind::Ext4.make(server.device());
    let mounted = MountedFileSystem::new(Kind::Ext4, server.device(), at.path()).unwrap();
    fs::write(at.path().join("through"), vec![1; 1 << 20]).unwrap();
    drop(mounted);
    // Drain, so that the file system on the backing device can be mounted.
    place.cache(&["drain", &place.name]);
    let mounted = MountedFileSystem::new(Kind::Ext4, server.device(), at.path()).unwrap();
    fs::write(at.path().join("again"), vec![2; 1 << 20]).unwrap();
    drop(mounted);
    if is_killed {
        server.kill();
    } else {
        place.stop(server);
    }
    Some((place, device, uuid, at))
}

fn mounted_beside(is_killed: bool) {
    let Some((place, device, uuid, at)) = used_by_a_file_system(is_killed) else { return };
    // There was no foreign write yet.
    place.serve().kill();
    let mounted = MountedFileSystem::new(Kind::Ext4, &device.0, at.path()).unwrap();
    fs::write(at.path().join("beside"), vec![3; 1 << 20]).unwrap();
    drop(mounted);
    let ways =
        ["something other than its cache", "--discard-dirty", "--discard-backing-writes", "ro,noload", &uuid];
    let name = place.name.as_str();
    for command in
        [&["serve", name, "--nbd", "s"][..], &["verify", name], &["detach", name], &["recover", name]]
    {
        refused(&place, command, 4, &ways);
    }
    let other = "00000000-0000-0000-0000-000000000000";
    let wrong = ["serve", name, "--nbd", "s", "--discard-backing-writes", other];
    refused(&place, &wrong, 4, &["its UUID is"]);
    place.serve_as(&["--nbd", "socket", "--discard-backing-writes", &uuid]).kill();
    // From then on the log is valid, even without the option.
    place.serve().kill();
    place.cache(&["detach", name]);
}

#[test]
fn a_backing_device_that_was_mounted_beside_a_stopped_cache_is_refused() {
    mounted_beside(false);
}

#[test]
fn a_backing_device_that_was_mounted_beside_a_killed_cache_is_refused() {
    mounted_beside(true);
}

/// A file has no write counters, and a copy is another file: its witnesses are compared.
#[test]
fn a_file_that_was_written_beside_a_stopped_cache_is_refused() {
    let place = Place::new(64 << 20);
    place.create(&[]);
    fill_and_stop(&place, place.serve());
    let (name, backing) = (place.name.as_str(), place.path("backing"));
    fs::set_permissions(&backing, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    place.cache(&["verify", name]);
    // A place without a witness.
    File::options().write(true).open(&backing).unwrap().write_all_at(b"beside", 100_000).unwrap();
    refused(&place, &["serve", name, "--nbd", "s"], 4, &["time of modification", "--discard-backing-writes"]);
}

/// Killing at any moment must not look like a foreign write.
#[test]
fn kills_are_not_taken_for_a_write_beside_the_cache() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    for kill in 0..30_u32 {
        let server = place.serve();
        let count = (kill % 10 * 60 + 20).to_string();
        let seed = kill.to_string();
        let words = ["--write", "100", "--random", "--count", &count, "--seed", &seed];
        load(&place, &server.uri(), &words);
        if kill % 7 == 0 {
            place.cache(&["drain", &place.name]);
        }
        server.kill();
    }
    place.cache(&["detach", &place.name]);
}

#[test]
fn an_old_copy_of_the_log_is_refused_in_the_same_session() {
    let place = Place::new(64 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    let server = place.serve();
    let words = ["--write", "100", "--random", "--count", "200"];
    load(&place, &server.uri(), &words);
    fs::copy(place.path("log"), place.path("copy")).unwrap();
    place.cache(&["drain", &place.name]);
    load(&place, &server.uri(), &words);
    server.kill();
    fs::rename(place.path("log"), place.path("newest")).unwrap();
    fs::rename(place.path("copy"), place.path("log")).unwrap();
    let name = place.name.as_str();
    for command in [&["serve", name, "--nbd", "s"][..], &["verify", name]] {
        refused(&place, command, 4, &["is an old copy", "--discard-dirty", &uuid]);
    }
    fs::rename(place.path("newest"), place.path("log")).unwrap();
    place.cache(&["detach", name]);
}

/// A copy from before the cache wrote to the device lacks data that was drained since and is no longer in the
/// log.
#[test]
fn an_old_copy_of_the_backing_device_is_refused() {
    let place = Place::new(64 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    let name = place.name.as_str();
    let words = ["--write", "100", "--random", "--count", "200"];
    let copy = |to: &str| {
        let (from, to) = (place.path("backing"), place.path(to));
        let copied = Command::new("cp").arg("--preserve=all").args([from, to]).status().unwrap();
        assert!(copied.success());
    };
    let refused_with = |other: &str| {
        fs::rename(place.path("backing"), place.path("newest")).unwrap();
        fs::rename(place.path(other), place.path("backing")).unwrap();
        let adopt = ["adopt", "--name", name, "--backing", "backing", "--log", "log"];
        for command in [&["serve", name, "--nbd", "s"][..], &["verify", name], &["detach", name], &adopt] {
            refused(&place, command, 4, &["is an old copy", "--discard-dirty", &uuid]);
        }
        fs::rename(place.path("newest"), place.path("backing")).unwrap();
    };
    fill_and_stop(&place, place.serve());
    copy("before");
    let server = place.serve();
    load(&place, &server.uri(), &words);
    place.cache(&["drain", name]);
    copy("within");
    load(&place, &server.uri(), &words);
    place.cache(&["drain", name]);
    place.stop(server);
    refused_with("within");
    // A killed server leaves the session that it started.
    let server = place.serve();
    load(&place, &server.uri(), &words);
    server.kill();
    refused_with("before");
    place.cache(&["detach", name]);
}

/// Adopting a cache under its present name keeps the record of its last stop.
#[test]
fn a_write_beside_the_cache_is_not_forgotten_by_adopting_it() {
    let place = Place::new(64 << 20);
    place.create(&[]);
    fill_and_stop(&place, place.serve());
    let file = File::options().write(true).open(place.path("backing")).unwrap();
    file.write_all_at(&[7; 4096], 5 << 20).unwrap();
    let name = place.name.as_str();
    for _ in 0..2 {
        refused(&place, &["serve", name, "--nbd", "s"], 4, &["has been changed since"]);
        place.cache(&["adopt", "--name", name, "--backing", "backing", "--log", "log"]);
    }
}

/// A marker of version 1 is shorter, and the configuration of its cache has no last mark.
#[test]
fn a_mark_of_version_1_is_read_and_replaced() {
    let place = Place::new(64 << 20);
    place.create(&[]);
    fill_and_stop(&place, place.serve());
    let mark = |path: &Path| {
        let output =
            Command::new("getfattr").args(["--only-values", "-n", "user.plumb.cache"]).arg(path).output();
        output.ok().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let Some(new) = mark(&place.path("backing")) else { return plumb_testkit::skip("there is no getfattr") };
    let words: Vec<&str> = new.split_whitespace().collect();
    assert_eq!((words[0], words[1], words.len()), ("plumb-cache", "2", 9), "{new}");
    let old = format!("plumb-cache 1 {}\n", words[2..6].join(" "));
    let set = Command::new("setfattr")
        .args(["-n", "user.plumb.cache", "-v", &old])
        .arg(place.path("backing"))
        .status();
    assert!(set.unwrap().success());
    let config = place.path("cache").join(format!("{}.json", place.name));
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    for key in ["stopped", "last_mark", "backing_size"] {
        document.as_object_mut().unwrap().remove(key);
    }
    fs::write(&config, document.to_string()).unwrap();
    assert_kept(&place, "backing");
    place.serve().kill();
    assert!(mark(&place.path("backing")).unwrap().starts_with("plumb-cache 2 "));
    place.cache(&["detach", &place.name]);
}

#[test]
fn a_log_that_forgets_is_of_no_protected_cache() {
    let place = Place::new(8 << 20);
    let name = place.name.as_str();
    let memory = tempfile::tempdir_in("/dev/shm");
    let Ok(memory) = memory else { return plumb_testkit::skip("there is no /dev/shm") };
    let log = memory.path().join("log");
    let create =
        ["create", "--name", name, "--backing", "backing", "--log", log.to_str().unwrap(), "--size", "32M"];
    let protected = [&create[..], &["--mode", "protected"]].concat();
    refused(&place, &protected, 4, &["is memory", "protected", "write-back"]);
    place.cache(&create);
    let to_protected = ["mode", name, "protected"];
    refused(&place, &to_protected, 4, &["is memory"]);
    let server = place.serve();
    refused(&place, &to_protected, 4, &["is memory"]);
    drop(server);
    place.cache(&["detach", name]);
    let Some(zram) = Zram::new(64 << 20) else { return plumb_testkit::skip("there is no zram") };
    let on = [
        "create",
        "--name",
        name,
        "--backing",
        "backing",
        "--log",
        &zram.path,
        "--size",
        "32M",
        "--overwrite",
    ];
    refused(&place, &[&on[..], &["--mode", "protected"]].concat(), 4, &["is memory"]);
}

/// Both would be lost with the disk, and the log does not make the cache faster.
#[test]
fn devices_on_one_disk_are_warned_of_and_one_device_twice_is_refused() {
    let place = Place::new(8 << 20);
    let name = place.name.as_str();
    let with = |legs: &[&str]| {
        let mut words = vec!["create", "--name", name, "--backing", "backing", "--size", "32M"];
        legs.iter().for_each(|leg| words.extend(["--log", leg]));
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let refused_as_one = |legs: &[&str]| {
        let words = with(legs);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        refused(&place, &words, 4, &["is the same device as"]);
    };
    fs::write(place.path("one"), vec![0; 1 << 20]).unwrap();
    fs::hard_link(place.path("one"), place.path("hard")).unwrap();
    std::os::unix::fs::symlink("one", place.path("soft")).unwrap();
    refused_as_one(&["one", "hard"]);
    refused_as_one(&["soft", "one"]);
    refused_as_one(&["backing"]);
    if let Some(device) = AttachedLoop::over(&place.path("backing")) {
        refused_as_one(&[&device.0]);
    }
    let words = with(&["log", "log2"]);
    let made = place.cache(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let warnings = made["warnings"].as_array().unwrap();
    assert_eq!(
        warnings.len(),
        3,
        "each log with the backing device, and one log with the other: {warnings:?}"
    );
    assert_eq!(place.cache(&["status", name])["warnings"], made["warnings"]);
    let server = place.serve();
    assert_eq!(place.cache(&["status", name])["warnings"], made["warnings"]);
    drop(server);
}
