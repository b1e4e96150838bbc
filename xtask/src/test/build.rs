//! The tests of the workspace, compiled once: by clippy, which is a compiler that says more.
//!
//! `cargo clippy` checks the crates of the workspace without making code, and `cargo test` then compiles them
//! all again. Here cargo is told to call clippy's driver in the compiler's place for our own crates, so that
//! one pass does both. The dependencies are compiled as ever.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;

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

/// Products of the build.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// Everything that holds tests.
    pub(super) programs: Vec<TestProgram>,
    /// The plumb that the tests start.
    pub(super) plumb: Option<PathBuf>,
    /// Number of complaints of clippy and the compiler; the errors have stopped the build.
    pub(super) complaints: usize,
    /// True if all of it was built.
    pub(super) succeeded: bool,
}

/// Compiles all tests, and everything that they start.
///
/// # Errors
/// When cargo cannot be started, or says what cannot be read. What does not compile is counted instead.
pub(super) fn build(root: &Path) -> Result<Built> {
    let mut command = cargo(root)?;
    command.args(["build", "--workspace", "--all-targets", "--all-features", "--keep-going"]);
    command.arg("--message-format=json");
    let mut child = command.stdout(Stdio::piped()).spawn().context("starting cargo build")?;
    let output = child.stdout.take().context("cargo build has no output")?;
    let mut built = Built::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("reading from cargo build")?;
        built.hear(&serde_json::from_str(&line).with_context(|| format!("cargo build said {line}"))?);
    }
    built.succeeded = child.wait().context("waiting for cargo build")?.success();
    Ok(built)
}

/// Runs the tests in documentation comments, over what [`build`] has compiled; returns true if all passed.
///
/// # Errors
/// When cargo cannot be started.
pub(super) fn documentation_tests_pass(root: &Path) -> Result<bool> {
    let mut command = cargo(root)?;
    command.args(["test", "--workspace", "--doc", "--all-features", "--quiet"]);
    Ok(command.status().context("starting cargo test")?.success())
}

/// Returns cargo with the settings with which all tests are compiled.
fn cargo(root: &Path) -> Result<Command> {
    let mut command = Command::new("cargo");
    command
        .env("RUSTC_WORKSPACE_WRAPPER", clippy_driver()?)
        // `cargo clippy` hands this variable to its driver in the same way.
        .env("CLIPPY_ARGS", "")
        // Incremental data, which would make the next build faster, is more than half of the output: 2.1 of
        // 4.0 GB.
        .env("CARGO_INCREMENTAL", "0")
        // Pieces of a crate compile the same generic code: of 4 in place of 16 a crate compiles in two thirds
        // of the time. A developer's crates keep many, of which few compile anew.
        .env("CARGO_PROFILE_DEV_CODEGEN_UNITS", "4")
        // A failed test names its line without it.
        .env("CARGO_PROFILE_DEV_DEBUG", "none")
        .current_dir(root);
    Ok(command)
}

/// Returns the driver beside the compiler of this toolchain.
fn clippy_driver() -> Result<PathBuf> {
    let sysroot = process::text(Command::new("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    ensure!(driver.is_file(), "there is no {}: `rustup component add clippy`", driver.display());
    Ok(driver)
}

impl Built {
    /// Takes in what cargo says of a compilation, a line of JSON each.
    fn hear(&mut self, message: &Value) {
        if message["reason"] == "compiler-artifact" {
            let target = &message["target"];
            let is_test = message["profile"]["test"] == true;
            if is_of_kind(target, "bin") && target["name"] == "plumb" && !is_test {
                self.plumb = message["executable"].as_str().map(PathBuf::from);
            }
            self.programs.extend(program(message).filter(|_| is_test));
        } else if message["reason"] == "compiler-message" {
            let complaint = &message["message"];
            if ["warning", "error"].iter().any(|level| complaint["level"] == *level) {
                eprint!("{}", complaint["rendered"].as_str().unwrap_or_default());
                self.complaints += 1;
            }
        }
    }
}

/// Returns true if a target is of that kind, by cargo's word.
fn is_of_kind(target: &Value, kind: &str) -> bool {
    target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|known| known == kind))
}

/// Returns the program that an artifact is; examples hold no tests.
fn program(artifact: &Value) -> Option<TestProgram> {
    let target = &artifact["target"];
    let path = artifact["executable"].as_str()?.into();
    let directory = Path::new(artifact["manifest_path"].as_str()?).parent()?.to_owned();
    let package = package_name(artifact["package_id"].as_str()?);
    let name = match target["name"].as_str()? {
        _ if is_of_kind(target, "example") => return None,
        name if is_of_kind(target, "test") => format!("{package}/{name}"),
        _ => package.to_owned(),
    };
    Some(TestProgram { name, path, directory })
}

/// Returns the name in `path+file:///home/x/crates/sim#plumb-sim@0.1.0` or `path+file:///home/x/xtask#0.1.0`.
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
            built.hear(&value);
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
