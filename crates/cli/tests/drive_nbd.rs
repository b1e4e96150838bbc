//! Tests of a served drive over NBD with libnbd as the client: the crash rules hold through the socket, and
//! killing the server is a power cut after which the backing file has all flushed data.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common;
use crate::common::{PYTHON, bounded, exited, said};
use crate::drive_support::Server;

fn has_libnbd() -> bool {
    Command::new(PYTHON).args(["-c", "import nbd"]).output().is_ok_and(|output| output.status.success())
}

/// Runs a script with the connection `h`, and the path of plumb and the name of the drive in `argv`.
fn nbd(socket: &Path, server: &Server, script: &str) -> Output {
    let prelude = "
import nbd, subprocess, sys
def connect():
    h = nbd.NBD()
    h.connect_unix(sys.argv[1])
    return h
def plumb(*arguments):
    subprocess.run([sys.argv[2], 'drive', arguments[0], sys.argv[3], *arguments[1:]], check=True, stdout=subprocess.DEVNULL)
h = connect()
";
    // A client without an answer must fail the test, not hang it.
    let output = bounded(PYTHON)
        .args(["-c", &format!("{prelude}{script}")])
        .arg(socket)
        .args([env!("CARGO_BIN_EXE_plumb"), &server.name])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    output
}

#[test]
fn the_first_request_of_a_connection_is_answered() {
    if !has_libnbd() {
        return plumb_testkit::skip("there is no python3-libnbd");
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    // The drive is slow, so that no request completes before the server waits.
    let server = Server::start(&["sas-15k", "--size", "16M", "--nbd", socket.to_str().unwrap()]);
    for request in ["h.pread(512, 8192)", "h.pwrite(b'x' * 512, 0)", "h.flush()"] {
        nbd(&socket, &server, request);
    }
    server.detach();
}

#[test]
fn flushed_and_fua_writes_survive_a_cut_and_the_rest_is_old_or_new() {
    if !has_libnbd() {
        return plumb_testkit::skip("there is no python3-libnbd");
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    for seed in ["1", "2", "3"] {
        let arguments =
            ["consumer-nvme-ssd", "--size", "16M", "--seed", seed, "--nbd", socket.to_str().unwrap()];
        let server = Server::start(&arguments);
        let script = "
old, new = b'o' * 4096, b'n' * 4096
for i in range(64): h.pwrite(old, i * 4096)
h.flush()
for i in range(32): h.pwrite(new, i * 4096)
h.pwrite(new, 100 * 4096, nbd.CMD_FLAG_FUA)
plumb('cut')
try:
    h.pread(4096, 0)
    sys.exit('a drive without power answered')
except nbd.Error: pass
plumb('power-on')
h = connect()
kept = 0
for i in range(64):
    found = h.pread(4096, i * 4096)
    # Atomic are logical blocks, of 512 bytes at least.
    for at in range(0, 4096, 512):
        piece = found[at:at + 512]
        assert piece == old[:512] or (i < 32 and piece == new[:512]), (i, at, piece[:8])
        kept += piece == new[:512]
assert h.pread(4096, 100 * 4096) == new
print(kept)
";
        let output = nbd(&socket, &server, script);
        let kept: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        let status = server.order("status", &[]);
        assert_eq!(status["cuts"], 1, "seed {seed}");
        assert_eq!(status["fua_writes"], 1, "seed {seed}");
        assert_eq!(status["flushes"], 1, "seed {seed}: {status}");
        eprintln!("seed {seed}: {kept} of 256 unflushed blocks kept");
        server.detach();
    }
}

#[test]
fn a_cut_at_the_nth_write_strikes_there() {
    if !has_libnbd() {
        return plumb_testkit::skip("there is no python3-libnbd");
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let server = Server::start(&["plp-nvme-ssd", "--size", "16M", "--nbd", socket.to_str().unwrap()]);
    assert_eq!(server.order("cut", &["--at-write", "4"])["cut_armed"], "write=4");
    let script = "
done = 0
try:
    for i in range(10):
        h.pwrite(b'x' * 4096, i * 4096)
        done += 1
except nbd.Error: pass
assert done == 3, done
plumb('power-on')
h = connect()
for i in range(3): assert h.pread(4096, i * 4096) == b'x' * 4096
";
    nbd(&socket, &server, script);
    let status = server.order("status", &[]);
    assert!(status["cut_armed"].is_null(), "{status}");
    server.detach();
}

#[test]
fn a_killed_server_is_a_power_cut_and_its_backing_file_has_what_was_flushed() {
    if !has_libnbd() {
        return plumb_testkit::skip("there is no python3-libnbd");
    }
    let directory = tempfile::tempdir().unwrap();
    let (socket, file) = (directory.path().join("nbd"), directory.path().join("medium"));
    let arguments = [
        "consumer-nvme-ssd",
        "--size",
        "16M",
        "--backing",
        file.to_str().unwrap(),
        "--nbd",
        socket.to_str().unwrap(),
    ];
    let server = Server::start(&arguments);
    nbd(
        &socket,
        &server,
        "h.pwrite(b'f' * 65536, 0)\nh.flush()\nh.pwrite(b'u' * 65536, 1 << 20)\nh.pwrite(b'u' * 4096, 0)\n",
    );
    let name = server.kill();
    let medium = fs::read(&file).unwrap();
    assert_eq!(medium.len(), 16 << 20);
    assert!(medium[4096..65536].iter().all(|byte| *byte == b'f'), "what was flushed is not in the file");
    assert!(
        medium[..4096]
            .chunks(512)
            .all(|block| block.iter().all(|byte| b"fu".contains(byte) && *byte == block[0]))
    );
    // The next server can use the name and the socket, and finds the durable data.
    exited(common::plumb().args(["drive", "status", &name]).output().unwrap(), 5);
    let cleared = common::plumb().args(["drive", "detach", &name, "--json"]).output().unwrap();
    assert_eq!(common::document(&cleared)["gone"], true);
    exited(common::plumb().args(["drive", "status", &name]).output().unwrap(), 2);
    let again = Server::start(&arguments);
    nbd(&socket, &again, "assert h.pread(61440, 4096) == b'f' * 61440\n");
    again.detach();
}
