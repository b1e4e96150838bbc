//! `plumb compare`: levels of a factor in interleaved blocks, or runs that were recorded earlier.

mod factor;
mod file_system;
mod machine;
mod recorded;

use std::cell::RefCell;
use std::path::PathBuf;

use clap::Args;
use plumb_block::{Bytes, Nanos};
use plumb_compare::{Experiment, Gate, Level, Question, Terms, figure_names};
use plumb_dialect::Meaning;
use plumb_dialect::native::{Words, write};
use plumb_report::{ComparisonDocument, Format, Style, render};
use plumb_target::Name;
use plumb_trial::TrialError;
use plumb_workload::Scenario;

pub(crate) use self::machine::restore_left_behind;

pub(crate) use self::factor::Factor;
pub(crate) use self::recorded::{Earlier, compare_earlier};
use crate::arguments::{Detail, OwnArguments};
use crate::command::load::meaning;
use crate::command::running::{Running, exit_of_end, exit_of_kind};
use crate::exit::{self, Exit, Refusal, usage};
use crate::{terminal, traces};

const EXAMPLES: &str = "\
Examples:
  plumb compare --factor buffering=cached,direct /srv/io.dat --size 1G --random --write 100
  plumb compare --factor policy=off,on,protected sim:nearline-4tb --random --write 100 --sync-every 1
  plumb compare --factor policy=on,off /srv/io.dat --size 1G --random --write 100 --sync-every 1
  plumb compare --factor cache=none,wb:1G,wb:5G --cache-log /ssd/log /srv/io.dat --size 1G --random --write 100
  plumb compare --factor fs=ext4,xfs,btrfs /srv --size 256M --write 100 --sync-every 1
  plumb compare --a '--depth 1' --b '--depth 32' /srv/io.dat --size 1G --random --fail-if 'p99 ratio > 2'
  plumb compare --together --a sim:nearline-4tb --b sim:plp-nvme-ssd --random --write 100
  plumb compare plumb-runs/NEW1 plumb-runs/NEW2 --against plumb-runs/OLD1 plumb-runs/OLD2
  plumb compare cache-on.xml cache-off.xml             (results of DiskSpd or fio: the second against the first)

Words, targets and their safety are those of `plumb load`; --duration is how long a block is measured. Blocks of the levels take
turns in an order that is drawn from the seed; the first level is what the others are compared with.

Levels of the policy of real disks, scheduler, cache and fs are set before each block, and what was there is put back at the end; if
plumb is killed, the next plumb command does it and says so.
  policy     of the disks beneath the targets, as by `plumb policy`; protected needs a claim. Root only
  scheduler  of the disks beneath the targets, such as none,mq-deadline. Root only
  cache      none, and then the same target behind a write-back cache of plumb's: wb:SIZE, wt:SIZE (write-through)
  fs         in a file below the directory that is the target (--fs-size): ext4, xfs, btrfs. Root only

Exit codes: 0 whatever the outcome, 1 a limit of --fail-if is exceeded, 3 interrupted, or a limit is not decided.";

/// What `plumb compare` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArguments {
    /// What differs: buffering=cached,direct,dsync, drive=MODEL,MODEL, policy=off,on,protected, cache=none,wb:SIZE, scheduler=NAME,NAME
    /// or fs=ext4,xfs,btrfs
    #[arg(long, value_name = "NAME=LEVEL,LEVEL", conflicts_with_all = ["a", "b"])]
    factor: Option<Factor>,

    /// The file or block device of the log of cache=; default a file beside the target. Of a simulated target sim:MODEL
    #[arg(long, value_name = "PATH", requires = "factor")]
    cache_log: Option<String>,

    /// The size of the file systems of fs=
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "factor")]
    fs_size: Bytes,

    /// Words of the level that is compared with, over those that both have
    #[arg(long, value_name = "WORDS", requires = "b", allow_hyphen_values = true)]
    a: Option<String>,

    /// Words of the level that is compared
    #[arg(long, value_name = "WORDS", requires = "a", allow_hyphen_values = true)]
    b: Option<String>,

    /// Compare recorded runs, or results of DiskSpd and fio, named in the place of targets, with these; labelled as not interleaved
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["factor", "a", "b"])]
    against: Vec<PathBuf>,

    /// How long it may take; it ends earlier when the outcome is clear. Default 10m, on simulated drives 60s of their time
    #[arg(long, value_name = "TIME")]
    budget: Option<Nanos>,

    /// Use the whole budget, also when the outcome is clear
    #[arg(long)]
    whole_budget: bool,

    /// Run the levels at the same time, each on a target of its own, rather than in turns
    #[arg(long, conflicts_with = "against")]
    together: bool,

    /// A difference up to this counts as none
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    equivalent: f64,

    /// How often an interval holds the true ratio
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = confidence)]
    confidence: f64,

    /// The figure that decides; default iops, or p99 where operations start on a schedule
    #[arg(long, value_name = "FIGURE", value_parser = figure)]
    figure: Option<String>,

    /// A limit, such as 'p99 ratio > 1.1': exit 1 if the whole interval is beyond it
    #[arg(long, value_name = "LIMIT")]
    fail_if: Vec<Gate>,

    #[command(flatten)]
    words: Words,

    #[command(flatten)]
    own: OwnArguments,

    #[command(flatten)]
    detail: Detail,
}

impl CompareArguments {
    fn terms(&self) -> Terms {
        Terms { error: 1.0 - self.confidence, equivalent: 1.0 + self.equivalent }
    }
}

/// Compares what was typed.
pub(crate) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    let is_named = arguments.factor.is_some() || arguments.a.is_some();
    if !arguments.against.is_empty() || (!is_named && recorded::are_meant(arguments)) {
        return recorded::run(arguments);
    }
    let experiment = experiment(arguments)?;
    let scenario = experiment.scenario().map_err(usage)?;
    let words = write(&scenario);
    if arguments.own.show_workload {
        terminal::print(&words)?;
        return Ok(Exit::Done);
    }
    let factor = arguments.factor.as_ref();
    let setting = factor.map(|factor| factor.setting(arguments)).transpose()?.flatten();
    if let (Some(factor), true, true) = (factor, setting.is_some(), arguments.together) {
        let problem =
            format!("--together: levels of {} are set on the machine, one after the other", factor.name());
        return Err(Refusal::new(Exit::Usage, problem).into());
    }
    let setting = RefCell::new(setting);
    let running = Running::begin("compare", arguments.own.clone());
    let meaning = Meaning { scenario, notes: Vec::new() };
    let request = traces::read(running.request(meaning, words))?;
    let (document, ended) = running.shown(&|context, watcher| match setting.borrow_mut().as_deref_mut() {
        Some(setting) => plumb_compare::run_set(&experiment, &request, context, watcher, setting),
        None => plumb_compare::run(&experiment, &request, context, watcher),
    })?;
    show(&document, arguments.own.json, arguments.detail.style())?;
    if let Some(why) = ended.reason() {
        terminal::say(&format!("plumb: {why}; the whole rounds until then are kept"));
    }
    if let Some(directory) = &document.run_directory {
        terminal::say(&format!("plumb: report: {directory}/{}", Format::Html.file_name()));
    }
    Ok(exit_of_end(&ended).and(exit::of_comparison(&document)))
}

/// A setting that cannot be, as the exit code of its kind.
pub(crate) fn refused(error: TrialError) -> Refusal {
    Refusal::because(exit_of_kind(error.kind()), error)
}

pub(crate) fn show(document: &ComparisonDocument, as_json: bool, style: Style) -> anyhow::Result<()> {
    let format = if as_json { Format::Json } else { Format::Terminal };
    terminal::print(&render(document, format, style)?)
}

/// What was asked of blocks that run elsewhere: the question, the scenario of each level, and the factor where its levels are to be
/// set there.
///
/// # Errors
/// A usage error that names what makes no sense.
pub(crate) fn asked(
    arguments: &CompareArguments,
) -> anyhow::Result<(Question, Vec<Scenario>, Option<String>)> {
    if !arguments.against.is_empty() {
        let problem = "--against compares recorded runs: use `plumb compare`";
        return Err(Refusal::new(Exit::Usage, problem).into());
    }
    let factor = arguments.factor.as_ref();
    let targets = arguments.words.targets();
    let set = factor.map(|factor| factor.of_hosts(&targets)).transpose()?.flatten();
    let experiment = experiment(arguments)?;
    let question = Question {
        factor: experiment.factor,
        levels: experiment.levels.iter().map(|level| level.name.clone()).collect(),
        figure: experiment.figure.unwrap_or_else(|| "iops".to_owned()),
        terms: experiment.terms,
        limits: experiment.limits,
    };
    Ok((question, experiment.levels.into_iter().map(|level| level.scenario).collect(), set))
}

impl CompareArguments {
    /// plumb's own options.
    pub(crate) const fn own(&self) -> &OwnArguments {
        &self.own
    }

    /// How much of the report is shown.
    pub(crate) const fn detail(&self) -> Detail {
        self.detail
    }
}

/// The experiment that was typed.
fn experiment(arguments: &CompareArguments) -> Result<Experiment, Refusal> {
    let (factor, levels) = levels(arguments)?;
    let level = |(name, words): (String, Words)| {
        let meant = meaning(&words)?;
        Ok(Level { name, scenario: meant.scenario })
    };
    let levels = levels.into_iter().map(level).collect::<Result<Vec<_>, Refusal>>()?;
    let block = arguments.words.duration();
    let is_simulated = levels.iter().all(|level| is_simulated(&level.scenario));
    let default = Nanos::secs(if is_simulated { 60 } else { 600 });
    Ok(Experiment {
        factor,
        levels,
        figure: arguments.figure.clone(),
        terms: arguments.terms(),
        limits: arguments.fail_if.clone(),
        budget: arguments.budget.unwrap_or(default),
        block,
        ends_early: !arguments.whole_budget,
        together: arguments.together,
    })
}

/// Whether the scenario goes by the clock of simulated drives.
fn is_simulated(scenario: &Scenario) -> bool {
    let jobs = scenario.spans.iter().flat_map(|span| &span.jobs);
    let names: Vec<Name> =
        jobs.flat_map(|job| &job.targets).filter_map(|target| Name::parse(&target.name).ok()).collect();
    plumb_target::seed_of(&names).is_some()
}

/// The factor, and the words of each level.
fn levels(arguments: &CompareArguments) -> Result<(String, Vec<(String, Words)>), Refusal> {
    match (&arguments.factor, &arguments.a, &arguments.b) {
        (Some(factor), ..) => Ok((factor.name().to_owned(), factor.levels(arguments)?)),
        (None, Some(a), Some(b)) => {
            let level = |typed: &String| {
                let words = Words::of_line(typed).map_err(usage)?;
                Ok((typed.trim().to_owned(), words.within(&arguments.words)))
            };
            let (mut one, mut other) = (level(a)?, level(b)?);
            if one.0 == other.0 {
                (one.0, other.0) = (format!("{} (a)", one.0), format!("{} (b)", other.0));
            }
            Ok(("workload".to_owned(), vec![one, other]))
        }
        _ => {
            let problem = "nothing to compare: type --factor NAME=LEVEL,LEVEL, or --a WORDS --b WORDS, or RUN... --against RUN...";
            Err(Refusal::new(Exit::Usage, problem))
        }
    }
}

/// A share in percent, above 0 and below 100.
fn share(typed: &str) -> Option<f64> {
    let number: f64 = typed.trim().strip_suffix('%').unwrap_or(typed).trim().parse().ok()?;
    (number > 0.0 && number < 100.0).then_some(number / 100.0)
}

fn percent(typed: &str) -> Result<f64, String> {
    share(typed).ok_or_else(|| "expected a percentage between 0 and 100, such as 5%".to_owned())
}

fn confidence(typed: &str) -> Result<f64, String> {
    let expected = || "expected a percentage from 80 to 99.9, such as 95%".to_owned();
    share(typed).filter(|share| (0.8..=0.999).contains(share)).ok_or_else(expected)
}

fn figure(typed: &str) -> Result<String, String> {
    let known = figure_names().any(|name| name == typed);
    let names = || figure_names().collect::<Vec<_>>().join(", ");
    if known { Ok(typed.to_owned()) } else { Err(format!("expected one of {}", names())) }
}
