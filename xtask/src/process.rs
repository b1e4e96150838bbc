//! Programs that a chore starts and waits for. A failure names the command, and what it said where that was
//! captured.

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Runs it to its end.
///
/// # Errors
/// When it cannot be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// Runs it to its end and returns what it prints.
///
/// # Errors
/// As [`run`]; when it is not text.
pub(crate) fn text(command: &mut Command) -> Result<String> {
    let printed = captured(command, &[0])?.stdout;
    String::from_utf8(printed).with_context(|| format!("what {command:?} printed is not text"))
}

/// The document that a plumb prints. One that has found something (exit 1) is as good as one that has not.
///
/// # Errors
/// As [`run`]; when it is no JSON.
pub(crate) fn document(command: &mut Command) -> Result<Value> {
    let printed = captured(command, &[0, 1])?.stdout;
    serde_json::from_slice(&printed).with_context(|| format!("reading what {command:?} printed"))
}

/// All that it says, if it ends with one of these codes.
///
/// # Errors
/// As [`run`].
pub(crate) fn captured(command: &mut Command, codes: &[i32]) -> Result<Output> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let ended = output.status.code().is_some_and(|code| codes.contains(&code));
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(ended, "{command:?}: {}: {}", output.status, said.trim());
    Ok(output)
}
