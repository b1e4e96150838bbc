//! Setup of the benches of the cache: a slow disk, a cache, and peers that serve a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::bench::machine::MEMORY;
use crate::bench::served::{Peer, uri};
use crate::process;
use crate::running::RunningProcess;

/// Settings that all parts of the bench share.
pub(in crate::bench) struct CacheBench<'a> {
    /// Program under test.
    pub(in crate::bench) plumb: &'a Path,
    /// Directory for logs.
    pub(in crate::bench) directory: &'a Path,
    /// Number of pairs in comparisons of two programs.
    pub(in crate::bench) pairs: usize,
}

/// Number of bytes at the beginning of a slow disk that were written before. QEMU answers reads of the rest
/// without its throttle.
pub(super) const WRITTEN: u64 = 512 << 20;
/// Name of every cache here; each has a directory of its own.
const NAME: &str = "bench";

/// Serves a disk of `bytes` in memory over NBD, limited to 150 operations/s and 150 MiB/s by QEMU's throttle,
/// as in a guest. It counts operations, so it rewards merging but not the order of addresses.
pub(super) fn slow_disk(bytes: u64) -> Result<Peer> {
    let place = tempfile::tempdir_in(MEMORY).context("making a directory for a slow disk")?;
    let file = place.path().join("disk");
    make(&file, bytes).context("making a slow disk")?;
    Peer::start(place, |socket| {
        let mut command = Command::new("qemu-storage-daemon");
        command
            .args(["--object", &format!("throttle-group,id=slow,x-iops-total=150,x-bps-total={}", 150 << 20)])
            .args(["--blockdev", &format!("file,node-name=file,filename={}", file.display())])
            .args(["--blockdev", "throttle,node-name=disk,throttle-group=slow,file=file"])
            .args(["--nbd-server", &format!("addr.type=unix,addr.path={}", socket.display())])
            .args(["--export", "nbd,id=disk,node-name=disk,name=,writable=on"]);
        command
    })
}

/// Creates a file whose beginning is written.
fn make(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    for _ in 0..WRITTEN >> 20 {
        file.write_all(&[b'U'; 1 << 20])?;
    }
    file.set_len(bytes)
}

/// Serves a file by qemu-nbd, with direct I/O and Linux's native asynchronous I/O.
pub(super) fn qemu_nbd(file: &Path) -> Result<Peer> {
    let place = tempfile::tempdir().context("making a directory for a socket")?;
    Peer::start(place, |socket| {
        let mut command = Command::new("qemu-nbd");
        command.args(["--format=raw", "--cache=none", "--aio=native", "--persistent", "--socket"]);
        command.arg(socket).arg(file);
        command
    })
}

/// Write-back cache. Its log is a file, removed with it.
pub(super) struct Cache {
    plumb: PathBuf,
    place: TempDir,
    server: Option<RunningProcess>,
}

impl Cache {
    /// Creates a cache of `backing` with a log of `bytes` in `directory`.
    pub(super) fn create(plumb: &Path, directory: &Path, backing: &str, bytes: u64) -> Result<Self> {
        let place = tempfile::tempdir_in(directory).context("making a directory for a log")?;
        let this = Self { plumb: plumb.to_owned(), place, server: None };
        let mut command = this.command();
        command.args(["create", "--name", NAME, "--backing", backing, "--log"]);
        command.arg(this.place.path().join("log"));
        process::captured(command.args(["--size", &bytes.to_string()]), &[0])?;
        Ok(this)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.plumb);
        command
            .arg("cache")
            .env("STATE_DIRECTORY", self.place.path())
            .env("XDG_RUNTIME_DIR", self.place.path());
        command
    }

    /// Serves the cache over NBD. Returns the time until it served.
    pub(super) fn serve(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let mut command = self.command();
        command.args(["serve", NAME, "--json", "--nbd"]).arg(self.place.path().join("nbd"));
        self.server = Some(RunningProcess::announced(&mut command)?.0);
        Ok(began.elapsed())
    }

    /// Kills the server.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.server.take().map_or(Ok(()), RunningProcess::kill)
    }

    pub(super) fn uri(&self) -> String {
        uri(&self.place.path().join("nbd"))
    }

    pub(super) fn status(&self) -> Result<Value> {
        process::document(self.command().args(["status", NAME, "--json"]))
    }

    /// Destages everything.
    pub(super) fn drain(&self) -> Result<()> {
        process::captured(self.command().args(["drain", NAME, "--json"]), &[0]).map(drop)
    }
}
