//! `plumb prove campaign`: many power cuts, with a verification after each.

use std::path::PathBuf;

use clap::Args;
use plumb_block::Nanos;
use plumb_report::Kind;
use plumb_report::document::power::CampaignDocument;
use plumb_report::progress::ProgressLines;
use plumb_state::places;
use plumb_witness::campaign::{Campaign, Moments};
use plumb_witness::power::{Machine, PowerSwitch};

use super::verify::exit_of;
use super::writer::PatternArguments;
use crate::arguments::output::PrintFormat;
use crate::exit::{self, Exit};
use crate::{stop, terminal};

/// Arguments of `plumb prove campaign`.
#[derive(Debug, Args)]
pub(crate) struct CampaignArguments {
    /// Directory of the record and the results
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Number of cycles
    #[arg(long, default_value_t = 100, value_name = "N")]
    cycles: u64,

    /// The power switch: ipmi:USER@HOST, drive:NAME of a served drive; or sysrq and qemu:SOCKET, which do not
    /// cut the power
    #[arg(long, value_name = "SWITCH", required_unless_present = "cut_with")]
    power: Option<String>,

    /// A command that cuts the power
    #[arg(long, value_name = "COMMAND", conflicts_with = "power")]
    cut_with: Option<String>,

    /// The command that turns it on again, if the first does not
    #[arg(long, value_name = "COMMAND", requires = "cut_with")]
    power_on_with: Option<String>,

    /// How long after the region is filled the power is cut: a random moment between two times
    #[arg(long, default_value = "2s..20s", value_name = "FROM..TO")]
    cut_after: Moments,

    /// Cut a served drive at this command, as in flush:3:submitted..flush:3:completed; if it does not come
    /// within --cut-after, the cycle does not count
    #[arg(long, value_name = "WHEN")]
    aim: Option<String>,

    /// Command that starts another on the machine under test, such as 'ssh root@HOST'
    #[arg(long, value_name = "LAUNCHER")]
    on: Option<String>,

    /// Where plumb is on that machine
    #[arg(long, default_value = "plumb", value_name = "PATH", requires = "on")]
    plumb: String,

    /// How long the region may take to be filled, and the drive to come back
    #[arg(long, default_value = "10m", value_name = "TIME")]
    patience: Nanos,

    /// Seed of the moments
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,

    #[command(flatten)]
    printed: PrintFormat,

    #[command(flatten)]
    pattern: PatternArguments,
}

/// Runs the command as typed.
pub(crate) fn run(arguments: CampaignArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    let campaign = meant(arguments)?;
    let stop = stop::on_signals()?;
    let mut lines = ProgressLines::from_environment();
    let mut told = |document: &CampaignDocument| {
        let Some(cycle) = document.cycles.last() else { return };
        let wanted = document.cycles_wanted;
        lines.say(&format!("cycle {} of {wanted}: {}", cycle.number, cycle.because));
    };
    let document = campaign.run(&stop, &mut told)?;
    terminal::show_status(&document, format)?;
    let is_whole = document.incomplete_because.is_none();
    Ok(exit_of(&document.level).and(exit::of_whole(is_whole)))
}

fn meant(typed: CampaignArguments) -> anyhow::Result<Campaign> {
    let machine = match &typed.on {
        Some(on) => {
            Machine { launcher: on.split_whitespace().map(str::to_owned).collect(), program: typed.plumb }
        }
        None => Machine { launcher: Vec::new(), program: std::env::current_exe()?.display().to_string() },
    };
    let switch = match (&typed.power, &typed.cut_with) {
        (Some(power), _) => PowerSwitch::typed(power, &machine, places::run())?,
        (None, cut) => {
            PowerSwitch::commands(cut.as_deref().unwrap_or_default(), typed.power_on_with.as_deref())
        }
    };
    Ok(Campaign {
        writer: typed.pattern.words(),
        machine,
        switch,
        directory: typed.dir,
        cycles: typed.cycles,
        cut_after: typed.cut_after,
        aim: typed.aim,
        patience: typed.patience,
        seed: typed.seed,
    })
}
