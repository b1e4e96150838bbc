//! Guests: real kernels on emulated drives, where the flushes can be counted.
//!
//! A survey determines the fate of a flush from the system's description of itself. Here the same system is
//! built inside an emulated machine, a few writes are synced, and the emulated drives report the number of
//! flushes: the oracle against which the survey's verdict is tested. The traps of a disabled, shadowed or
//! misreported write cache are built on purpose.
//!
//! - `scenario`, `scenarios/`: the stacks to build, as data. `disk`, `lab`: the machine below them.
//! - `kernel`, `modules`, `libraries`, `cpio`, `initramfs`, `script/`: the contents of a guest.
//! - `simulated`: drives that plumb itself serves over NBD.
//! - `policy`: requirements of scenarios that change write caches and check by themselves.
//! - `boot`, `channel`, `qmp`, `nvme_trace`, `interrupt`: the boot itself. `oracle`: its result. `run`: the
//!   command.
//!
//! Limitations: without hardware virtualisation times mean nothing, only counts do. Features that QEMU cannot
//! emulate are missing: drives that save their cache setting, NVMe without a volatile cache, real firmware.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use kernel::Line;

mod boot;
mod channel;
mod cpio;
mod disk;
mod initramfs;
mod interrupt;
mod kernel;
mod lab;
mod libraries;
mod modules;
mod nvme_trace;
mod oracle;
mod policy;
mod qmp;
mod run;
mod scenario;
mod scenarios;
mod simulated;

/// `cargo xtask guest …`
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run scenarios and print the flushes that arrived at each drive
    Run {
        #[command(flatten)]
        options: Options,
        /// Write tree/, probe.json and oracle.json of each scenario under this directory
        #[arg(long, value_name = "DIR")]
        record: Option<PathBuf>,
        /// How many guests at once
        #[arg(long, default_value_t = 2, value_name = "N")]
        jobs: usize,
        /// Scenarios in a file, in place of the built-in ones
        #[arg(long, value_name = "FILE")]
        group: Option<PathBuf>,
        /// Names of scenarios; all when none is named
        #[arg(value_name = "SCENARIO")]
        scenarios: Vec<String>,
    },
    /// List the scenarios
    List,
    /// Boot the drives of a scenario and give a shell on the guest's console (Ctrl-A X ends it)
    Shell {
        #[command(flatten)]
        options: Options,
        /// Name of the scenario
        #[arg(value_name = "SCENARIO")]
        scenario: String,
    },
}

/// Arguments of every boot.
#[derive(Args)]
pub(crate) struct Options {
    /// The one of Debian 12's kernels to boot
    #[arg(long, value_enum, default_value = "6.12")]
    kernel: Line,
    /// A plumb to put into the guests and survey with
    #[arg(long, value_name = "FILE")]
    plumb: Option<PathBuf>,
    /// A directory whose files are put over the guest's root: modules and programs that are not Debian's own
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Runs the requested command. Fails if a scenario failed; one that cannot run on this machine counts as
/// skipped.
///
/// # Errors
/// If the laboratory itself cannot be built.
pub(crate) fn main(arguments: Arguments) -> Result<ExitCode> {
    match arguments.action {
        Action::Run { options, record, jobs, group, scenarios } => {
            let tally = run::run(&run::Request { options, record, jobs, group, scenarios })?;
            Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Action::List => {
            run::say(&scenarios::list());
            Ok(ExitCode::SUCCESS)
        }
        Action::Shell { options, scenario } => run::shell(&options, &scenario),
    }
}

/// Returns the programs that must be installed to make guests.
pub(crate) fn programs() -> Vec<crate::packages::Program> {
    initramfs::programs()
}

/// Runs all scenarios on the newer kernel with this plumb, as the guests' part of `cargo xtask test`.
///
/// # Errors
/// Those of [`main`].
pub(crate) fn test(plumb: &Path) -> Result<crate::tally::Tally> {
    let options = Options { kernel: Line::V6_12, plumb: Some(plumb.to_owned()), root: None };
    run::run(&run::Request { options, record: None, jobs: 2, group: None, scenarios: Vec::new() })
}

/// Returns the measurements of the guests of [`scenarios::CACHE_SPEED`] with this plumb.
///
/// # Errors
/// Those of [`main`].
pub(crate) fn cache_speed(plumb: &Path) -> Result<Vec<(&'static str, Vec<String>)>> {
    let options = Options { kernel: Line::V6_12, plumb: Some(plumb.to_owned()), root: None };
    run::notes(&options, &scenarios::CACHE_SPEED)
}

/// Returns the directory for kernels, unpacked modules and logs, next to cargo's other output.
///
/// # Errors
/// If this program was not started from a target directory, or the directory cannot be created.
fn cache_directory() -> Result<PathBuf> {
    let program = std::env::current_exe().context("asking where this program is")?;
    let target = program.ancestors().nth(2).context("this program is in no target directory")?;
    let cache = target.join("guest");
    std::fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    Ok(cache)
}
