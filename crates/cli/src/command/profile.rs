//! `plumb load --profile`: workloads that are named after an application.

use std::path::Path;

use plumb_application::{self as application, Limits, Profile, Variant};
use plumb_block::shell_word;
use plumb_dialect::{Meaning, native::Words};
use plumb_report::{Format, Style};
use plumb_targets::{Name, Scheme};
use plumb_trial::Trial;
use plumb_workload::Scenario;

use crate::command::running::{RunningCommand, default_seed};
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
pub(crate) fn run(running: RunningCommand, name: &str, words: &Words, style: Style) -> anyhow::Result<Exit> {
    let print = |trial: &Trial| terminal::show(&trial.recording, Format::Terminal, style);
    let scenario = scenario(name, words)?;
    running.of_profile(name).run(Meaning { scenario, notes: Vec::new() }, &print)
}

/// Returns what a profile does where and for as long as `words` say.
///
/// # Errors
/// A usage error that names what makes no sense.
pub(crate) fn scenario(name: &str, words: &Words) -> Result<Scenario, Refusal> {
    let (profile, variant) = find(name)?;
    let targets = words.targets();
    let limits = words.profile_limits().map_err(usage)?;
    let limits = Limits {
        duration: limits.duration,
        count: limits.count,
        threads: limits.threads,
        scale: None,
        seed: limits.seed.unwrap_or_else(|| default_seed(targets.iter().map(String::as_str))),
    };
    if profile.needs_directory() {
        refuse_devices(&profile.name, &targets)?;
        let directory = match &targets[..] {
            [] => ".",
            [one] => one,
            [_, more, ..] => {
                return Err(Refusal::new(Exit::Usage, format!("{more}: a profile takes one directory")));
            }
        };
        check_directory(&profile.name, Path::new(directory))?;
        return application::scenario(profile, variant, directory, &limits).map_err(usage);
    }
    let [target] = &targets[..] else {
        let problem =
            format!("profile {} works on blocks: expected one target, a file or a disk", profile.name);
        return Err(Refusal::new(Exit::Usage, problem));
    };
    application::scenario(profile, variant, target, &limits).map_err(usage)
}

/// Refuses a place that is no directory, and says what would make it one.
fn check_directory(profile: &str, directory: &Path) -> Result<(), Refusal> {
    let place = directory.display();
    let problem = match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is not a directory; name the directory that it is in, or another one".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!(
                "there is no such directory; make it with `mkdir -p {}`, or name one that exists",
                shell_word(&place.to_string())
            )
        }
        Err(error) => format!("cannot be looked at: {error}; name a directory that you may enter"),
    };
    let problem = format!("{place}: {problem} (profile {profile} makes its files in a directory)");
    Err(Refusal::new(Exit::Usage, problem))
}

fn find(name: &str) -> Result<(&'static Profile, &'static Variant), Refusal> {
    application::find(name).map_err(usage)
}

/// A profile that works on files cannot be run on a device that the kernel does not know.
fn refuse_devices(profile: &str, targets: &[String]) -> Result<(), Refusal> {
    let device = targets.iter().find_map(|target| match Name::parse(target) {
        Ok(Name::Scheme { scheme, rest }) => Some((target, scheme, rest)),
        _ => None,
    });
    let Some((target, scheme, rest)) = device else { return Ok(()) };
    let how = match scheme {
        Scheme::Sim => {
            let model = rest.split('?').next().unwrap_or_default();
            format!(
                "serve the drive with `plumb drive serve {} --attach`, make a file system on its device, mount it",
                shell_word(model)
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
