//! `plumb fleet load`: a workload on all hosts at the same time.

use clap::Args;
use plumb_dialect::native::{Words, write};
use plumb_fleet::record::Content;
use plumb_fleet::{Level, LoadTask, Task, merge};
use plumb_report::Kind;
use plumb_report::document::FleetDocument;
use plumb_workload::Scenario;

use super::ending::{begun_now, conclude};
use super::progress::Progress;
use super::reach::Reach;
use crate::arguments::running::{Detail, OwnArguments};
use crate::command::load::meaning;
use crate::exit::{Exit, Refusal, refuse_if};
use crate::terminal;

/// Arguments of `plumb fleet load`.
#[derive(Debug, Args)]
pub(super) struct LoadArguments {
    #[command(flatten)]
    reach: Reach,

    /// Run it on these numbers of hosts, one after the other, such as 1,2,4,8, and show the rate of each host
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
    let format = arguments.own.printed.format(Kind::Fleet)?;
    let mut session = arguments.reach.session(&arguments.own.recording)?;
    let count = session.names.len();
    let steps = match &arguments.scale[..] {
        [] => vec![count],
        steps => steps.iter().map(|step| *step as usize).collect(),
    };
    let problem = "--scale: expected increasing numbers of hosts, such as 1,2,4,8";
    refuse_if!(!steps.is_sorted_by(|one, next| one < next), Usage, problem);
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
    let expected = expected(&scenario);
    let given = given(&scenario, &arguments.reach);
    let seed = scenario.spans.first().and_then(|span| span.jobs.first()).map_or(0, |job| job.workload.seed);
    let command = "load".to_owned();
    let begun = FleetDocument { command, workload: words, seed, ..FleetDocument::default() };
    let mut progress = Progress::of_load(arguments.own.tui, expected, &session.stop);
    let (answers, recording) = session
        .recorded(begun_now(), begun, Content::Answers, |session, kept| {
            let mut answers = Vec::new();
            for step in &steps {
                let task = |number: usize| (number < *step).then(|| tasks[number].clone());
                session.run(&task, given, kept, &mut progress)?;
                answers = session.answers()?;
                if !arguments.scale.is_empty() {
                    let scale = &mut kept.begun.scale;
                    scale.push(merge::scale_step(&answers, scale.first()));
                }
                if session.stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
            Ok(answers)
        })
        .map_err(Refusal::from)?;
    progress.end();
    conclude(recording, answers, format, arguments.detail.style(), arguments.own.strictness)
}

/// Builds the task of a host: the same as for the others, on targets that may have its name, with a seed of
/// its own.
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
    Task::Load(LoadTask {
        words: write(&scenario),
        overwrite: own.overwrite,
        destroy: own.destroy.clone(),
        remove_after: own.remove_after,
        level,
    })
}

/// Returns how long hosts are given from a start until all spans have run, as far as that is known. Each span
/// but the first is made ready within it.
pub(super) fn given(scenario: &Scenario, reach: &Reach) -> Option<plumb_block::Nanos> {
    let more = scenario.spans.len().saturating_sub(1) as u64;
    Some(expected(scenario)? + reach.prepare_timeout * more)
}

/// Returns how long all spans run, as far as that is known.
fn expected(scenario: &Scenario) -> Option<plumb_block::Nanos> {
    let span = |span: &plumb_workload::Span| -> Option<plumb_block::Nanos> {
        let warmup = match span.warmup {
            plumb_workload::Warmup::For(warmup) => warmup,
            plumb_workload::Warmup::Auto => return None,
        };
        let durations = span.jobs.iter().map(|job| job.workload.stop.duration).collect::<Option<Vec<_>>>()?;
        let duration = durations.into_iter().max()?;
        Some(warmup + duration + span.cooldown)
    };
    scenario.spans.iter().map(span).sum::<Option<plumb_block::Nanos>>()
}
