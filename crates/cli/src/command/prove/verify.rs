//! `plumb prove verify`: compares a drive after a power cut with the record of the witness.

use clap::Args;
use plumb_block::{Nanos, Time};
use plumb_report::Kind;
use plumb_targets::{Intent, Permission};
use plumb_witness::{Link, Message, Peer, fetch, name_of, open_target, verify};

use crate::arguments::output::PrintFormat;
use crate::exit::Exit;
use crate::{stop, terminal};

/// Arguments of `plumb prove verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The target of the writer
    target: String,

    /// The witness, in the same words as for the writer
    #[arg(long, value_name = "COMMAND")]
    witness: String,

    #[command(flatten)]
    printed: PrintFormat,
}

/// Runs the command as typed.
pub(crate) fn run(arguments: &VerifyArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    let stop = stop::on_signals()?;
    let time = Time::real();
    let opened = open_target(&arguments.target, Intent::READ, &Permission::default(), &time)?;
    let peer = Peer::typed(&arguments.witness);
    let is_stdio = peer == Peer::Stdio;
    let mut link = Link::connect(peer, None, Nanos::ZERO, &time, &stop)?;
    let record = fetch(&mut link, &name_of(&opened), opened.identity.clone())?;
    let found = verify(&record, &*opened.device, opened.identity.as_deref(), &stop)?;
    link.ask(&Message::Verified(Box::new(found.clone())))?;
    if is_stdio {
        terminal::say(&found.headline);
    } else {
        terminal::show_status(&found, format)?;
    }
    Ok(exit_of(&found.level))
}

/// Returns the exit code for a document of this level.
pub(super) fn exit_of(level: &str) -> Exit {
    match level {
        "danger" => Exit::Finding,
        "warning" => Exit::NOT_MEASURED,
        _ => Exit::Done,
    }
}
