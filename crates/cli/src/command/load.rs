//! `plumb load`: a workload in plumb's own words.

use plumb_dialect::{Meaning, native};
use plumb_report::{Format, render};
use plumb_target::{Name, Scheme};

use crate::arguments::LoadArguments;
use crate::command::profile;
use crate::command::running::{Running, default_seed};
use crate::exit::{Exit, Refusal, usage};
use crate::terminal;

/// What to do about a file of words that cannot be read.
const UNREAD: &str = "check the name: what ends in .toml is a file of words, not a target";

/// Runs what was typed, as words or as a file of them.
pub(crate) fn run(arguments: &LoadArguments) -> anyhow::Result<Exit> {
    if arguments.explain {
        return profile::explain(arguments.profile.as_deref().unwrap_or("list"));
    }
    let running = Running::begin("load", arguments.own.clone());
    if let Some(name) = &arguments.profile {
        refuse_devices(name, &arguments.words.targets())?;
        return profile::run(running, name, &arguments.words, arguments.detail.style());
    }
    running.run(meaning(&arguments.words)?, &|trial| {
        terminal::print(&render(&trial.recording, Format::Terminal, arguments.detail.style())?)
    })
}

/// What words mean, or the file of them that is among their targets.
///
/// # Errors
/// A usage error that names the word.
pub(super) fn meaning(words: &native::Words) -> Result<Meaning, Refusal> {
    let Some((file, typed)) = &words.file().map_err(usage)? else {
        let seed = default_seed(words.targets().iter().map(String::as_str));
        return words.meaning(seed).map_err(usage);
    };
    let text = crate::files::read(file)
        .map_err(|error| Refusal::new(Exit::Usage, format!("{file}: {error}; {UNREAD}")))?;
    let first = native::read_under(&text, file, typed, 0).map_err(usage)?;
    let jobs = first.spans.iter().flat_map(|span| &span.jobs);
    let seed = default_seed(jobs.flat_map(|job| job.targets.iter().map(|target| target.name.as_str())));
    let scenario = native::read_under(&text, file, typed, seed).map_err(usage)?;
    Ok(Meaning { scenario, notes: Vec::new() })
}

/// A profile that works on files cannot be run on a device that the kernel does not know.
fn refuse_devices(profile: &str, targets: &[String]) -> Result<(), Refusal> {
    let is_of_files = plumb_application::find(profile).is_ok_and(|(profile, _)| profile.needs_directory());
    let device = targets.iter().find_map(|target| match Name::parse(target) {
        Ok(Name::Scheme { scheme, rest }) if is_of_files => Some((target, scheme, rest)),
        _ => None,
    });
    let Some((target, scheme, rest)) = device else { return Ok(()) };
    let how = match scheme {
        Scheme::Sim => {
            let model = rest.split('?').next().unwrap_or_default();
            format!(
                "serve the drive with `plumb drive serve {model} --attach`, make a file system on its device, mount it"
            )
        }
        _ => "attach it as a block device (nbd-client), make a file system on it, mount it".to_owned(),
    };
    let problem = format!(
        "{target}: profile {profile} works on files, and this is a drive; {how}, and name a directory there (a directory of \
         this very name is ./{target})"
    );
    Err(Refusal::new(Exit::Usage, problem))
}
