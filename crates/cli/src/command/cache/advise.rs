//! `plumb cache advise`: the size of the log that recorded writes need.

use plumb_compare::cache_advice::{AdviceQuestion, advise};
use plumb_report::Format;
use plumb_report::progress::ProgressLines;

use crate::arguments::cache::AdviseArguments;
use crate::exit::Exit;
use crate::{stop, terminal, traces};

pub(super) fn run(arguments: &AdviseArguments, format: Format) -> anyhow::Result<Exit> {
    let stop = stop::on_signals()?;
    let question = AdviceQuestion {
        recording: &arguments.recording,
        backing: &arguments.backing,
        backing_iops: arguments.backing_iops,
        backing_rate: arguments.backing_rate,
        log: &arguments.log,
        endurance: arguments.endurance,
        sizes: &arguments.size,
    };
    let trace = traces::named(&arguments.recording)?;
    let mut lines = ProgressLines::from_environment();
    let mut say = |size| lines.say(&format!("a log of {size}"));
    let advice = advise(&question, trace, &stop, &mut say)?;
    terminal::show_status(&advice, format)?;
    Ok(Exit::Done)
}
