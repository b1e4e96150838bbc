//! `plumb fleet compare`: each block is a load on all hosts at once, and its value is of all of them together.

use std::sync::atomic::Ordering;

use clap::Args;
use plumb_compare::{Design, block_of_sides, document};
use plumb_fleet::{Level, merge};
use plumb_report::Format;
use plumb_report::document::comparison::Block;

use super::load::task;
use super::progress::Progress;
use super::record::keep_comparison;
use super::{Reach, Session};
use crate::command::compare;
use crate::exit::{self, Exit, Refusal};
use crate::terminal;

/// What `plumb fleet compare` takes.
#[derive(Debug, Args)]
pub(super) struct FleetCompareArguments {
    #[command(flatten)]
    reach: Reach,

    /// How many blocks of each level count, 8 to 64; one of each runs before them for practice
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u8).range(8..=64))]
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
    let mut session = Session::open(&arguments.reach)?;
    let mut progress = Progress::of_load(own.tui, None);
    let practice: Vec<usize> = (0..scenarios.len()).collect();
    let rounds = std::iter::once(practice).chain(design.orders());
    let mut blocks = Vec::new();
    let mut lost = None;
    'rounds: for (round, order) in (0_u64..).zip(rounds) {
        for level in order {
            let mut scenario = scenarios[level].clone();
            // Blocks of one round make the same choices, each round others.
            for job in scenario.spans.iter_mut().flat_map(|span| &mut span.jobs) {
                job.workload.seed = job.workload.seed.wrapping_add(round << 32);
            }
            let names = session.names.clone();
            let set = set.clone().map(|factor| Level { factor, number: level });
            let task = |number: usize| task(&scenario, number, &names[number], own, set.clone());
            session.run(&|number| Some(task(number)), &mut progress)?;
            let answers = merge::answers(&mut session.controller);
            let measured = merge::document(&answers);
            // Fewer hosts would be another level.
            lost = measured.incomplete_because;
            if session.stop.load(Ordering::Relaxed) {
                lost = Some("interrupted".to_owned());
            }
            let Some(total) = measured.total.filter(|_| lost.is_none()) else { break 'rounds };
            let seconds = total.application.seconds;
            blocks.push(Block { level, round, ..block_of_sides(&total, seconds) });
        }
    }
    session.leave()?;
    progress.end();
    if blocks.is_empty() {
        return Err(Refusal::new(
            Exit::NotMeasured,
            lost.unwrap_or_else(|| "nothing was measured".to_owned()),
        )
        .into());
    }
    let mut document = document(&question, &design, blocks);
    document.complete = lost.is_none();
    document.incomplete_because = lost;
    document.notes.push(format!("Each block is of {} hosts at once.", session.names.len()));
    keep_comparison(&mut document, &session.names, &own.recording)?;
    compare::show(&document, own.json, arguments.compare.detail().style())?;
    if let Some(directory) = &document.run_directory {
        terminal::say(&format!("plumb: report: {directory}/{}", Format::Html.file_name()));
    }
    Ok(exit::of_comparison(&document))
}
