//! `plumb compare`: levels of a factor in interleaved blocks, or runs that were recorded earlier.

mod arguments;
mod factor;
mod file_system;
mod machine;
mod recorded;
mod workload;

use std::cell::RefCell;
use std::sync::Arc;

use plumb_block::{Clock, Nanos, RealClock};
use plumb_compare::setting::Setting;
use plumb_compare::{Chapter, Experiment, Extent, Level, Question};
use plumb_dialect::Meaning;
use plumb_dialect::native::{Words, write};
use plumb_linux::FileOptions;
use plumb_report::Kind;
use plumb_targets::{Intent, Name, Permission, TargetRequest, open_all};
use plumb_workload::{Job, Scenario};

use self::arguments::OF_ONE_MACHINE;
pub(crate) use self::arguments::{CompareArguments, of_hosts};
pub(crate) use self::factor::{Factor, cache_before, cache_name};
use self::workload::Workload;
use crate::command::running::{RunningCommand, exit_of_end};
use crate::exit::{self, Exit, Refusal, usage};
use crate::{terminal, traces};

/// Compares what was typed.
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
        terminal::say(&format!("plumb: {why}; the complete rounds before that are kept"));
    }
    terminal::say_report(document.run_directory.as_ref());
    Ok(exit_of_end(&ended).and(exit::of_comparison(&document)))
}

/// Returns what is requested of blocks that run elsewhere: the question, the scenario of each level, and the
/// factor where its levels are to be set there.
///
/// # Errors
/// A usage error that names what makes no sense.
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
        return Err(Refusal::new(Exit::Usage, problem).into());
    }
    let factor = arguments.factor.as_ref();
    // A place of each machine is refused before it is looked for on this one.
    factor.map(|factor| factor.of_hosts(&[])).transpose()?;
    let words = arguments.words.clone();
    let workload = Workload { name: String::new(), profile: None, words };
    let (experiment, targets) = experiment(arguments, &workload, 1)?;
    let set = factor.map(|factor| factor.of_hosts(&targets)).transpose()?.flatten();
    let question = experiment.question();
    let scenarios = experiment.levels.into_iter().map(|level| level.scenario);
    Ok((question, scenarios.collect(), set))
}

/// Returns the profiles, and then the workloads that were typed; without any what the words say.
fn workloads(arguments: &CompareArguments) -> Result<Vec<Workload>, Refusal> {
    let mut all = Vec::new();
    for name in &arguments.profile {
        all.push(Workload {
            name: name.clone(),
            profile: Some(name.clone()),
            words: arguments.words.clone(),
        });
    }
    for typed in &arguments.workload {
        let words = Words::of_line(typed).map_err(usage)?.within(&arguments.words);
        all.push(Workload { name: typed.trim().to_owned(), profile: None, words });
    }
    if all.is_empty() {
        all.push(Workload { name: String::new(), profile: None, words: arguments.words.clone() });
    }
    if let [one] = &mut all[..] {
        one.name.clear();
    }
    Ok(all)
}

/// Returns the experiment that was typed under one of so many workloads, and its targets before a level names
/// them otherwise.
fn experiment(
    arguments: &CompareArguments,
    workload: &Workload,
    workloads: usize,
) -> Result<(Experiment, Vec<String>), Refusal> {
    let (factor, levels, targets) = levels(arguments, workload)?;
    let is_simulated = levels.iter().all(|level| is_simulated(&level.scenario.targets()));
    let default = Nanos::secs(if is_simulated { 60 } else { 600 });
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
        return Err(Refusal::new(Exit::Usage, problem));
    }
    experiment.levels.iter().try_for_each(can_be_opened)?;
    Ok((experiment, targets))
}

/// Refuses a level whose simulated targets cannot be made, before anything runs.
fn can_be_opened(level: &Level) -> Result<(), Refusal> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let wanted = |target: String| {
        Ok(TargetRequest {
            name: Name::parse(target)?,
            intent: Intent::WRITE,
            options: FileOptions::write_direct(),
        })
    };
    let simulated = level.scenario.targets().into_iter();
    // Nothing of this machine is opened: that is judged and said when it runs.
    let simulated =
        simulated.filter(|name| name.starts_with("sim:") || name.starts_with("cache:backing=sim:"));
    let wanted = simulated.map(wanted).collect::<Result<Vec<_>, _>>();
    let opened = wanted.and_then(|wanted| {
        let time = plumb_targets::time_of(wanted.iter().map(|wanted| &wanted.name), &clock);
        open_all(&wanted, &Permission::default(), &time)
    });
    opened.map(drop).map_err(|error: plumb_targets::Error| {
        let problem = format!("level {}: {}", level.name, plumb_block::in_one_line(&error));
        Refusal::new(Exit::Usage, problem)
    })
}

/// Builds the chapter of an experiment, with the request to its trial.
fn chapter(workload: &Workload, experiment: Experiment, running: &RunningCommand) -> anyhow::Result<Chapter> {
    let scenario = experiment.scenario().map_err(usage)?;
    let jobs =
        || experiment.levels.iter().flat_map(|level| &level.scenario.spans).flat_map(|span| &span.jobs);
    let words = match (&workload.profile, jobs().any(|job| job.program.is_some())) {
        // An application, and no words of a load.
        (Some(profile), true) => format!("profile = \"{profile}\"\n"),
        _ => write(&scenario),
    };
    let ends = |job: &Job| job.workload.stop.operations.is_some() || job.workload.stop.bytes.is_some();
    let is_limited = workload.profile.is_none() && jobs().any(ends);
    let notes =
        is_limited.then(|| "Blocks are measured for a time: --count and --bytes have no effect.".to_owned());
    let meaning = Meaning { scenario, notes: notes.into_iter().collect() };
    let request = traces::read(running.request(meaning, words))?;
    Ok(Chapter { name: workload.name.clone(), experiment, request })
}

/// Returns the setting of the levels on the machine: for all workloads, which are on the same targets.
fn setting(
    arguments: &CompareArguments,
    targets: &[Vec<String>],
) -> anyhow::Result<Option<Box<dyn Setting>>> {
    let (Some(factor), Some(first)) = (&arguments.factor, targets.first()) else { return Ok(None) };
    let setting = factor.setting(arguments, first)?;
    let problem = match setting.is_some() {
        true if arguments.together => "leave --together out, because only one level can be set at a time",
        true if targets.iter().any(|other| other != first) => "all workloads must use the same targets",
        _ => return Ok(setting),
    };
    let problem = format!("levels of {} are set on the machine: {problem}", factor.name());
    Err(Refusal::new(Exit::Usage, problem).into())
}

/// Returns true if it goes by the clock of simulated drives.
fn is_simulated(targets: &[String]) -> bool {
    let names: Vec<Name> = targets.iter().filter_map(|target| Name::parse(target).ok()).collect();
    plumb_targets::seed_of(&names).is_some()
}

/// Returns the factor, what is run at each level, and the targets that were asked for.
fn levels(
    arguments: &CompareArguments,
    workload: &Workload,
) -> Result<(String, Vec<Level>, Vec<String>), Refusal> {
    match (&arguments.factor, &arguments.a, &arguments.b) {
        (Some(factor), ..) => {
            let (levels, targets) = factor.levels(arguments, workload)?;
            Ok((factor.name().to_owned(), levels, targets))
        }
        (None, Some(a), Some(b)) => {
            let level = |typed: &String| -> Result<Level, Refusal> {
                let scenario = workload.scenario(&Words::of_line(typed).map_err(usage)?)?;
                Ok(Level { name: typed.trim().to_owned(), scenario })
            };
            let (mut one, mut other) = (level(a)?, level(b)?);
            if one.name == other.name {
                (one.name, other.name) = (format!("{} (a)", one.name), format!("{} (b)", other.name));
            }
            Ok(("workload".to_owned(), vec![one, other], Vec::new()))
        }
        _ => {
            let problem = "nothing to compare: give --factor NAME=LEVEL,LEVEL, or --a WORDS --b WORDS, or \
                           RUN... --against RUN...";
            Err(Refusal::new(Exit::Usage, problem))
        }
    }
}
