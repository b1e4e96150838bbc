//! `plumb load --profile`: workloads that are named after an application.

use std::path::{Path, PathBuf};

use plumb_application::{self as application, Limits, Profile, Variant};
use plumb_dialect::{Meaning, native::Words};
use plumb_report::{Format, Style, render};
use plumb_trial::{ProfileRun, Trial};

use crate::command::running::{Running, default_seed};
use crate::exit::{Exit, Refusal, usage};
use crate::terminal;

/// Says what a profile does, on what that rests, and what it leaves out; of all of them with `list`.
pub(crate) fn explain(name: &str) -> anyhow::Result<Exit> {
    if name == "list" {
        let line = |profile: &Profile| {
            format!("{:18} {:10} {}\n", profile.name, profile.provenance.name(), profile.summary)
        };
        terminal::print(&application::profiles().iter().map(line).collect::<String>())?;
        return Ok(Exit::Done);
    }
    let (profile, _) = find(name)?;
    terminal::print(&application::explain(profile))?;
    Ok(Exit::Done)
}

/// Runs the profile that was typed.
pub(crate) fn run(running: Running, name: &str, words: &Words, style: Style) -> anyhow::Result<Exit> {
    let (profile, variant) = find(name)?;
    let limits = words.profile_limits().map_err(usage)?;
    let limits = Limits {
        duration: limits.duration,
        count: limits.count,
        threads: limits.threads,
        scale: None,
        seed: limits.seed.unwrap_or_else(|| default_seed(words.targets().iter().map(String::as_str))),
    };
    let print = |trial: &Trial| terminal::print(&render(&trial.recording, Format::Terminal, style)?);
    if profile.needs_directory() {
        let directory = match &words.targets()[..] {
            [] => PathBuf::from("."),
            [one] => PathBuf::from(one),
            [_, more, ..] => {
                return Err(
                    Refusal::new(Exit::Usage, format!("{more}: a profile takes one directory")).into()
                );
            }
        };
        check_directory(&profile.name, &directory)?;
        return running.run_profile(&ProfileRun { profile: name.to_owned(), directory, limits }, &print);
    }
    let [target] = &words.targets()[..] else {
        let problem =
            format!("profile {} works on blocks: expected one target, a file or a disk", profile.name);
        return Err(Refusal::new(Exit::Usage, problem).into());
    };
    let scenario = application::scenario(profile, variant, target, &limits).map_err(usage)?;
    running.of_profile(name).run(Meaning { scenario, notes: Vec::new() }, &print)
}

/// Refuses a place that is no directory, and says what would make it one.
fn check_directory(profile: &str, directory: &Path) -> Result<(), Refusal> {
    let place = directory.display();
    let problem = match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is no directory; name the directory that it is in, or another one".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no such directory; make it with `mkdir -p {place}`, or name one that exists")
        }
        Err(error) => format!("cannot be looked at: {error}; name a directory that you may enter"),
    };
    let problem = format!("{place}: {problem} (profile {profile} makes its files in a directory)");
    Err(Refusal::new(Exit::Usage, problem))
}

fn find(name: &str) -> Result<(&'static Profile, &'static Variant), Refusal> {
    application::find(name).map_err(usage)
}
