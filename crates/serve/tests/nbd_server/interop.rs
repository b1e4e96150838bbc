//! Tests of the server with other programs: libnbd's, QEMU's, fio.

use std::path::Path;
use std::process::Command;

use plumb_block::Bytes;
use plumb_serve::nbd::server::{Listener, Options};
use plumb_serve::nbd::uri::{Address, Uri};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::nbd_server::memory::memory;
use crate::nbd_server::running::{RunningServer, export};

/// Returns true if `program` is installed; without it the test is skipped.
pub(crate) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&paths).any(|path| path.join(program).exists());
    if !is_there {
        plumb_testkit::skip(&format!("needs {program}"));
    }
    is_there
}

/// Runs `program`, which must succeed, and returns what it printed.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {text}{errors}");
    text
}

fn noise(path: &Path, bytes: usize) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let noise: Vec<u8> = (0..bytes / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
    std::fs::write(path, noise).unwrap();
}

#[test]
fn nbdinfo_reads_it_all() {
    if !has("nbdinfo") {
        return;
    }
    let running = RunningServer::of_memory(Bytes::mib(8));
    let info = output("nbdinfo", &[&running.uri()]);
    let expected = [
        "using structured packets",
        "export=\"disk\"",
        "description: a test",
        "export-size: 8388608",
        "base:allocation",
        "can_df: true",
        "can_fast_zero: true",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "is_read_only: false",
        "block_size_minimum: 512",
        "block_size_maximum: 33554432",
    ];
    for line in expected {
        assert!(info.contains(line), "{line:?} is not in {info}");
    }
    assert!(output("nbdinfo", &["--list", &running.uri()]).contains("export=\"disk\""));
}

/// Tests that the URI is percent-encoded as the path requires, and leads to the socket.
#[test]
fn nbdinfo_finds_sockets_whatever_they_are_called() {
    if !has("nbdinfo") {
        return;
    }
    let long = "x".repeat(60);
    for name in ["a b", "a?b&c;d#e", "100%", "\u{fc}", "q'\"", long.as_str()] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join(name);
        let listener = Listener::unix(&socket).unwrap();
        let exports = vec![export("disk", memory(Bytes::mib(1)))];
        let running =
            RunningServer::start_on(exports, Options::default(), vec![listener], socket.clone(), directory);
        let address = Address::Unix(socket);
        let uri = Uri { address, export: String::new(), tls: None }.to_string();
        assert_eq!(output("nbdinfo", &["--size", &uri]).trim(), "1048576", "{uri}");
        drop(running);
    }
}

#[test]
fn nbdcopy_copies_there_and_back_and_the_map_is_right() {
    if !has("nbdcopy") || !has("nbdinfo") {
        return;
    }
    let running = RunningServer::of_memory(Bytes::mib(64));
    let directory = tempfile::tempdir().unwrap();
    let (there, back) = (directory.path().join("there"), directory.path().join("back"));
    noise(&there, 20 << 20);
    output("nbdcopy", &["--flush", there.to_str().unwrap(), &running.uri()]);
    output("nbdcopy", &[&running.uri(), back.to_str().unwrap()]);
    let (there, back) = (std::fs::read(&there).unwrap(), std::fs::read(&back).unwrap());
    assert!(back[..there.len()] == there[..] && back[there.len()..].iter().all(|byte| *byte == 0));
    let map = output("nbdinfo", &["--map", &running.uri()]);
    let fields: Vec<Vec<&str>> = map.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(fields, [["0", "20971520", "0", "data"], ["20971520", "46137344", "3", "hole,zero"]]);
}

#[test]
fn nbdsh_uses_every_command() {
    if !has("nbdsh") {
        return;
    }
    let running = RunningServer::of_memory(Bytes::mib(8));
    let script = r#"
b = bytes(range(256)) * 16
h.pwrite(b, 4096, nbd.CMD_FLAG_FUA)
assert h.pread(4096, 4096) == b
h.flush()
h.zero(4096, 4096, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert h.pread(4096, 4096) == bytearray(4096)
h.pwrite(b, 8192)
h.trim(4096, 8192, nbd.CMD_FLAG_FUA)
assert h.pread_structured(512, 0, lambda *a: 0, nbd.CMD_FLAG_DF)
h.set_strict_mode(0)
for offset, length in ((1, 512), (8 << 20, 512), (0, 100)):
    try:
        h.pread(length, offset)
        assert False
    except nbd.Error as error:
        assert error.errnum == 22 or error.errno == "EINVAL", error
h.shutdown()
"#;
    // The bindings belong to the system's Python, which need not be the first in the path.
    let mut shell = Command::new("nbdsh");
    shell.env("PATH", "/usr/bin:/bin").args(["--base-allocation", "-u", &running.uri(), "-c", script]);
    let outcome = shell.output().unwrap();
    let errors = String::from_utf8_lossy(&outcome.stderr);
    if errors.contains("No module named nbd") {
        return plumb_testkit::skip("needs the Python bindings of libnbd");
    }
    assert!(outcome.status.success(), "{errors}");
}

#[test]
fn qemu_converts_compares_and_maps() {
    if !has("qemu-img") || !has("qemu-io") {
        return;
    }
    let running = RunningServer::of_memory(Bytes::mib(16));
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    noise(&image, 16 << 20);
    let (image, uri) = (image.to_str().unwrap(), running.uri());
    output("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", image, &uri]);
    output("qemu-img", &["compare", "-f", "raw", "-F", "raw", image, &uri]);
    let write = "write -f -P 7 1M 64k";
    output("qemu-io", &["-f", "raw", "-c", write, "-c", "read -P 7 1M 64k", "-c", "flush", &uri]);
    output(
        "qemu-io",
        &["-f", "raw", "-c", "write -z -u 2M 1M", "-c", "read -P 0 2M 1M", "-c", "discard 4M 1M", &uri],
    );
    let map = output("qemu-img", &["map", "--output=json", "-f", "raw", &uri]);
    assert!(map.contains("\"start\": 2097152, \"length\": 1048576"), "{map}");
    assert!(map.contains("\"start\": 4194304, \"length\": 1048576"), "{map}");
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !has("fio") {
        return;
    }
    if !output("fio", &["--enghelp"]).contains("nbd") {
        return plumb_testkit::skip("needs fio with the nbd engine");
    }
    let running = RunningServer::of_memory(Bytes::mib(16));
    let uri = format!("--uri={}", running.uri());
    let directory = tempfile::tempdir().unwrap();
    let aux = format!("--aux-path={}", directory.path().display());
    let mut arguments =
        vec!["--name=v", "--ioengine=nbd", &uri, "--rw=randwrite", "--bsrange=512-128k", "--iodepth=32"];
    arguments.extend(["--size=16m", "--verify=crc32c", "--do_verify=1", "--randseed=3", "--fsync=64", &aux]);
    output("fio", &arguments);
}
