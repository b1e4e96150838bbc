//! Servers that a bench starts and ends: simulated drives of ours, and those of peers.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

/// How long a server may take until its socket is there.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How many drives have been started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// How a drive can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// NBD on a unix socket.
    Nbd,
    /// As a block device of this machine.
    Attach,
}

/// A simulated drive in real time, ended when dropped.
pub(super) struct ServedDrive {
    _server: Running,
    /// Its control socket and its NBD socket are in here.
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
        // All drives of a machine share directories, where names must differ.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        command.args(["--name", &format!("bench-{}-{number}", std::process::id())]);
        match way {
            Way::Nbd => command.arg("--nbd").arg(&socket),
            Way::Attach => command.arg("--attach"),
        };
        command.env("XDG_RUNTIME_DIR", place.path());
        let (server, answer) = Running::announced(&mut command)?;
        Ok(Self { _server: server, place, answer })
    }

    /// The socket of a drive that is served over NBD.
    pub(super) fn socket(&self) -> PathBuf {
        self.place.path().join("nbd")
    }

    /// The block device of a drive that is attached.
    pub(super) fn device(&self) -> Result<PathBuf> {
        let device = self.answer["device"].as_str().context("the drive is attached as no device")?;
        Ok(device.into())
    }

    /// What is served, as a target of plumb.
    pub(super) fn uri(&self) -> String {
        uri(&self.socket())
    }
}

/// The seed of every drive and of every load on it.
pub(super) const SEED: &str = "7";

/// The name of what is served on a unix socket.
pub(super) fn uri(socket: &Path) -> String {
    format!("nbd+unix:///?socket={}", socket.display())
}

/// nbdkit with one plugin, ended when dropped.
pub(super) struct Nbdkit {
    _server: Running,
    place: TempDir,
}

impl Nbdkit {
    /// Serves `plugin` of `size`.
    pub(super) fn start(plugin: &str, size: &str) -> Result<Self> {
        let place = tempfile::tempdir().context("making a directory for a socket")?;
        let socket = place.path().join("nbd");
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--unix"]).arg(&socket).args([plugin, &format!("size={size}")]);
        let server = Running::listening(&mut command, &socket)?;
        Ok(Self { _server: server, place })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.place.path().join("nbd")
    }
}

/// Waits until a server has made its socket.
fn wait_for(socket: &Path) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !socket.exists() {
        if Instant::now() > until {
            bail!("{} did not appear within {PATIENCE:?}", socket.display());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// A process that is asked to end, and waited for, when dropped.
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Starts it.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        Ok(Self { child })
    }

    /// Starts one that prints a document once it serves; that document.
    pub(super) fn announced(command: &mut Command) -> Result<(Self, Value)> {
        let mut server = Self::start(command.stdout(Stdio::piped()))?;
        // The pipe stays open for as long as it serves.
        let stdout = server.child.stdout.as_mut().context("its stdout")?;
        let first = serde_json::Deserializer::from_reader(stdout).into_iter().next();
        let answer = first.with_context(|| format!("{command:?} did not start"))?;
        Ok((server, answer.with_context(|| format!("reading what {command:?} printed"))?))
    }

    /// Starts one that is ready when it has made `socket`.
    pub(super) fn listening(command: &mut Command, socket: &Path) -> Result<Self> {
        let server = Self::start(command)?;
        wait_for(socket)?;
        Ok(server)
    }

    /// Kills it, as a crash does.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill().context("killing a server")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // With SIGTERM, so that it takes away what it has attached.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if !asked.is_ok_and(|status| status.success())
            && let Err(error) = self.child.kill()
        {
            eprintln!("process {} still runs: {error}", self.child.id());
        }
        if let Err(error) = self.child.wait() {
            eprintln!("process {}: {error}", self.child.id());
        }
    }
}
