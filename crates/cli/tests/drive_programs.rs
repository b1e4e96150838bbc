//! Tests of other programs on a served drive: libnbd and QEMU see the properties of the drive, and read back
//! their data, also after the drive was served again from its file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::said;
use crate::drive_support::{Server, has, run};
use tempfile::TempDir;

const SIZE: usize = 32 << 20;

/// Drive on a file, with its socket.
struct Bench {
    directory: TempDir,
    server: Server,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = Self::serve(directory.path());
        Self { directory, server }
    }

    fn serve(directory: &Path) -> Server {
        let (socket, medium) = (directory.join("nbd"), directory.join("medium"));
        let place = ["--nbd", socket.to_str().unwrap(), "--backing", medium.to_str().unwrap()];
        Server::start(&[&["consumer-nvme-ssd", "--size", "32M"][..], &place].concat())
    }

    fn uri(&self) -> &str {
        self.server.document["nbd"].as_str().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Serves the drive again in a new process.
    fn again(self) -> Self {
        let Self { directory, server } = self;
        server.detach();
        let server = Self::serve(directory.path());
        Self { directory, server }
    }
}

/// Returns the output of a program, which must succeed.
fn printed(program: &str, arguments: &[&str]) -> String {
    String::from_utf8(run(Command::new(program).args(arguments)).stdout).unwrap()
}

/// Returns data in which all blocks differ.
fn noise(length: usize) -> Vec<u8> {
    let words = (0..length as u64 / 8).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}

fn is_missing(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !has(program));
    if let Some(missing) = missing {
        plumb_testkit::skip(&format!("there is no {missing}"));
    }
    missing.is_some()
}

#[test]
fn nbdinfo_finds_the_drive_as_its_model_is() {
    if is_missing(&["nbdinfo"]) {
        return;
    }
    let bench = Bench::new();
    let text = printed("nbdinfo", &[bench.uri()]);
    for line in [
        "export-size: 33554432",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(text.contains("consumer-nvme-ssd") || text.contains("(simulated)"), "{text}");
    assert!(printed("nbdinfo", &["--list", bench.uri()]).contains(&bench.server.name));
    // The drive is also found by its name, and by no other.
    let named = bench.uri().replace("///", &format!("///{}", bench.server.name));
    assert_eq!(printed("nbdinfo", &["--size", &named]).trim(), "33554432");
    let other = Command::new("nbdinfo").arg(bench.uri().replace("///", "///other")).output().unwrap();
    assert!(!other.status.success(), "{}", said(&other));
    bench.server.detach();
}

#[test]
fn nbdcopy_brings_back_what_it_took_there() {
    if is_missing(&["nbdcopy", "nbdinfo"]) {
        return;
    }
    let bench = Bench::new();
    let (there, back) = (bench.file("there"), bench.file("back"));
    std::fs::write(&there, noise(SIZE / 2)).unwrap();
    printed("nbdcopy", &["--flush", there.to_str().unwrap(), bench.uri()]);
    let bench = bench.again();
    printed("nbdcopy", &[bench.uri(), back.to_str().unwrap()]);
    let (there, back) = (std::fs::read(there).unwrap(), std::fs::read(back).unwrap());
    assert!(back[..there.len()] == there && back[there.len()..].iter().all(|byte| *byte == 0));
    let map = printed("nbdinfo", &["--map", bench.uri()]);
    assert!(map.lines().any(|line| line.contains("hole,zero")), "{map}");
    bench.server.detach();
}

#[test]
fn nbdsh_uses_every_command() {
    let shell = || {
        let mut shell = Command::new("nbdsh");
        // nbdsh needs the Python module of Debian's Python.
        shell.env("PATH", "/usr/bin:/bin");
        shell
    };
    if !shell().args(["-c", "h"]).output().is_ok_and(|output| output.status.success()) {
        return plumb_testkit::skip("there is no nbdsh");
    }
    let bench = Bench::new();
    let script = "
b = bytes(range(256)) * 16
h.pwrite(b, 4096, nbd.CMD_FLAG_FUA)
h.flush()
h.zero(4096, 8192, nbd.CMD_FLAG_NO_HOLE)
h.trim(4096, 16384, nbd.CMD_FLAG_FUA)
assert h.pread(4096, 4096) == b and h.pread(4096, 8192) == bytearray(4096)
seen = []
h.block_status(65536, 0, lambda context, offset, entries, error: seen.append(context))
assert seen == ['base:allocation'], seen
";
    run(shell().args(["--base-allocation", "-u", bench.uri(), "-c", script]));
    let status = bench.server.order("status", &[]);
    assert!(status["fua_writes"].as_u64() >= Some(1) && status["flushes"].as_u64() >= Some(1), "{status}");
    bench.server.detach();
}

#[test]
fn qemu_converts_compares_and_verifies_patterns() {
    if is_missing(&["qemu-img", "qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    let image = bench.file("image");
    std::fs::write(&image, noise(SIZE)).unwrap();
    let image = image.to_str().unwrap().to_owned();
    printed("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &image, bench.uri()]);
    let bench = bench.again();
    printed("qemu-img", &["compare", "-f", "raw", "-F", "raw", &image, bench.uri()]);
    let commands =
        ["write -f -P 7 1M 64k", "read -P 7 1M 64k", "write -z -u 2M 1M", "read -P 0 2M 1M", "flush"];
    let arguments: Vec<&str> = commands.iter().flat_map(|command| ["-c", *command]).collect();
    let text = printed("qemu-io", &[&["-f", "raw"][..], &arguments, &[bench.uri()]].concat());
    assert!(!text.contains("failed"), "{text}");
    bench.server.detach();
}
