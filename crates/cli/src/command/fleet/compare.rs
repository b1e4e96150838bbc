//! `plumb fleet compare`: comparison on many hosts. Each block is a load on all hosts at once, and its value
//! is that of all hosts together.

use clap::Args;
use plumb_fleet::HostComparison;
use plumb_report::Kind;

use super::ending::{begun_now, exit_of_recording};
use super::load::load_of;
use super::progress::Progress;
use super::reach::Reach;
use crate::command::compare;
use crate::exit::{self, Exit};
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

/// Runs the blocks, and judges them.
pub(super) fn run(arguments: &FleetCompareArguments) -> anyhow::Result<Exit> {
    let (question, scenarios, factor) = compare::asked(&arguments.compare)?;
    let own = arguments.compare.own();
    let format = own.printed.format(Kind::Comparison)?;
    let mut session = arguments.reach.session(&own.recording)?;
    let mut progress = Progress::of_load(own.tui, None, &session.stop);
    let rounds = usize::from(arguments.rounds);
    let comparison = HostComparison { question, scenarios, factor, rounds, load: load_of(own) };
    let ran = comparison
        .run(&mut session, begun_now(), &mut |hosts, now, trouble| progress.look(hosts, now, trouble));
    let (mut document, recording) = ran?;
    progress.end();
    let kept = recording.finish(&document, &[], document.incomplete_because.clone(), time_of_day());
    let exit = exit_of_recording(kept, &mut document.notes, &mut document.run_directory);
    terminal::show(&document, format, arguments.compare.detail().style())?;
    terminal::say_report(document.run_directory.as_ref());
    Ok(exit.and(exit::of_comparison(&document)))
}
