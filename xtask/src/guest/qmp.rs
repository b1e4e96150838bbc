//! QEMU's control protocol, for two purposes: to ask each emulated drive what it has received, and to pull
//! one out.
//!
//! The protocol runs over QEMU's standard input and output: nothing to connect to, nothing left behind, and
//! QEMU's end is seen as the end of its output. A message is one line of JSON; answers come in the order of
//! the commands, with events between them, which do not matter here.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long QEMU may take to answer. Under emulation on a busy machine it may be slow, but not for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// Counts of what one emulated drive has received since power-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriveCounters {
    /// Flush commands.
    pub flushes: u64,
    /// Write commands.
    pub writes: u64,
    /// True if its volatile write cache is on now.
    pub write_cache: bool,
}

/// Formats the counters as the guest reads them.
impl fmt::Display for DriveCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = if self.write_cache { "on" } else { "off" };
        writeln!(f, "{} {} {cache}", self.flushes, self.writes)
    }
}

/// The counters of all drives at one moment, by QEMU's name for the drive.
pub(crate) type Sample = BTreeMap<String, DriveCounters>;

/// A connection whose greeting and negotiation are done.
#[derive(Debug)]
pub(crate) struct Qmp {
    commands: ChildStdin,
    answers: Receiver<String>,
}

impl Qmp {
    /// Waits for the greeting and enters command mode. When this returns, QEMU has connected all its sockets
    /// too.
    ///
    /// # Errors
    /// When QEMU ends or is silent.
    pub(crate) fn negotiate(commands: ChildStdin, output: ChildStdout) -> Result<Self> {
        let (sender, answers) = channel();
        // Ends by itself: with QEMU's output, or when nobody listens any more.
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

    /// Returns the counters of all drives now.
    ///
    /// # Errors
    /// When QEMU ends, is silent, or answers something else.
    pub(crate) fn sample(&mut self) -> Result<Sample> {
        let stats = self.execute("query-blockstats")?;
        let blocks = self.execute("query-block")?;
        counters(&stats, &blocks)
    }

    /// Asks the guest to give the device with this id up; it is gone when the guest has.
    ///
    /// # Errors
    /// When QEMU ends, is silent, or knows no such device.
    pub(crate) fn unplug(&mut self, id: &str) -> Result<()> {
        self.send("device_del", &json!({ "execute": "device_del", "arguments": { "id": id } })).map(drop)
    }

    /// Runs a command without arguments and returns what it returns.
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
