//! Results of plumb and fio for a run, in the same figures.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub iops: f64,
    /// Seconds of the loading thread's processor time for a million operations, apart for user and system.
    pub user: f64,
    pub system: f64,
}

impl Figures {
    pub(super) fn cpu(self) -> f64 {
        self.user + self.system
    }
}

/// Returns the document that `plumb load --json` prints with these arguments, run in a directory that is
/// removed.
pub(super) fn plumb_load(plumb: &Path, arguments: &[&str], targets: &[&Path]) -> Result<Value> {
    let place = tempfile::tempdir().context("making a directory for the recording")?;
    let mut command = Command::new(plumb);
    command.args(["load", "--json"]).args(arguments).arg("--out").arg(place.path().join("run"));
    process::document(command.args(targets))
}

/// Returns the figures of that document.
pub(super) fn of_plumb(document: &Value) -> Result<Figures> {
    let number = |pointer: &str| {
        document.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer}"))
    };
    let millions = number("/total/application/operations")? / 1e6;
    Ok(Figures {
        iops: number("/total/application/iops")?,
        user: number("/total/cpu/user")? / millions,
        system: number("/total/cpu/system")? / millions,
    })
}

/// Returns fio's figures with these options: of its job's thread alone, as plumb's are.
pub(super) fn of_fio(options: &[&str], target: &Path) -> Result<Figures> {
    let mut command = Command::new("fio");
    command.args(["--name=peer", "--thread", "--output-format=json", "--randrepeat=0", "--norandommap"]);
    command.arg(format!("--filename={}", target.display())).args(options);
    let document = process::document(&mut command)?;
    let job = &document["jobs"][0];
    let number =
        |pointer: &str| job.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer}"));
    let millions = number("/read/total_ios")? / 1e6;
    let seconds = number("/job_runtime")? / 1e3;
    Ok(Figures {
        iops: number("/read/iops")?,
        user: number("/usr_cpu")? / 100.0 * seconds / millions,
        system: number("/sys_cpu")? / 100.0 * seconds / millions,
    })
}
