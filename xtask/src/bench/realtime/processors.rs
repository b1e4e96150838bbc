//! Processors of this machine: kept awake, and monitored for other activity.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::running::RunningProcess;

/// Idle-priority loops that run wherever a processor would sleep.
///
/// A sleeping processor wakes late, a virtual one at the discretion of its hypervisor: after 30 us to some
/// milliseconds, which varies from second to second and so cannot be subtracted.
pub(super) struct KeptAwake {
    _loops: Vec<RunningProcess>,
}

impl KeptAwake {
    /// Keeps all processors awake until it is dropped.
    pub(super) fn start() -> Result<Self> {
        let count = std::thread::available_parallelism().context("counting processors")?.get();
        let start = |_| {
            let mut command = Command::new("chrt");
            command.args(["--idle", "0", "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
            RunningProcess::start(&mut command)
        };
        Ok(Self { _loops: (0..count).map(start).collect::<Result<_>>()? })
    }
}

/// Processor time so far, in ticks.
#[derive(Clone, Copy)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
    /// Time of all programs.
    busy: u64,
    /// Time of this program and of its children that have ended.
    ours: u64,
}

impl Ticks {
    /// Reads the current times.
    pub(super) fn read() -> Result<Self> {
        let machine = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        let first = machine.lines().next().context("/proc/stat is empty")?;
        let spent: Vec<u64> = first.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
        let [_, _, _, idle, waiting, _, _, stolen] = spent[..] else {
            anyhow::bail!("/proc/stat begins with `{first}`: expected eight times of all processors");
        };
        let all: u64 = spent.iter().sum();
        let process = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
        // The name of the program, in parentheses, may contain anything.
        let behind = process.rsplit(')').next().unwrap_or_default();
        let ours = behind.split_whitespace().skip(11).take(4).flat_map(str::parse::<u64>).sum();
        Ok(Self { all, stolen, busy: all - idle - waiting - stolen, ours })
    }

    /// Returns the activity since `before`, in percent of all processors: of other programs, and of the
    /// hypervisor.
    pub(super) fn disturbance(self, before: Self) -> (f64, f64) {
        let percent = |ticks: u64| 100.0 * ticks as f64 / (self.all - before.all).max(1) as f64;
        let others = (self.busy - before.busy).saturating_sub(self.ours - before.ours);
        (percent(others), percent(self.stolen - before.stolen))
    }
}
