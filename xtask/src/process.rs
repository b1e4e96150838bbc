//! Programs that a task starts and waits for. An error names the command, and its output if that was
//! captured.

use std::io::{Read as _, pipe};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Time that a test program may be silent. It reports the end of each test, so one that is silent for this
/// long hangs.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// Runs a command to its end.
///
/// # Errors
/// If it cannot be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// Runs a command to its end and returns its stdout.
///
/// # Errors
/// Those of [`run`], and output that is not text.
pub(crate) fn text(command: &mut Command) -> Result<String> {
    let printed = captured(command, &[0])?.stdout;
    String::from_utf8(printed).with_context(|| format!("what {command:?} printed is not text"))
}

/// Returns the document that plumb prints. A finding (exit 1) is not an error.
///
/// # Errors
/// Those of [`run`], and output that is not JSON.
pub(crate) fn document(command: &mut Command) -> Result<Value> {
    let printed = captured(command, &[0, 1])?.stdout;
    serde_json::from_slice(&printed).with_context(|| format!("reading what {command:?} printed"))
}

/// Returns the output of a command that ends with one of these codes.
///
/// # Errors
/// Those of [`run`].
pub(crate) fn captured(command: &mut Command, codes: &[i32]) -> Result<Output> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let ended = output.status.code().is_some_and(|code| codes.contains(&code));
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(ended, "{command:?}: {}: {}", output.status, said.trim());
    Ok(output)
}

/// Runs a test program to its end and returns its stdout and stderr in the order of arrival. A program that
/// is silent for [`SILENCE`] is killed, which is noted at the end of the text.
///
/// # Errors
/// If it cannot be started, or waited for.
pub(crate) fn run_unless_it_hangs(command: Command) -> Result<(ExitStatus, String)> {
    run_unless_silent_for(SILENCE, command)
}

fn run_unless_silent_for(silence: Duration, mut command: Command) -> Result<(ExitStatus, String)> {
    let (mut reader, writer) = pipe().context("making a pipe")?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().context("sharing a pipe")?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    // The pipe ends with the last process that can write to it.
    drop(command);
    let (pieces, heard) = mpsc::channel();
    // The reader is not joined: processes started by a killed program may keep the pipe open.
    std::thread::spawn(move || {
        let mut piece = vec![0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut piece)
            && pieces.send(piece[..length].to_vec()).is_ok()
        {}
    });
    let mut said = Vec::new();
    loop {
        match heard.recv_timeout(silence) {
            Ok(piece) => said.extend(piece),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                child.kill().context("killing what hangs")?;
                said.extend(format!("\nkilled: it said nothing for {} s\n", silence.as_secs()).bytes());
                break;
            }
        }
    }
    let status = child.wait().context("waiting for what was run")?;
    Ok((status, String::from_utf8_lossy(&said).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_says_no_more_is_killed_and_what_it_said_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; printf two >&2; exec sleep 1000"]);
        let (status, said) = run_unless_silent_for(Duration::from_secs(5), command).unwrap();
        assert!(!status.success());
        assert_eq!(said, "one\ntwo\nkilled: it said nothing for 5 s\n");
    }
}
