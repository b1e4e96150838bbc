//! Support for tests of caches: a cache over files in a directory of its own, and its server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{document, plumb, said, scratch};
use crate::drive_support::{Kind, LoopBinding, MountedFileSystem, cannot_attach, name, served};

/// Arguments of a cache that does not destage by itself, however long its server waits for the test. By
/// default it starts after a second.
pub(crate) const SLEEPS: [&str; 2] = ["--write-back-at", "40"];

/// Directory with a backing file, a log and the configurations of caches.
pub(crate) struct Place {
    pub(crate) here: TempDir,
    pub(crate) name: String,
}

impl Place {
    /// Creates a place with a backing file of `size`.
    pub(crate) fn new(size: u64) -> Self {
        let here = scratch();
        let backing = std::fs::File::create(here.path().join("backing")).unwrap();
        backing.set_len(size).unwrap();
        Self { here, name: name() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.here.path().join(name)
    }

    /// Returns a `plumb` command that finds the caches of this place.
    pub(crate) fn plumb(&self) -> Command {
        let mut command = plumb();
        command.current_dir(self.here.path()).env("STATE_DIRECTORY", self.here.path());
        command
    }

    /// Returns the output of `plumb cache ARGUMENTS --json`.
    pub(crate) fn try_cache(&self, arguments: &[&str]) -> Output {
        self.plumb().arg("cache").args(arguments).arg("--json").output().unwrap()
    }

    /// Runs `plumb cache ARGUMENTS --json`, which must succeed, and returns its document.
    pub(crate) fn cache(&self, arguments: &[&str]) -> Value {
        let output = self.try_cache(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        document(&output)
    }

    /// Keeps written data only in the log.
    pub(crate) fn put_to_sleep(&self) {
        self.cache(&[&["tune", &*self.name], &SLEEPS[..]].concat());
    }

    /// Creates the cache, with further arguments.
    pub(crate) fn create(&self, arguments: &[&str]) -> Value {
        let fixed = ["create", "--name", &self.name, "--backing", "backing", "--log", "log", "--size", "64M"];
        self.cache(&[&fixed, arguments].concat())
    }

    /// Stops the cache, which must end its server well.
    pub(crate) fn stop(&self, server: Server) {
        self.cache(&["stop", &self.name]);
        assert_eq!(server.wait(), Some(0));
    }

    /// Serves the cache over NBD, and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        self.serve_as(&["--nbd", "socket"])
    }

    /// Serves the cache with these exports, and waits until it is ready.
    pub(crate) fn serve_as(&self, way: &[&str]) -> Server {
        self.serve_named(&self.name, way)
    }

    /// Serves another cache of this place, and waits until it is ready.
    pub(crate) fn serve_named(&self, name: &str, way: &[&str]) -> Server {
        let (document, child) = served(self.plumb().args(["cache", "serve", name, "--json"]).args(way));
        Server { document, child }
    }
}

/// Returns a cache that is served as a block device, with a new ext4 mounted at a directory; `None` where
/// that is impossible, which is reported.
pub(crate) fn served_mounted() -> Option<(Place, Server, TempDir, MountedFileSystem)> {
    if let Some(why) = cannot_attach(&["mkfs.ext4"]) {
        plumb_testkit::skip(&why);
        return None;
    }
    let place = Place::new(64 << 20);
    place.create(&[]);
    let server = place.serve_as(&["--attach"]);
    Kind::Ext4.make(server.device());
    let at = tempfile::tempdir().unwrap();
    let mounted = MountedFileSystem::new(Kind::Ext4, server.device(), at.path()).unwrap();
    Some((place, server, at, mounted))
}

/// Runs `plumb cache ARGUMENTS`, which must end with `code` and print all of `words`.
pub(crate) fn refused(place: &Place, arguments: &[&str], code: i32, words: &[&str]) {
    let output = place.try_cache(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    for word in words {
        assert!(text.contains(word), "{arguments:?} does not say `{word}`: {text}");
    }
}

/// Loop device over a file; detached on drop.
pub(crate) struct AttachedLoop(pub(crate) String, LoopBinding);

impl AttachedLoop {
    /// Creates one; `None` if this machine provides none, which is reported.
    pub(crate) fn over(file: &Path) -> Option<Self> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        match output {
            Ok(output) if output.status.success() => {
                Some(Self::bound(String::from_utf8(output.stdout).unwrap().trim()))
            }
            _ => {
                plumb_testkit::skip("no loop device");
                None
            }
        }
    }

    /// Binds this device to the file; `None` if another program has taken it, which is reported.
    pub(crate) fn at(device: &str, file: &Path) -> Option<Self> {
        if !Command::new("losetup").arg(device).arg(file).status().unwrap().success() {
            plumb_testkit::skip(&format!("another program has taken {device}"));
            return None;
        }
        Some(Self::bound(device))
    }

    fn bound(device: &str) -> Self {
        Self(device.to_owned(), LoopBinding::read(device).unwrap())
    }

    pub(crate) fn losetup(&self, option: &str) {
        assert!(Command::new("losetup").args([option, &self.0]).status().unwrap().success());
    }
}

impl Drop for AttachedLoop {
    fn drop(&mut self) {
        if self.1.is_there() {
            Command::new("losetup").args(["--detach", &self.0]).status().ok();
        }
    }
}

/// Process of `plumb cache serve`; killed on drop.
pub(crate) struct Server {
    pub(crate) document: Value,
    child: Child,
}

impl Server {
    /// Returns the URI of the export.
    pub(crate) fn uri(&self) -> String {
        self.document["nbd"].as_str().unwrap().to_owned()
    }

    /// Returns the block device of an attached cache.
    pub(crate) fn device(&self) -> &str {
        self.document["device"].as_str().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGTERM, as systemd does.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGTERM repeatedly until the server prints these words.
    pub(crate) fn terminate_until(&mut self, words: &str) {
        let said = BufReader::new(self.child.stderr.take().unwrap()).lines();
        let (tell, told) = channel();
        std::thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        loop {
            self.terminate();
            match told.recv_timeout(Duration::from_millis(100)) {
                Ok(line) if line.contains(words) => return,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("it ended, and never said `{words}`"),
            }
        }
    }

    /// Waits until the server has ended by itself, and returns its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Kills the server.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}
