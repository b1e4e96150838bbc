//! What the tests of caches share: a cache over files in a directory of its own, and its server.

use std::path::PathBuf;
use std::process::{Child, Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{document, plumb, said, scratch};
use crate::drive_support::{name, served};

/// A directory with a backing file, a log and the configuration of caches.
pub(crate) struct Place {
    pub(crate) here: TempDir,
    pub(crate) name: String,
}

impl Place {
    /// With a backing file of `size`.
    pub(crate) fn new(size: u64) -> Self {
        let here = scratch();
        let backing = std::fs::File::create(here.path().join("backing")).unwrap();
        backing.set_len(size).unwrap();
        Self { here, name: name() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.here.path().join(name)
    }

    /// `plumb` as it finds the caches of this place.
    pub(crate) fn plumb(&self) -> Command {
        let mut command = plumb();
        command.current_dir(self.here.path()).env("STATE_DIRECTORY", self.here.path());
        command
    }

    /// `plumb cache ARGUMENTS --json`, as it comes.
    pub(crate) fn try_cache(&self, arguments: &[&str]) -> Output {
        self.plumb().arg("cache").args(arguments).arg("--json").output().unwrap()
    }

    /// The same, which must be done; its document.
    pub(crate) fn cache(&self, arguments: &[&str]) -> Value {
        let output = self.try_cache(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        document(&output)
    }

    /// Makes the cache, with more arguments.
    pub(crate) fn create(&self, arguments: &[&str]) -> Value {
        let fixed = ["create", "--name", &self.name, "--backing", "backing", "--log", "log", "--size", "64M"];
        self.cache(&[&fixed, arguments].concat())
    }

    /// Serves it over NBD, and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        let arguments = ["cache", "serve", &self.name, "--nbd", "socket", "--json"];
        let (document, child) = served(self.plumb().args(arguments));
        Server { document, child }
    }
}

/// A `plumb cache serve`. Dropped, it is killed.
pub(crate) struct Server {
    pub(crate) document: Value,
    child: Child,
}

impl Server {
    /// The URI of its export.
    pub(crate) fn uri(&self) -> String {
        self.document["nbd"].as_str().unwrap().to_owned()
    }

    /// Waits until it has ended by itself; its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Kills it as a crash would.
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
