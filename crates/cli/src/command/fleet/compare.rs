//! `plumb fleet compare`: each block is a load on all hosts at once, and its value is of all of them
//! together.

use std::sync::atomic::Ordering;

use clap::Args;
use plumb_compare::{Design, block_of_sides, document};
use plumb_fleet::record::Content;
use plumb_fleet::{Level, merge};
use plumb_report::Kind;
use plumb_report::document::FleetDocument;
use plumb_report::document::comparison::Block;

use super::ending::{begun_now, exit_of_recording};
use super::load::{given, task};
use super::progress::Progress;
use super::reach::Reach;
use crate::command::compare;
use crate::exit::{self, Exit, Refusal};
use crate::surroundings::time_of_day;
use crate::terminal;

/// Arguments of `plumb fleet compare`.
#[derive(Debug, Args)]
#[command(mut_args(compare::of_hosts))]
pub(super) struct FleetCompareArguments {
    #[command(flatten)]
    reach: Reach,

    /// Number of measured blocks of each level, 8 to 64, after one pilot block of each. With 8 there are so
    /// few orders that the 95 % interval holds in 97.1 % of experiments, and is wider by that; with 10 in
    /// 95.2 %
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u8).range(8..=64))]
    rounds: u8,

    #[command(flatten)]
    compare: compare::CompareArguments,
}

/// Runs the blocks and judges them.
pub(super) fn run(arguments: &FleetCompareArguments) -> anyhow::Result<Exit> {
    let (question, scenarios, set) = compare::asked(&arguments.compare)?;
    let own = arguments.compare.own();
    let first = scenarios.first().and_then(|scenario| scenario.spans.first()?.jobs.first());
    let seed = first.map_or(0, |job| job.workload.seed);
    let design = Design::new(scenarios.len(), usize::from(arguments.rounds), &question.terms, false, seed);
    let format = own.printed.format(Kind::Comparison)?;
    let mut session = arguments.reach.session(&own.recording)?;
    let mut progress = Progress::of_load(own.tui, None, &session.stop);
    let practice: Vec<usize> = (0..scenarios.len()).collect();
    let rounds = std::iter::once(practice).chain(design.orders());
    let note = format!("Each block is of {} hosts at once.", session.names.len());
    let so_far = |begun: &FleetDocument, blocks: &[Block], because: Option<String>| {
        let mut document = document(&question, &design, blocks.to_vec());
        document.environment.clone_from(&begun.environment);
        document.run_directory.clone_from(&begun.run_directory);
        (document.complete, document.incomplete_because) = (because.is_none(), because);
        document.notes.push(note.clone());
        document
    };
    let begun = FleetDocument { seed, ..FleetDocument::default() };
    // The result is that of whole blocks: a block that hosts did in part does not count.
    let ((blocks, lost), recording) = session
        .recorded(begun_now(), begun, Content::Given, |session, kept| {
            let mut blocks = Vec::new();
            for (round, level) in (0_u64..)
                .zip(rounds)
                .flat_map(|(round, order)| order.into_iter().map(move |level| (round, level)))
            {
                let mut scenario = scenarios[level].clone();
                // Blocks of one round make the same choices, each round others.
                for job in scenario.spans.iter_mut().flat_map(|span| &mut span.jobs) {
                    job.workload.seed = job.workload.seed.wrapping_add(round << 32);
                }
                let names = session.names.clone();
                let set = set.clone().map(|factor| Level { factor, number: level });
                let task = |number: usize| task(&scenario, number, &names[number], own, set.clone());
                let given = given(&scenario, &arguments.reach);
                session.run(&|number| Some(task(number)), given, kept, &mut progress)?;
                let measured = merge::document(&mut session.answers()?);
                // Fewer hosts would be another level.
                let lost = match session.stop.load(Ordering::Relaxed) {
                    true => Some("interrupted".to_owned()),
                    false => measured.incomplete_because,
                };
                let Some(total) = measured.total.filter(|_| lost.is_none()) else {
                    return Ok((blocks, lost));
                };
                let seconds = total.application.seconds;
                blocks.push(Block { level, round, ..block_of_sides(&total, seconds) });
                kept.write(so_far(&kept.begun, &blocks, Some("it has not ended".to_owned())));
            }
            Ok((blocks, None))
        })
        .map_err(Refusal::from)?;
    progress.end();
    if blocks.is_empty() {
        recording.abandon()?;
        return Err(Refusal::new(
            Exit::NotMeasured,
            lost.unwrap_or_else(|| "nothing was measured".to_owned()),
        )
        .into());
    }
    let mut document = so_far(&recording.begun, &blocks, lost);
    let kept = recording.finish(&document, &[], document.incomplete_because.clone(), time_of_day());
    let exit = exit_of_recording(kept, &mut document.notes, &mut document.run_directory);
    terminal::show(&document, format, arguments.compare.detail().style())?;
    terminal::say_report(document.run_directory.as_ref());
    Ok(exit.and(exit::of_comparison(&document)))
}
