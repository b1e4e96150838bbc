//! `plumb study`: field reports, and their reproduction on this machine.

use std::cell::RefCell;

use clap::Args;
use plumb_compare::study::{self, Studies, StudyPlan, Switches};
use plumb_dialect::Meaning;
use plumb_report::{Format, Kind};
use plumb_workload::Scenario;

use crate::arguments::output::PrintFormat;
use crate::arguments::running::{Detail, OwnArguments, RecordingArguments};
use crate::command::running::{RunningCommand, exit_of_end};
use crate::exit::{self, Exit};
use crate::{setting_machine, terminal};

/// Arguments of `plumb study`.
#[derive(Debug, Args)]
pub(crate) struct StudyArguments {
    /// The study: A to E, or all
    #[arg(value_name = "STUDY", default_value = "all")]
    name: Studies,

    /// Run on this directory, file or block device, rather than on simulated drives
    #[arg(long, value_name = "PATH|DEV")]
    on: Option<String>,

    /// Put the write cache of the disks beneath --on into each of its states, as `plumb policy` does, and
    /// restore it at the end. Root only
    #[arg(long, requires = "on")]
    switch: bool,

    /// Study C: put a write-back cache with its log there in front of --on, and remove it at the end
    #[arg(long, value_name = "PATH", requires = "on")]
    cache_log: Option<String>,

    /// Write to files that plumb did not make, and to disks, if they have no signature
    #[arg(long, requires = "on")]
    overwrite: bool,

    /// Write to the disk with this serial although it is in use or has a signature
    #[arg(long, value_name = "SERIAL", requires = "on")]
    destroy: Vec<String>,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    #[command(flatten)]
    printed: PrintFormat,

    /// Print a page: short for --format html
    #[arg(long, conflicts_with_all = ["format", "json"])]
    html: bool,

    #[command(flatten)]
    recording: RecordingArguments,

    #[command(flatten)]
    detail: Detail,
}

impl StudyArguments {
    /// Returns true if only simulated drives are used.
    pub(crate) fn reads(&self) -> bool {
        self.on.is_none()
    }
}

/// Runs the studies.
pub(crate) fn run(arguments: &StudyArguments) -> anyhow::Result<Exit> {
    let format = if arguments.html { Format::Html } else { arguments.printed.format(Kind::Study)? };
    let own = OwnArguments {
        overwrite: arguments.overwrite,
        destroy: arguments.destroy.clone(),
        recording: arguments.recording.clone(),
        ..OwnArguments::default()
    };
    let running = RunningCommand::begin("study", own);
    let meaning = Meaning { scenario: Scenario { spans: Vec::new() }, notes: Vec::new() };
    let request = running.request(meaning, String::new());
    let plan = StudyPlan { studies: arguments.name.clone(), on: arguments.on.clone(), seed: arguments.seed };
    let switches = match &arguments.on {
        None => Switches::default(),
        Some(on) => {
            let (log, permission) = (arguments.cache_log.as_deref(), running.own.permission());
            let switches = Switches::new(on, arguments.switch, log, &permission, &setting_machine::this);
            switches?
        }
    };
    let switches = RefCell::new(switches);
    let (document, ended) = running.shown(&|context, observer| {
        study::run(&plan, &request, context, observer, &mut switches.borrow_mut())
    })?;
    terminal::show(&document, format, arguments.detail.style())?;
    if let Some(why) = ended.reason() {
        terminal::say_so_far(&why, "the chapters until then", document.run_directory.is_some());
    }
    terminal::say_report(document.run_directory.as_ref());
    Ok(exit_of_end(&ended).and(exit::of_study(&document)))
}
