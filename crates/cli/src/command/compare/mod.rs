//! `plumb compare`: levels of a factor in interleaved blocks, or recorded runs.

mod arguments;
mod recorded;

use std::cell::RefCell;

use plumb_block::{FailureKind, Nanos};
use plumb_compare::setting::Setting;
use plumb_compare::{Chapter, Experiment, Extent, Level, Question, SettingWanted, Workload};
use plumb_dialect::native::Words;
use plumb_report::Kind;
use plumb_trial::TrialError;
use plumb_workload::Scenario;

use self::arguments::OF_ONE_MACHINE;
pub(crate) use self::arguments::{CompareArguments, of_hosts};
use crate::command::load::meaning;
use crate::command::profile;
use crate::command::running::{RunningCommand, exit_of_end};
use crate::exit::{self, Exit, Refusal, usage};
use crate::{setting_machine, terminal, traces};

/// Runs the comparison.
pub(crate) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    if arguments.is_of_records() {
        return recorded::run(arguments);
    }
    let format = arguments.own.printed.format(Kind::Comparison)?;
    let workloads = workloads(arguments)?;
    let mut experiments = Vec::new();
    for workload in &workloads {
        experiments.push(experiment(arguments, workload, workloads.len())?);
    }
    let (experiments, targets): (Vec<Experiment>, Vec<Vec<String>>) = experiments.into_iter().unzip();
    let running = RunningCommand::begin("compare", arguments.own.clone());
    let mut chapters = Vec::new();
    for (workload, experiment) in workloads.iter().zip(experiments) {
        chapters.push(chapter(workload, experiment, &running)?);
    }
    if arguments.own.show_workload {
        let shown: Vec<&str> = chapters.iter().map(|chapter| chapter.request.words.as_str()).collect();
        terminal::print(&shown.join("\n"))?;
        return Ok(Exit::Done);
    }
    let Some((first, further)) = chapters.split_first() else { return Ok(Exit::Done) };
    let setting = RefCell::new(setting(arguments, &targets)?);
    let (document, ended) = running.shown(&|context, observer| {
        let mut setting = setting.borrow_mut();
        let setting = setting.as_mut().map(|setting| &mut **setting as &mut dyn Setting);
        plumb_compare::run(first, further, context, observer, setting)
    })?;
    terminal::show(&document, format, arguments.detail.style())?;
    if let Some(why) = ended.reason() {
        terminal::say_so_far(&why, "the complete rounds before that", document.run_directory.is_some());
    }
    terminal::say_report(document.run_directory.as_ref());
    Ok(exit_of_end(&ended).and(exit::of_comparison(&document)))
}

/// Returns the parts of a comparison whose blocks run on other hosts: the question, the scenario of each
/// level, and the factor if its levels must be set there.
///
/// # Errors
/// If an option does not apply; the message names it.
pub(crate) fn asked(
    arguments: &CompareArguments,
) -> anyhow::Result<(Question, Vec<Scenario>, Option<String>)> {
    let is_typed = [
        !arguments.against.is_empty(),
        arguments.budget.is_some(),
        arguments.whole_budget,
        arguments.together,
        arguments.dry_run,
        !arguments.profile.is_empty(),
        !arguments.workload.is_empty(),
        arguments.find.is_some(),
        arguments.cache_log.is_some(),
        arguments.fs_size.is_some(),
        arguments.own.show_workload,
    ];
    if let Some((option, _)) = OF_ONE_MACHINE.iter().zip(is_typed).find(|(_, is_typed)| *is_typed) {
        let problem = format!(
            "--{option} is for one machine: on many hosts the options describe the load, and --rounds sets \
             how many blocks run one after the other"
        );
        return Err(Refusal::new(FailureKind::Usage, problem).into());
    }
    let factor = arguments.factor.as_ref();
    // A path that each host resolves for itself must be refused before this host looks for it.
    let of_hosts = |targets: &[String]| factor.map(|factor| factor.of_hosts(targets)).transpose();
    of_hosts(&[])?;
    let words = arguments.words.clone();
    let workload = Workload { name: String::new(), profile: None, words, read: &read };
    let (experiment, targets) = experiment(arguments, &workload, 1)?;
    let set = of_hosts(&targets)?.flatten();
    let question = experiment.question();
    let scenarios = experiment.levels.into_iter().map(|level| level.scenario);
    Ok((question, scenarios.collect(), set))
}

/// Returns the profiles and then the typed workloads; without either, the workload of the words.
fn workloads(arguments: &CompareArguments) -> Result<Vec<Workload<'static>>, Refusal> {
    let mut all = Vec::new();
    for name in &arguments.profile {
        all.push((name.clone(), Some(name.clone()), arguments.words.clone()));
    }
    for typed in &arguments.workload {
        let words = Words::of_line(typed).map_err(usage)?.within(&arguments.words);
        all.push((typed.trim().to_owned(), None, words));
    }
    if all.is_empty() {
        all.push((String::new(), None, arguments.words.clone()));
    }
    if let [(name, ..)] = &mut all[..] {
        name.clear();
    }
    Ok(all.into_iter().map(|(name, profile, words)| Workload { name, profile, words, read: &read }).collect())
}

/// Reads words, on top of a profile if one is named.
fn read(profile: Option<&str>, words: &Words) -> Result<Scenario, TrialError> {
    let scenario = match profile {
        Some(name) => profile::scenario(name, words),
        None => meaning(words).map(|meaning| meaning.scenario),
    };
    scenario.map_err(trial_error)
}

/// Returns the experiment for one of `workloads` workloads, and its targets before a level renames them.
fn experiment(
    arguments: &CompareArguments,
    workload: &Workload<'_>,
    workloads: usize,
) -> anyhow::Result<(Experiment, Vec<String>)> {
    let (factor, levels, targets) = match (&arguments.factor, &arguments.a, &arguments.b) {
        (Some(factor), ..) => {
            let (levels, targets) = factor.levels(workload, arguments.cache_log.as_deref())?;
            (factor.name().to_owned(), levels, targets)
        }
        (None, Some(a), Some(b)) => ("workload".to_owned(), workload.levels([a, b])?, Vec::new()),
        _ => {
            let problem = "nothing to compare: give --factor NAME=LEVEL,LEVEL, or --a WORDS --b WORDS, or \
                           RUN... --against RUN...";
            return Err(Refusal::new(FailureKind::Usage, problem).into());
        }
    };
    let default = Nanos::secs(if levels.iter().all(Level::is_simulated) { 60 } else { 600 });
    let experiment = Experiment {
        factor,
        levels,
        figure: arguments.figure.clone(),
        terms: arguments.terms(),
        limits: arguments.fail_if.clone(),
        budget: Nanos(arguments.budget.unwrap_or(default).0 / workloads.max(1) as u64),
        block: workload.words.duration(),
        extent: match (arguments.dry_run, arguments.whole_budget) {
            (true, _) => Extent::Practice,
            (_, true) => Extent::WholeBudget,
            _ => Extent::UntilClear,
        },
        together: arguments.together,
    };
    let least = Nanos(experiment.budget_least().0.saturating_mul(workloads.max(1) as u64));
    if let Some(budget) = arguments.budget.filter(|budget| *budget < least) {
        let problem = format!(
            "--budget {budget} is too short: the fewest blocks that can be judged take {least} plus \
             warm-up; give at least that, or shorter blocks with --duration"
        );
        return Err(Refusal::new(FailureKind::Usage, problem).into());
    }
    experiment.levels.iter().try_for_each(Level::can_be_opened)?;
    Ok((experiment, targets))
}

/// Builds the chapter of an experiment with the request for its trial.
fn chapter(
    workload: &Workload<'_>,
    experiment: Experiment,
    running: &RunningCommand,
) -> anyhow::Result<Chapter> {
    let (meaning, words) = experiment.meaning(workload.profile.as_deref()).map_err(usage)?;
    let request = traces::read(running.request(meaning, words))?;
    Ok(Chapter { name: workload.name.clone(), experiment, request })
}

/// Returns the setting of the levels on this machine, common to all workloads, which must have the same
/// targets.
fn setting(
    arguments: &CompareArguments,
    targets: &[Vec<String>],
) -> anyhow::Result<Option<Box<dyn Setting>>> {
    let (Some(factor), Some(first)) = (&arguments.factor, targets.first()) else { return Ok(None) };
    let wanted = SettingWanted {
        permission: &arguments.own.permission(),
        cache_log: arguments.cache_log.as_deref(),
        fs_size: arguments.fs_size,
        together: arguments.together,
        machine: &setting_machine::this,
    };
    let setting = factor.setting(first, &wanted)?;
    let problem = match setting.is_some() {
        true if arguments.together => "leave --together out, because only one level can be set at a time",
        true if targets.iter().any(|other| other != first) => "all workloads must use the same targets",
        _ => return Ok(setting),
    };
    let problem = format!("levels of {} are set on the machine: {problem}", factor.name());
    Err(Refusal::new(FailureKind::Usage, problem).into())
}

/// Converts a failure into an error of a trial.
fn trial_error(failure: impl Into<anyhow::Error>) -> TrialError {
    let failure = failure.into();
    TrialError::new(exit::kind_of(&failure), format!("{failure:#}"))
}
