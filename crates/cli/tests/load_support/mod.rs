//! Support for tests of `plumb load` and the dialects: places to run in, documents checked against their
//! schemas, and mounts.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

pub(crate) use plumb_testkit::loop_device::LoopDevice;
pub(crate) use plumb_testkit::program::run as system;
use serde_json::Value;
use tempfile::TempDir;

use super::common::{document, holds, own_words, plumb, said, scratch};

/// Directory to run in, with another one for recordings, so that leftovers are visible.
pub(crate) struct Place {
    pub(crate) here: TempDir,
    runs: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { here: scratch(), runs: scratch() }
    }

    /// Returns the directory of the recording of a run.
    pub(crate) fn run_directory(&self) -> PathBuf {
        self.runs.path().join("run")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.here.path().join(name)
    }

    /// Returns a plumb command that runs a load, typed with spaces between words. Its recording replaces the
    /// previous one.
    pub(crate) fn command(&self, typed: &str) -> Command {
        let mut command = plumb();
        let mut words = typed.split_whitespace();
        command.args(words.next()).arg("--replace").arg("--out").arg(self.run_directory()).args(words);
        command.current_dir(self.here.path());
        command
    }

    pub(crate) fn run(&self, typed: &str) -> Output {
        self.command(typed).output().unwrap()
    }

    /// Runs a load with `--json`, checks its document against the schema, and returns it. The load must end
    /// with `code`. In place of 0 it may end with 1 if there is a warning, since a busy machine causes some.
    pub(crate) fn json(&self, typed: &str, code: i32) -> Value {
        let (command, rest) = typed.split_once(' ').unwrap();
        let output = self.run(&format!("{command} --json {rest}"));
        let document = document(&output);
        let code = if code == 0 && document["level"] == "warning" { 1 } else { code };
        assert_eq!(output.status.code(), Some(code), "{typed}: {}", said(&output));
        holds("load", &document);
        document
    }

    /// Returns the path of a disk image beside the place.
    pub(crate) fn run_image(&self) -> PathBuf {
        let image = self.runs.path().join("image");
        std::fs::write(&image, vec![0; 1 << 20]).unwrap();
        image
    }

    /// Creates a file with `bytes` of noise that has no mark of plumb, and returns its contents.
    pub(crate) fn foreign(&self, name: &str, bytes: usize) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        let mut state = 0x9e37_79b9_u32;
        for byte in &mut noise {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        std::fs::write(self.path(name), &noise).unwrap();
        noise
    }
}

/// Returns stderr.
pub(crate) fn stderr(output: &Output) -> String {
    own_words(&output.stderr)
}

/// Starts a command with pipes for its output.
pub(crate) fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads the progress until it has `phase`. The caller must keep the reader, because dropping it closes the
/// pipe.
pub(crate) fn wait_for(phase: &str, child: &mut Child) -> BufReader<ChildStderr> {
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 {
        if line.contains(phase) {
            return lines;
        }
        line.clear();
    }
    panic!("it ended before {phase}");
}

/// Mounted file system; unmounted on drop.
pub(crate) struct MountedFileSystem {
    pub(crate) at: PathBuf,
    _device: Option<LoopDevice>,
}

impl MountedFileSystem {
    /// Creates an ext4 with `features` on `image`, and mounts it with `option`; `None` if that fails, which
    /// is reported.
    pub(crate) fn ext4(image: &Path, at: PathBuf, features: &[&str], option: &str) -> Option<Self> {
        let device = LoopDevice::over(image, &[])?;
        std::fs::create_dir(&at).unwrap();
        let mounted = system("mkfs.ext4", &[&["-q"], features, &[&device.path]].concat())
            .and_then(|_| system("mount", &["-o", option, &device.path, at.to_str().unwrap()]));
        Self::if_mounted(mounted, at, Some(device))
    }

    /// Mounts a tmpfs of this size, in the syntax of `size=` in tmpfs(5); `None` if that fails, which is
    /// reported.
    pub(crate) fn tmpfs(at: PathBuf, size: &str) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let option = format!("size={size}");
        let mounted = system("mount", &["-t", "tmpfs", "-o", &option, "none", at.to_str().unwrap()]);
        Self::if_mounted(mounted, at, None)
    }

    fn if_mounted(mounted: Result<String, String>, at: PathBuf, device: Option<LoopDevice>) -> Option<Self> {
        match mounted {
            Ok(_) => Some(Self { at, _device: device }),
            Err(reason) => {
                plumb_testkit::skip(&reason);
                None
            }
        }
    }
}

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        if let Err(reason) = system("umount", &[self.at.to_str().unwrap()]) {
            eprintln!("{} stays mounted: {reason}", self.at.display());
        }
    }
}

/// Memory disk that nothing else uses, so that its counters count only the test's I/O.
pub(crate) struct Zram {
    pub(crate) path: String,
    number: String,
}

impl Zram {
    /// Creates a disk of `bytes`; `None` if this machine provides none.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add").ok()?.trim().to_owned();
        // Another program may have taken the device already, so it is not ours to remove.
        std::fs::write(format!("/sys/block/zram{number}/disksize"), bytes.to_string()).ok()?;
        let disk = Self { path: format!("/dev/zram{number}"), number };
        Path::new(&disk.path).exists().then_some(disk)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let reset = std::fs::write(format!("/sys/block/zram{}/reset", self.number), "1");
        let removed = std::fs::write("/sys/class/zram-control/hot_remove", &self.number);
        if let Err(error) = reset.and(removed) {
            eprintln!("{} is left behind: {error}", self.path);
        }
    }
}
