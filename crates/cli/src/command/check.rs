//! `plumb check`: the main job, its report, and its exit code.

use std::path::Path;

use plumb_block::Nanos;
use plumb_check::{Checked, Drive, Ended, FailureKind, Request, Subject};
use plumb_measure::Out;
use plumb_path::Severity;
use plumb_report::{Format, render};
use plumb_target::Time;

use crate::arguments::CheckArguments;
use crate::command::running::default_seed;
use crate::exit::{Exit, Refusal};
use crate::progress::Bar;
use crate::surroundings::{parents, time_of_day};
use crate::{named, stop, terminal};

/// Checks, prints the report, and says how it ended.
pub(crate) fn run(arguments: CheckArguments) -> anyhow::Result<Exit> {
    let stop = stop::on_signals()?;
    let format = if arguments.json { Format::Json } else { Format::Terminal };
    let mut bar = Bar::on_stderr();
    let subject = subject(&arguments.target)?;
    let checked = plumb_check::check(&request(subject, arguments), &mut bar, &stop, &time_of_day);
    let checked = checked.map_err(|error| {
        let exit = match error.kind() {
            FailureKind::Usage => Exit::Usage,
            FailureKind::NotMeasured => Exit::NotMeasured,
            FailureKind::Refused => Exit::Refused,
            FailureKind::Failed => Exit::Failed,
        };
        Refusal::because(exit, error)
    })?;
    terminal::print(&render(&checked.recording, format, terminal::style())?)?;
    say_end(&checked);
    Ok(exit_of(&checked))
}

/// What is named: a path, or a simulated drive. What a server exports may hold anybody's data, and is refused.
fn subject(typed: &Path) -> anyhow::Result<Subject> {
    let Some(device) = named::device(typed.as_os_str())? else {
        return Ok(Subject::Directory(typed.to_owned()));
    };
    let path = device.survey().paths.swap_remove(0);
    match (device.time, device.opened.counters) {
        (Time::Virtual(clock), Some(counters)) => Ok(Subject::Drive(Box::new(Drive {
            name: device.opened.shown,
            device: device.opened.device,
            counters,
            path,
            clock,
        }))),
        _ => {
            let name = device.opened.shown;
            let message = format!(
                "{name} is a block device, and a check writes: it would destroy what is on it. Look at it with \
                 `plumb survey {name}`, or load it with `plumb load {name}`"
            );
            Err(Refusal::new(Exit::Refused, message).into())
        }
    }
}

fn request(subject: Subject, arguments: CheckArguments) -> Request {
    let started_at = time_of_day();
    let stem = format!("plumb-check-{}", started_at.replace(['-', ':'], ""));
    Request {
        subject,
        length: Nanos::secs(arguments.seconds),
        size: arguments.size,
        seed: arguments.seed.unwrap_or_else(|| default_seed([&*arguments.target.to_string_lossy()])),
        out: arguments.out.map_or_else(|| Out::Within { parents: parents(), stem }, Out::At),
        argv: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        started_at,
    }
}

/// What is said after the report: where the page is, and why the check is not whole.
fn say_end(checked: &Checked) {
    match &checked.ended {
        Ended::Complete => {}
        Ended::Interrupted => terminal::say("plumb: interrupted; what was measured until then is kept"),
        Ended::NotMeasured(reason) | Ended::Failed(reason) => terminal::say(&format!("plumb: {reason}")),
    }
    if let Some(directory) = &checked.run_directory {
        terminal::say(&format!("plumb: report: {}", directory.join(Format::Html.file_name()).display()));
    }
}

fn exit_of(checked: &Checked) -> Exit {
    let found =
        checked.recording.document.verdicts.iter().any(|verdict| verdict.severity >= Severity::Warning);
    let ended = match &checked.ended {
        Ended::Complete => Exit::Done,
        Ended::Interrupted | Ended::NotMeasured(_) => Exit::NotMeasured,
        Ended::Failed(_) => Exit::Failed,
    };
    if found { ended.and(Exit::Finding) } else { ended }
}
