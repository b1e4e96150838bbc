//! Servers that a task starts and ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Time limit until the socket of a server exists.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of checks for the socket.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until a server has created its socket.
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

/// Process that is ended by SIGTERM and waited for on drop.
pub(crate) struct RunningProcess {
    child: Child,
}

impl RunningProcess {
    /// Starts the process.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        Ok(Self { child })
    }

    /// Starts a process that prints a document once it serves, and returns that document.
    pub(crate) fn announced(command: &mut Command) -> Result<(Self, Value)> {
        let mut server = Self::start(command.stdout(Stdio::piped()))?;
        // The pipe stays open as long as the server runs.
        let stdout = server.child.stdout.as_mut().context("its stdout")?;
        let first = serde_json::Deserializer::from_reader(stdout).into_iter().next();
        let answer = first.with_context(|| format!("{command:?} did not start"))?;
        Ok((server, answer.with_context(|| format!("reading what {command:?} printed"))?))
    }

    /// Starts a process that is ready once `socket` exists.
    pub(crate) fn listening(command: &mut Command, socket: &Path) -> Result<Self> {
        let server = Self::start(command)?;
        wait_for(socket)?;
        Ok(server)
    }

    /// Kills the process, as a crash would.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill().context("killing a server")
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // SIGTERM lets it detach everything that it has attached.
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
