//! Other NBD servers, each on its own socket, until the test is over.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Program {
    child: Child,
    pub(crate) socket: PathBuf,
    _directory: Option<tempfile::TempDir>,
}

/// Returns true if a program is installed; prints a message if not.
pub(crate) fn is_installed(name: &str) -> bool {
    let found = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        plumb_testkit::skip(&format!("{name} is not installed"));
    }
    found.is_ok()
}

impl Program {
    pub(crate) fn nbdkit(arguments: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let mut program = Self::nbdkit_at(&socket, arguments)?;
        program._directory = Some(directory);
        Some(program)
    }

    /// Starts nbdkit on a socket that outlives the server.
    pub(crate) fn nbdkit_at(socket: &Path, arguments: &[&str]) -> Option<Self> {
        if !is_installed("nbdkit") {
            return None;
        }
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--exit-with-parent", "--unix"]).arg(socket).args(arguments);
        Some(Self::start(command, socket.to_owned()))
    }

    pub(crate) fn qemu_nbd(arguments: &[&str]) -> Option<Self> {
        if !is_installed("qemu-nbd") {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let mut command = Command::new("qemu-nbd");
        command.args(["--persistent", "--socket"]).arg(&socket).args(arguments);
        let mut program = Self::start(command, socket);
        program._directory = Some(directory);
        Some(program)
    }

    fn start(mut command: Command, socket: PathBuf) -> Self {
        // A killed server leaves its socket behind.
        std::fs::remove_file(&socket).ok();
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut program = Self { child, socket, _directory: None };
        let until = Instant::now() + Duration::from_secs(600);
        while std::os::unix::net::UnixStream::connect(&program.socket).is_err() {
            let ended = program.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < until, "{command:?} does not listen: {ended:?}");
            std::thread::yield_now();
        }
        program
    }

    pub(crate) fn uri(&self, parameters: &str) -> String {
        format!("nbd+unix:///?socket={}{parameters}", self.socket.display())
    }

    /// Kills the server, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
