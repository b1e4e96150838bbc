//! `plumb prove verify`: what is there after the cut, compared with what the witness recorded.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use plumb_block::{Nanos, RealClock, Time};
use plumb_prove::witness::{Link, Message, Peer, VerifyDocument, fetch, verify};
use plumb_targets::{Intent, Permission};

use super::writer::{name_of, open};
use crate::exit::Exit;
use crate::{stop, terminal};

/// What `plumb prove verify` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "It reads only. Exit code 1: something that was acknowledged as durable is not there."
)]
pub(crate) struct VerifyArguments {
    /// The target of the writer
    target: String,

    /// The witness of the writer, in the same words
    #[arg(long, value_name = "COMMAND")]
    witness: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Does what was typed.
pub(crate) fn run(arguments: &VerifyArguments) -> anyhow::Result<Exit> {
    let stop = stop::on_signals()?;
    let time = Time::Real(Arc::new(RealClock::start()));
    let opened = open(&arguments.target, Intent::READ, &Permission::default(), &time)?;
    let peer = Peer::typed(&arguments.witness);
    let is_stdio = peer == Peer::Stdio;
    let mut link = Link::connect(peer, None, Duration::ZERO)?;
    let record = fetch(&mut link, &name_of(&opened), opened.identity.clone())?;
    let found = verify(&record, &*opened.device, opened.identity.as_deref(), &stop, &mut |_| ())?;
    link.ask(&Message::Verified(Box::new(found.clone())))?;
    if is_stdio {
        terminal::say(&found.headline);
    } else if arguments.json {
        terminal::print_json(&found)?;
    } else {
        terminal::print(&text(&found))?;
    }
    Ok(exit_of(&found.level))
}

/// How a document of this level ends.
pub(super) fn exit_of(level: &str) -> Exit {
    match level {
        "danger" => Exit::Finding,
        "warning" => Exit::NotMeasured,
        _ => Exit::Done,
    }
}

fn text(found: &VerifyDocument) -> String {
    let VerifyDocument { headline, run, blocks_read, acknowledged, .. } = found;
    let mut lines =
        vec![format!("{headline}\nrun {run}, {blocks_read} blocks read, {acknowledged} writes acknowledged")];
    lines.extend(found.oldest_loss.map(|seconds| {
        let before = Nanos::from_secs_f64(seconds);
        format!("the oldest missing write was durable {before} before the last that the witness heard")
    }));
    if found.unreadable_at_risk > 0 {
        let blocks = found.unreadable_at_risk;
        lines.push(format!("{blocks} blocks that were being written cannot be read, which is allowed"));
    }
    for example in &found.examples {
        let (class, at) = (example.class, example.offset.0);
        let write = example.write.map_or_else(|| "no write".to_owned(), |write| format!("write {write}"));
        let ago = example.before_cut.map(Nanos::from_secs_f64);
        let ago = ago.map_or_else(String::new, |ago| format!(", durable {ago} before the last heard"));
        let there = match (example.found_write, &example.found_run, example.found_offset) {
            (Some(write), _, Some(offset)) => format!("; there is write {write} for byte {}", offset.0),
            (None, Some(run), _) => format!("; there is a block of run {run}"),
            _ => String::new(),
        };
        lines.push(format!("  {class:<12} byte {at}: {write}{ago}{there}"));
    }
    lines.join("\n") + "\n"
}
