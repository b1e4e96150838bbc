//! The processors of this machine: kept awake, and watched for what others do on them.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::running::RunningProcess;

/// Loops that run wherever a processor would sleep, and make way for everything else at once.
///
/// A processor that sleeps is woken late, a virtual one when its hypervisor sees fit: by anything from 30 us
/// to milliseconds, which differs from second to second and so cannot be subtracted.
pub(super) struct KeptAwake {
    _loops: Vec<RunningProcess>,
}

impl KeptAwake {
    /// Keeps all of them awake until it is dropped.
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

/// Time of the processors so far, in ticks.
#[derive(Clone, Copy)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
    /// By any program.
    busy: u64,
    /// By this program and those that it has started and that have ended.
    ours: u64,
}

impl Ticks {
    /// Until now.
    pub(super) fn read() -> Result<Self> {
        let machine = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        let first = machine.lines().next().context("/proc/stat is empty")?;
        let spent: Vec<u64> = first.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
        let [_, _, _, idle, waiting, _, _, stolen] = spent[..] else {
            anyhow::bail!("/proc/stat begins with `{first}`: expected eight times of all processors");
        };
        let all: u64 = spent.iter().sum();
        let process = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
        // The name of the program, in parentheses, may have anything in it.
        let behind = process.rsplit(')').next().unwrap_or_default();
        let ours = behind.split_whitespace().skip(11).take(4).flat_map(str::parse::<u64>).sum();
        Ok(Self { all, stolen, busy: all - idle - waiting - stolen, ours })
    }

    /// Returns what happened since `before`, in percent of all processors: by other programs, and by the
    /// hypervisor.
    pub(super) fn disturbance(self, before: Self) -> (f64, f64) {
        let percent = |ticks: u64| 100.0 * ticks as f64 / (self.all - before.all).max(1) as f64;
        let others = (self.busy - before.busy).saturating_sub(self.ours - before.ours);
        (percent(others), percent(self.stolen - before.stolen))
    }
}
