//! The tests of the workspace, compiled once: by clippy, which is a compiler that says more.
//!
//! `cargo clippy` checks the crates of the workspace without making code, and `cargo test` then compiles them all again. Here
//! cargo is told to call clippy's driver in the compiler's place for our own crates, so that one pass does both. The
//! dependencies are compiled as ever.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A program of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// The crate, and which program of it: `plumb-sim`, `plumb-sim/all`.
    pub(super) name: String,
    /// The program.
    pub(super) path: PathBuf,
    /// Where it is started: the directory of its crate.
    pub(super) directory: PathBuf,
}

/// What was built.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// Everything that holds tests.
    pub(super) programs: Vec<TestProgram>,
    /// The plumb that the tests start.
    pub(super) plumb: Option<PathBuf>,
    /// What clippy and the compiler have to say; the errors have stopped the build.
    pub(super) complaints: usize,
    /// Whether all of it was built.
    pub(super) succeeded: bool,
}

/// What cargo says of a compilation, a line of JSON each.
#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-artifact")]
    Made(Artifact),
    #[serde(rename = "compiler-message")]
    Said { message: Complaint },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    package_id: String,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Complaint {
    rendered: Option<String>,
    level: String,
}

/// Compiles all tests, and everything that they start.
///
/// # Errors
/// When cargo cannot be started, or says what cannot be read. What does not compile is counted instead.
pub(super) fn build(root: &Path) -> Result<Built> {
    let mut command = Command::new("cargo");
    command
        .args(["build", "--workspace", "--all-targets", "--all-features", "--keep-going"])
        .arg("--message-format=json")
        .env("RUSTC_WORKSPACE_WRAPPER", clippy_driver()?)
        // What `cargo clippy` hands to it in the same way.
        .env("CLIPPY_ARGS", "")
        .current_dir(root);
    let mut child = command.stdout(Stdio::piped()).spawn().context("starting cargo build")?;
    let output = child.stdout.take().context("cargo build has no output")?;
    let mut built = Built::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("reading from cargo build")?;
        built.hear(serde_json::from_str(&line).with_context(|| format!("cargo build said {line}"))?);
    }
    built.succeeded = child.wait().context("waiting for cargo build")?.success();
    Ok(built)
}

/// The driver beside the compiler of this toolchain.
fn clippy_driver() -> Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("starting rustc")?;
    let sysroot = String::from_utf8(output.stdout).context("the name of the toolchain is not text")?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    ensure!(driver.is_file(), "there is no {}: `rustup component add clippy`", driver.display());
    Ok(driver)
}

impl Built {
    fn hear(&mut self, message: Message) {
        match message {
            Message::Made(artifact) => {
                if artifact.target.is("bin") && artifact.target.name == "plumb" && !artifact.profile.test {
                    self.plumb.clone_from(&artifact.executable);
                }
                self.programs.extend(artifact.program());
            }
            Message::Said { message } if ["warning", "error"].contains(&&*message.level) => {
                eprint!("{}", message.rendered.unwrap_or_default());
                self.complaints += 1;
            }
            Message::Said { .. } | Message::Other => {}
        }
    }
}

impl Target {
    /// Whether it is of that kind, by cargo's word.
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|known| known == kind)
    }
}

impl Artifact {
    /// The program of tests that this is; examples hold none.
    fn program(self) -> Option<TestProgram> {
        let path = self.executable.filter(|_| self.profile.test)?;
        let directory = self.manifest_path.parent()?.to_owned();
        if self.target.is("example") {
            return None;
        }
        let package = package_name(&self.package_id);
        let name = if self.target.is("test") {
            format!("{package}/{}", self.target.name)
        } else {
            package.to_owned()
        };
        Some(TestProgram { name, path, directory })
    }
}

/// The name in `path+file:///home/x/crates/sim#plumb-sim@0.1.0` or `path+file:///home/x/xtask#0.1.0`.
fn package_name(id: &str) -> &str {
    let (path, fragment) = id.rsplit_once('#').unwrap_or(("", id));
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(fragment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_told_from_the_rest() {
        let line = |kind: &str, test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": "path+file:///r/crates/sim#plumb-sim@0.1.0",
                "manifest_path": "/r/crates/sim/Cargo.toml", "target": {"kind": [kind], "name": "all"},
                "profile": {"test": test}, "executable": "/t/all-1",
            })
        };
        let mut built = Built::default();
        for value in [
            line("test", true),
            line("lib", true),
            line("bin", false),
            line("example", true),
            serde_json::json!({"reason": "compiler-message", "message": {"level": "warning", "rendered": ""}}),
            serde_json::json!({"reason": "build-finished", "success": true}),
        ] {
            built.hear(serde_json::from_value(value).unwrap());
        }
        let names: Vec<_> = built.programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["plumb-sim/all", "plumb-sim"]);
        assert_eq!(
            (built.complaints, built.programs[0].directory.as_path()),
            (1, Path::new("/r/crates/sim"))
        );
        assert_eq!(package_name("path+file:///r/xtask#0.1.0"), "xtask");
    }
}
