//! The NBD server against nbdkit's: fio's nbd engine on a unix socket, one connection, in turn.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::fio;
use super::paired::Pairs;
use super::served::{Peer, ServedDrive, Way, uri};
use crate::packages;

/// The size of what is served.
const SIZE: &str = "256M";
/// How long fio runs each case.
const RUNTIME: &str = "--runtime=1.5";

/// Case of the bench: what fio does, and how many times nbdkit's rate is asked for.
struct Case {
    pattern: &'static str,
    depth: u32,
    bar: f64,
}

const CASES: [Case; 4] = [
    Case { pattern: "randread", depth: 32, bar: 1.3 },
    Case { pattern: "randwrite", depth: 32, bar: 1.3 },
    Case { pattern: "randread", depth: 1, bar: 1.0 },
    Case { pattern: "randwrite", depth: 1, bar: 1.0 },
];

/// Prints the ratios for drives that keep nothing and for drives in memory.
pub(super) fn run(plumb: &Path, pairs: usize) -> Result<()> {
    if !packages::are_there("fio nbdkit")? {
        return Ok(());
    }
    println!("4 KiB, IOPS; ratios of plumb to nbdkit and the interval of their median ({pairs} pairs)");
    for kind in ["null", "memory"] {
        let ours = ServedDrive::start(plumb, kind, "256MiB", Way::Nbd)?;
        let place = tempfile::tempdir().context("making a directory for a socket")?;
        let theirs = Peer::start(place, |socket| {
            let mut command = Command::new("nbdkit");
            command.args(["--foreground", "--unix"]).arg(socket).args([kind, &format!("size={SIZE}")]);
            command
        })?;
        let sockets = [ours.socket(), theirs.socket()];
        // Memory that was never written is answered from nothing.
        for socket in &sockets {
            load(socket, &["--rw=write", "--bs=1M", "--iodepth=4"])?;
        }
        let mut cases: Vec<Pairs> = CASES.iter().map(|_| Pairs::default()).collect();
        for pair in 1..=pairs {
            eprintln!("{kind}, pair {pair} of {pairs}");
            for (case, rates) in CASES.iter().zip(&mut cases) {
                rates.measure(|side| one(case, &sockets[side.index()]))?;
            }
        }
        for (case, rates) in CASES.iter().zip(&cases) {
            rates.print(&format!("{kind:<6} {:<9} depth {}", case.pattern, case.depth), case.bar);
        }
    }
    Ok(())
}

/// Measures one rate.
fn one(case: &Case, socket: &Path) -> Result<f64> {
    let pattern = format!("--rw={}", case.pattern);
    let depth = format!("--iodepth={}", case.depth);
    load(socket, &[&pattern, &depth, "--bs=4k", "--time_based", RUNTIME])
}

fn load(socket: &Path, options: &[&str]) -> Result<f64> {
    let place = [format!("--uri={}", uri(socket)), format!("--size={SIZE}")];
    let all = ["--ioengine=nbd"].iter().chain(options).map(|option| (*option).to_owned());
    fio::rate(&all.chain(place).collect::<Vec<_>>())
}
