//! Tests of the workspace, compiled once, by clippy.
//!
//! `cargo clippy` checks the crates of the workspace without generating code, and `cargo test` then compiles
//! them all again. Here cargo calls clippy's driver in place of the compiler for the crates of the workspace,
//! so that one pass does both. The dependencies are compiled as usual.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;

/// Test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// Crate, with the name of the program if it has several: `plumb-sim`, `plumb-sim/all`.
    pub(super) name: String,
    /// Path of the program.
    pub(super) path: PathBuf,
    /// Working directory: the directory of its crate.
    pub(super) directory: PathBuf,
}

/// Results of the build.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// Programs with tests.
    pub(super) programs: Vec<TestProgram>,
    /// plumb binary that the tests start.
    pub(super) plumb: Option<PathBuf>,
    /// Number of warnings of clippy and the compiler; errors have stopped the build.
    pub(super) complaints: usize,
    /// True if everything was built.
    pub(super) succeeded: bool,
}

/// Compiles all tests, and everything that they start.
///
/// # Errors
/// If cargo cannot be started, or its output cannot be read. Compile errors are counted instead.
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

/// Runs the tests in documentation comments with the artifacts of [`build`]. Returns true if all passed.
///
/// # Errors
/// If cargo cannot be started.
pub(super) fn documentation_tests_pass(root: &Path) -> Result<bool> {
    let mut command = cargo(root)?;
    command.args(["test", "--workspace", "--doc", "--all-features", "--quiet"]);
    Ok(command.status().context("starting cargo test")?.success())
}

/// Returns the cargo command with the settings for all tests.
fn cargo(root: &Path) -> Result<Command> {
    let mut command = Command::new("cargo");
    command
        .env("RUSTC_WORKSPACE_WRAPPER", clippy_driver()?)
        // `cargo clippy` passes this variable to its driver in the same way.
        .env("CLIPPY_ARGS", "")
        // Incremental data, which would speed up the next build, is more than half of the output: 2.1 of 4.0
        // GB.
        .env("CARGO_INCREMENTAL", "0")
        // Codegen units compile the same generic code repeatedly: with 4 instead of 16 a crate compiles in
        // two thirds of the time. Incremental builds of developers profit from many.
        .env("CARGO_PROFILE_DEV_CODEGEN_UNITS", "4")
        // A failed test prints its line without debug information.
        .env("CARGO_PROFILE_DEV_DEBUG", "none")
        .current_dir(root);
    Ok(command)
}

/// Returns the driver next to the compiler of this toolchain.
fn clippy_driver() -> Result<PathBuf> {
    let sysroot = process::text(Command::new("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    ensure!(driver.is_file(), "there is no {}: `rustup component add clippy`", driver.display());
    Ok(driver)
}

impl Built {
    /// Handles a message of cargo about the compilation, a line of JSON.
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

/// Returns true if cargo reports this kind for a target.
fn is_of_kind(target: &Value, kind: &str) -> bool {
    target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|known| known == kind))
}

/// Returns the test program of an artifact; `None` for examples, which have no tests.
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
