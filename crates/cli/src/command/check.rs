//! `plumb check`: measures and judges a directory or drive, and reports.

use std::path::Path;

use plumb_block::FailureKind;
use plumb_dialect::native;
use plumb_report::Kind;
use plumb_report::progress::Bar;
use plumb_targets::{Name, OpenedTarget, Permission, Scheme, open_foreign};
use plumb_text::shell_word;
use plumb_trial::CheckRequest;

use crate::arguments::check::CheckArguments;
use crate::command::running::{default_seed, exit_of, say_end, with_observer};
use crate::exit::{Exit, Refusal};
use crate::surroundings::{argv, out, time_of_day};
use crate::terminal;

/// Checks, prints the report, and returns the exit code.
pub(crate) fn run(arguments: CheckArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Run)?;
    refuse_exports(&arguments.target)?;
    let (style, strictness) = (arguments.detail.style(), arguments.strictness);
    let request = request(arguments);
    let bar = |_: &_| Box::new(Bar::on_stderr()) as _;
    let trial = with_observer(&bar, &|context, observer| plumb_trial::check(&request, context, observer))?;
    terminal::show(&trial.recording, format, style)?;
    say_end(&trial, false);
    Ok(exit_of(&trial, strictness))
}

/// Refuses an export of a server, which may hold data of others.
fn refuse_exports(typed: &Path) -> anyhow::Result<()> {
    let Ok(Name::Scheme { scheme, .. }) = Name::parse(typed) else { return Ok(()) };
    if matches!(scheme, Scheme::Sim | Scheme::Cache) {
        return Ok(());
    }
    let Some(OpenedTarget { shown: name, .. }) = open_foreign(typed.as_os_str())? else { return Ok(()) };
    let word = shell_word(&name);
    let message = format!(
        "{name} is a block device, and a check writes: it would destroy what is on it. Look at it with `plumb survey \
         {word}`, or load it with `plumb load {word}`"
    );
    Err(Refusal::new(FailureKind::Refused, message).into())
}

fn request(arguments: CheckArguments) -> CheckRequest {
    let started_at = time_of_day();
    CheckRequest {
        permission: Permission { overwrite: arguments.overwrite, ..Permission::default() },
        length: arguments.seconds,
        size: arguments.size,
        seed: arguments.seed.unwrap_or_else(|| default_seed([&*arguments.target.to_string_lossy()])),
        target: arguments.target,
        out: out(&arguments.recording, "check"),
        argv: argv(),
        started_at,
        words: native::write,
    }
}
