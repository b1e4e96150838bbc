//! `plumb fleet load`: a workload on all hosts at the same time.

use clap::Args;
use plumb_dialect::native::{Words, write};
use plumb_fleet::{Level, Task, merge};
use plumb_report::document::FleetDocument;
use plumb_report::document::fleet::ScaleStep;
use plumb_workload::Scenario;

use super::progress::Progress;
use super::{Reach, Session, concluded, exit_of, record, show};
use crate::arguments::{Detail, OwnArguments};
use crate::command::load::meaning;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// What `plumb fleet load` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Each host runs the workload on its own targets; {host} in the name of a target stands for the name of the host, and each host \
                  draws its random choices from a seed of its own. The rest is as `plumb load` has it."
)]
pub(super) struct LoadArguments {
    #[command(flatten)]
    reach: Reach,

    /// Run it on so many hosts after one another, such as 1,2,4,8, and say what each host still reaches
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    scale: Vec<u32>,

    #[command(flatten)]
    words: Words,

    #[command(flatten)]
    own: OwnArguments,

    #[command(flatten)]
    detail: Detail,
}

/// Runs the load, on more and more hosts if that was asked for.
pub(super) fn run(arguments: &LoadArguments) -> anyhow::Result<Exit> {
    let scenario = meaning(&arguments.words)?.scenario;
    let words = write(&scenario);
    if arguments.own.show_workload {
        terminal::print(&words)?;
        return Ok(Exit::Done);
    }
    let mut session = Session::open(&arguments.reach)?;
    let count = session.names.len();
    let steps = match &arguments.scale[..] {
        [] => vec![count],
        steps => steps.iter().map(|step| *step as usize).collect(),
    };
    if let Some(step) = steps.iter().find(|step| **step > count) {
        let problem = format!("--scale {step}: only {count} hosts are named");
        return Err(Refusal::new(Exit::Usage, problem).into());
    }
    let tasks: Vec<Task> = session
        .names
        .iter()
        .enumerate()
        .map(|(number, host)| task(&scenario, number, host, &arguments.own, None))
        .collect();
    let mut progress = Progress::of_load(arguments.own.tui, expected(&scenario));
    let mut scale: Vec<ScaleStep> = Vec::new();
    let mut answers = Vec::new();
    for step in &steps {
        session.run(&|number| (number < *step).then(|| tasks[number].clone()), &mut progress)?;
        answers = merge::answers(&mut session.controller);
        if !arguments.scale.is_empty() {
            scale.push(merge::scale_step(&answers, scale.first()));
        }
        if session.stop.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
    }
    session.leave()?;
    progress.end();
    let seed = scenario.spans.first().and_then(|span| span.jobs.first()).map_or(0, |job| job.workload.seed);
    let document = FleetDocument {
        command: "load".to_owned(),
        scale,
        workload: words,
        seed,
        ..merge::document(&answers)
    };
    let document = concluded(document, &answers);
    let document = record::keep(document, &answers, &arguments.own.recording)?;
    show(&document, arguments.own.json, arguments.detail.style())?;
    Ok(exit_of(&document))
}

/// What a host is to do: the same as the others, on targets that may have its name, with a seed of its own.
pub(super) fn task(
    scenario: &Scenario,
    number: usize,
    host: &str,
    own: &OwnArguments,
    level: Option<Level>,
) -> Task {
    let mut scenario = scenario.clone();
    for job in scenario.spans.iter_mut().flat_map(|span| &mut span.jobs) {
        job.workload.seed = job.workload.seed.wrapping_add(number as u64);
        for target in &mut job.targets {
            target.name = target.name.replace("{host}", host);
        }
    }
    Task::Load {
        words: write(&scenario),
        overwrite: own.overwrite,
        destroy: own.destroy.clone(),
        remove_after: own.remove_after,
        level,
    }
}

/// How long all spans run, as far as that is known.
fn expected(scenario: &Scenario) -> Option<plumb_block::Nanos> {
    let span = |span: &plumb_workload::Span| -> Option<plumb_block::Nanos> {
        let warmup = match span.warmup {
            plumb_workload::Warmup::For(warmup) => warmup,
            plumb_workload::Warmup::Auto => return None,
        };
        let duration = span.jobs.iter().map(|job| job.workload.stop.duration).max()??;
        Some(warmup + duration + span.cooldown)
    };
    scenario.spans.iter().map(span).sum::<Option<plumb_block::Nanos>>()
}
