//! NBD server compared with nbdkit: fio's nbd engine on a unix socket, one connection, in turn.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::fio::{self, Place};
use super::paired::{Case, compare};
use super::served::{Peer, ServedDrive, Way};
use crate::packages;

/// Size of the served drive.
const SIZE: &str = "256M";
/// Options of fio that set the time and the size of the blocks of each case.
const TIMED: &str = "--bs=4k --time_based --runtime=1.5";

const CASES: [Case; 4] = [
    ("randread  depth 32", "--rw=randread --iodepth=32", Some(1.3)),
    ("randwrite depth 32", "--rw=randwrite --iodepth=32", Some(1.3)),
    ("randread  depth 1", "--rw=randread --iodepth=1", Some(1.0)),
    ("randwrite depth 1", "--rw=randwrite --iodepth=1", Some(1.0)),
];

/// Prints the ratios for drives that discard all data and for drives in memory.
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
        let uris = [ours.uri(), theirs.uri()];
        let load = |uri: &str, words: &str| fio::rate(Place::Nbd(uri), &format!("--size={SIZE} {words}"));
        // Unwritten memory is answered without a read.
        for uri in &uris {
            load(uri, "--rw=write --bs=1M --iodepth=4")?;
        }
        compare(&format!("{kind:<6} "), &CASES, pairs, |words, side| {
            load(&uris[side.index()], &format!("{words} {TIMED}"))
        })?;
    }
    Ok(())
}
