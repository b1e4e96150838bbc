//! Tests of two caches whose logs are parts of one file or device, without partitions. They guard against a
//! log that reaches into another part, against a part used twice or as part of the whole, and against a claim
//! that ends with the first server.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;

use plumb_block::{Bytes, Device as _, Lba, LbaRange, Payload, Pool, PoolShape, Request, Tag, Time};
use plumb_cache::driver::carry_out;
use plumb_serve::nbd::client::{NbdDevice, Options};
use rustix::fs::OFlags;

use crate::cache_dying::load;
use crate::cache_support::{AttachedLoop, Place, Server, refused};
use crate::common::{document, exited, holds, said};
use crate::drive_support;

const BACKING: u64 = 16 << 20;
const CHUNK: u64 = 1 << 20;

/// Returns a place with a second backing file, and a file of 256 MiB for the logs.
fn place() -> Place {
    let place = Place::new(BACKING);
    for (name, size) in [("backing2", BACKING), ("ssd", 256 << 20)] {
        File::create(place.path(name)).unwrap().set_len(size).unwrap();
    }
    place
}

/// Creates a cache whose log is a part.
fn create(place: &Place, name: &str, backing: &str, log: &str) {
    let created = place.cache(&["create", "--name", name, "--backing", backing, "--log", log, "--overwrite"]);
    let leg = &created["legs"][0];
    assert!(leg["path"].as_str().unwrap().ends_with(log.rsplit('/').next().unwrap()), "{created}");
    assert_eq!(created["size"], leg["part"]["length"], "it takes all of its part");
    holds("cache-status", &place.cache(&["status", name]));
    let survey = place.plumb().args(["survey", &format!("cache:{name}"), "--json"]).output().unwrap();
    let layers = &document(&survey)["paths"][0]["layers"];
    assert_eq!(layers[1]["identity"], created["uuid"], "{}", said(&survey));
}

/// Reads all data of a cache.
fn contents(server: &Server) -> Vec<u8> {
    let time = Time::real();
    let options = Options { connections: 1, time, ..Options::default() };
    let device = NbdDevice::connect(&server.uri().parse().unwrap(), options).unwrap();
    let (block, chunks) = (device.info().logical_block.0, BACKING / CHUNK);
    let shape = PoolShape { buffer: Bytes(CHUNK), count: chunks as u32, alignment: Bytes(4096) };
    let pool = Pool::new(shape).unwrap();
    let read = |chunk: u64| {
        let range = LbaRange::new(Lba(chunk * CHUNK / block), CHUNK / block);
        Request::read_into(Tag(chunk), range, pool.take(Bytes(CHUNK)).unwrap())
    };
    let payloads = carry_out(&device, (0..chunks).map(read)).unwrap();
    let bytes = |payload: &Payload| match payload {
        Payload::Into(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    };
    payloads.iter().flat_map(bytes).collect()
}

/// Runs two caches with logs on `on`: one is killed while both are written to, and one is detached while the
/// other serves and then takes its space. `is_claimed` tells whether `on` is claimed.
fn two_caches_share(place: &Place, on: &str, is_claimed: &dyn Fn() -> bool) {
    let at = |part: &str| format!("{on}@{part}");
    create(place, &place.name, "backing", &at("0+64M"));
    let other = drive_support::name();
    create(place, &other, "backing2", &at("64M+64M"));
    let (first, second) = (place.serve(), place.serve_named(&other, &["--nbd", "socket2"]));
    load(place, &first);
    load(place, &second);
    let in_second = contents(&second);
    // A part in use cannot be used in any other form.
    let overlapping = at("96M+64M");
    let destroy = format!("{}@96M+64M", place.path("ssd").canonicalize().unwrap().display());
    File::create(place.path("backing3")).unwrap().set_len(BACKING).unwrap();
    let third = ["create", "--name", "third", "--backing", "backing3", "--log", &overlapping, "--overwrite"];
    let why = if on == "ssd" { "log of a plumb cache" } else { "it is in use" };
    refused(place, &third, 4, &[why, "--destroy", "@96M+64M"]);
    if on == "ssd" {
        refused(
            place,
            &[&third[..], &["--destroy", &destroy]].concat(),
            4,
            &["a cache or another program has locked"],
        );
    }
    assert!(is_claimed());

    let endless = ["load", &first.uri(), "--overwrite", "--no-record", "--write", "100", "--duration", "1h"];
    let mut loading =
        place.plumb().args(endless).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let written = || place.cache(&["status", &place.name])["counts"]["writes"].as_f64().unwrap();
    let before = written();
    while written() <= before {
        assert!(loading.try_wait().unwrap().is_none(), "the load has ended");
    }
    first.kill();
    loading.wait().unwrap();
    assert!(is_claimed(), "the claim ended with the server that took it");
    assert_eq!(contents(&second), in_second, "the other cache has changed");
    let first = place.serve();
    load(place, &first);
    let in_first = contents(&first);
    place.cache(&["detach", &other]);
    drop(second);
    assert_eq!(fs::read(place.path("backing2")).unwrap(), in_second);
    assert_eq!(contents(&first), in_first);
    assert!(is_claimed());

    // A part does not grow into its neighbour, even a free one; the log can move there.
    refused(place, &["grow", &place.name, "--size", "96M"], 4, &["@0+64M", "shorter", "replace-log"]);
    place.cache(&["replace-log", &place.name, &at("64M+128M"), "--size", "128M", "--overwrite"]);
    load(place, &first);
    assert_eq!(contents(&first), in_first, "the same load again");
    place.stop(first);
    assert!(!is_claimed());
    place.cache(&["verify", &place.name]);
}

/// Checks refusals of the whole when parts are in use, and of invalid parts.
fn refusals(place: &Place, on: &str) {
    let log = format!("{on}@64M+128M");
    File::create(place.path("backing3")).unwrap().set_len(BACKING).unwrap();
    let whole =
        ["create", "--name", "third", "--backing", "backing3", "--size", "16M", "--overwrite", "--log"];
    refused(place, &[&whole[..], &[on]].concat(), 4, &["log of a plumb cache", "--destroy"]);
    let both = ["a@0+1M", "a@512K+1M"].map(|part| part.replace('a', on));
    let mirror = [&whole[..], &[&both[0], "--log", &both[1]]].concat();
    refused(place, &mirror, 4, &["bytes in common"]);
    refused(place, &[&whole[..], &[&format!("{on}@240M+32M")]].concat(), 2, &["the part ends at"]);
    refused(place, &[&whole[..], &[&format!("{on}@240M+8M")]].concat(), 2, &["8388608"]);
    refused(place, &[&whole[..], &[&format!("{on}@1K+64M")]].concat(), 2, &["whole blocks"]);
    refused(place, &[&whole[..], &["none@0+64M"]].concat(), 2, &["fallocate"]);
    let output = place.plumb().args(["load", on, "--overwrite", "--write", "100", "--bytes", "1M"]).output();
    let output = exited(output.unwrap(), 4);
    assert!(said(&output).contains("log of a plumb cache"), "{}", said(&output));
    // The cache is adopted after its configuration is lost.
    fs::remove_file(place.path(&format!("cache/{}.json", place.name))).unwrap();
    let adopt = ["adopt", "--name", &place.name, "--backing", "backing", "--log"];
    refused(place, &[&adopt[..], &[on]].concat(), 4, &["not a device of the log"]);
    let adopted = place.cache(&[&adopt[..], &[&log]].concat());
    assert_eq!(adopted["legs"][0]["part"]["offset"], 64 << 20, "{adopted}");
    place.cache(&["detach", &place.name]);
}

#[test]
fn two_caches_share_a_file_and_neither_reaches_into_the_other() {
    let place = place();
    let is_locked = |path: &Path| {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&file, exclusive).is_err()
    };
    let path = place.path("ssd");
    two_caches_share(&place, "ssd", &|| is_locked(&path));
    refusals(&place, "ssd");
}

#[test]
fn two_caches_share_a_device_and_the_claim_on_it() {
    let place = place();
    let Some(device) = AttachedLoop::over(&place.path("ssd")) else { return };
    let is_claimed = |device: &str| {
        let flags = (OFlags::EXCL | OFlags::NONBLOCK).bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flags).open(device).is_err()
    };
    two_caches_share(&place, &device.0, &|| is_claimed(&device.0));
    // Under another device number the log is found in the same part.
    let Some(other) = AttachedLoop::over(&place.path("ssd")) else { return };
    drop(device);
    let server = place.serve();
    let path = place.cache(&["status", &place.name])["legs"][0]["path"].clone();
    assert_eq!(path, format!("{}@64M+128M", other.0));
    place.stop(server);
    refusals(&place, &other.0);
}
