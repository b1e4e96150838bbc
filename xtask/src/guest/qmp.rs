//! QEMU's control protocol, for two purposes: to read the counters of each emulated drive, and to unplug a
//! drive.
//!
//! The protocol runs over QEMU's standard input and output, so there is no socket to connect to or to remove,
//! and the end of QEMU shows as the end of its output. A message is one line of JSON. Answers come in the
//! order of the commands; events between them are ignored here.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Time limit for an answer of QEMU, which may be slow under emulation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Counters of one emulated drive since power-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriveCounters {
    /// Flush commands.
    pub flushes: u64,
    /// Write commands.
    pub writes: u64,
    /// True if the volatile write cache is enabled now.
    pub write_cache: bool,
}

/// Formats the counters in the form that the guest reads.
impl fmt::Display for DriveCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = if self.write_cache { "on" } else { "off" };
        writeln!(f, "{} {} {cache}", self.flushes, self.writes)
    }
}

/// Counters of all drives at one moment, by QEMU's name of the drive.
pub(crate) type Sample = BTreeMap<String, DriveCounters>;

/// Connection after greeting and negotiation.
#[derive(Debug)]
pub(crate) struct Qmp {
    commands: ChildStdin,
    answers: Receiver<String>,
}

impl Qmp {
    /// Waits for the greeting and enters command mode. On return QEMU has also connected all its sockets.
    ///
    /// # Errors
    /// If QEMU ends or is silent.
    pub(crate) fn negotiate(commands: ChildStdin, output: ChildStdout) -> Result<Self> {
        let (sender, answers) = channel();
        // The thread ends with QEMU's output, or when the receiver is gone.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut qmp = Self { commands, answers };
        qmp.next_message().context("waiting for QEMU's greeting")?;
        qmp.execute("qmp_capabilities")?;
        Ok(qmp)
    }

    /// Returns the current counters of all drives.
    ///
    /// # Errors
    /// If QEMU ends, is silent, or gives another answer.
    pub(crate) fn sample(&mut self) -> Result<Sample> {
        let stats = self.execute("query-blockstats")?;
        let blocks = self.execute("query-block")?;
        counters(&stats, &blocks)
    }

    /// Asks the guest to release the device with this ID, which is gone once the guest has.
    ///
    /// # Errors
    /// If QEMU ends, is silent, or knows no such device.
    pub(crate) fn unplug(&mut self, id: &str) -> Result<()> {
        self.send("device_del", &json!({ "execute": "device_del", "arguments": { "id": id } })).map(drop)
    }

    /// Runs a command without arguments and returns its result.
    fn execute(&mut self, command: &str) -> Result<Value> {
        self.send(command, &json!({ "execute": command }))
    }

    fn send(&mut self, command: &str, message: &Value) -> Result<Value> {
        writeln!(self.commands, "{message}")
            .and_then(|()| self.commands.flush())
            .with_context(|| format!("sending {command} to QEMU"))?;
        loop {
            let mut message =
                self.next_message().with_context(|| format!("waiting for the answer to {command}"))?;
            if let Some(error) = message.get("error") {
                bail!("QEMU refused {command}: {error}");
            }
            if let Some(answer) = message.get_mut("return") {
                return Ok(answer.take());
            }
        }
    }

    fn next_message(&self) -> Result<Value> {
        let line = self.answers.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => anyhow::anyhow!("QEMU was silent for {} s", PATIENCE.as_secs()),
            RecvTimeoutError::Disconnected => anyhow::anyhow!("QEMU ended"),
        })?;
        serde_json::from_str(&line).with_context(|| format!("QEMU said something that is not JSON: {line}"))
    }
}

/// Joins the answers of query-blockstats and query-block. Drives without a medium are left out.
fn counters(stats: &Value, blocks: &Value) -> Result<Sample> {
    let blocks = blocks.as_array().context("reading query-block")?;
    let mut sample = Sample::new();
    for device in stats.as_array().context("reading query-blockstats")? {
        let name = device["device"].as_str().context("a drive has no name")?;
        let block = blocks.iter().find(|block| block["device"] == name);
        let Some(write_cache) = block.and_then(|block| block["inserted"]["cache"]["writeback"].as_bool())
        else {
            continue;
        };
        let count =
            |field: &str| device["stats"][field].as_u64().with_context(|| format!("{name} has no {field}"));
        let (flushes, writes) = (count("flush_operations")?, count("wr_operations")?);
        sample.insert(name.to_owned(), DriveCounters { flushes, writes, write_cache });
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_qemu_are_joined() {
        let stats = json!([
            {"device": "a", "qdev": "/machine/x", "stats": {"flush_operations": 7, "wr_operations": 9, "rd_bytes": 1}},
            {"device": "", "stats": {"flush_operations": 1, "wr_operations": 1}}
        ]);
        let blocks = json!([
            {"device": "a", "inserted": {"cache": {"writeback": true, "direct": false}}},
            {"device": "empty"}
        ]);
        let sample = counters(&stats, &blocks).unwrap();
        let expected = DriveCounters { flushes: 7, writes: 9, write_cache: true };
        assert_eq!(sample, Sample::from([("a".to_owned(), expected)]));
    }

    #[test]
    fn another_shape_is_an_error() {
        assert!(counters(&json!({"device": 1}), &json!([])).is_err());
    }
}
