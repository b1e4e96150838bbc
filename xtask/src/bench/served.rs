//! Servers that a bench starts and ends: own simulated drives, and those of peers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::running::RunningProcess;

/// Number of drives started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Way in which a drive is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// NBD on a unix socket.
    Nbd,
    /// Block device of this machine.
    Attach,
}

/// Simulated drive in real time, ended on drop.
pub(super) struct ServedDrive {
    _server: RunningProcess,
    /// Directory of the drive's control socket and its NBD socket.
    place: TempDir,
    answer: Value,
}

impl ServedDrive {
    /// Serves a drive of `model`.
    pub(super) fn start(plumb: &Path, model: &str, size: &str, way: Way) -> Result<Self> {
        let place = tempfile::tempdir().context("making a directory for sockets")?;
        let socket = place.path().join("nbd");
        let mut command = Command::new(plumb);
        command.args(["drive", "serve", model, "--json", "--seed", SEED, "--size", size]);
        // All drives of a machine share directories, so their names must differ.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        command.args(["--name", &format!("bench-{}-{number}", std::process::id())]);
        match way {
            Way::Nbd => command.arg("--nbd").arg(&socket),
            Way::Attach => command.arg("--attach"),
        };
        command.env("XDG_RUNTIME_DIR", place.path());
        let (server, answer) = RunningProcess::announced(&mut command)?;
        Ok(Self { _server: server, place, answer })
    }

    /// Returns the block device of an attached drive.
    pub(super) fn device(&self) -> Result<PathBuf> {
        let device = self.answer["device"].as_str().context("the drive is attached as no device")?;
        Ok(device.into())
    }

    /// Returns the name of the export as a target of plumb.
    pub(super) fn uri(&self) -> String {
        uri(&self.place.path().join("nbd"))
    }
}

/// Seed of every drive and of every load on it.
pub(super) const SEED: &str = "7";

/// Returns the URI of an export on a unix socket.
pub(super) fn uri(socket: &Path) -> String {
    format!("nbd+unix:///?socket={}", socket.display())
}

/// Peer that serves over NBD, ended on drop.
pub(super) struct Peer {
    _server: RunningProcess,
    place: TempDir,
}

impl Peer {
    /// Starts the peer by the command that `command` returns for the socket to listen on, which is in
    /// `place`.
    pub(super) fn start(place: TempDir, command: impl FnOnce(&Path) -> Command) -> Result<Self> {
        let socket = place.path().join("nbd");
        Ok(Self { _server: RunningProcess::listening(&mut command(&socket), &socket)?, place })
    }

    pub(super) fn uri(&self) -> String {
        uri(&self.place.path().join("nbd"))
    }
}
