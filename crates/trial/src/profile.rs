//! Scenarios of application profiles, on the targets that a user names.

use std::io::ErrorKind;
use std::path::Path;

use plumb_application::{self as application, Limits};
use plumb_targets::{Name, Scheme};
use plumb_text::shell_word;
use plumb_workload::Scenario;

use crate::error::TrialError;

/// Returns the scenario of the profile `name` on `targets` within `limits`. A profile that works on files
/// takes one directory, by default the current one.
///
/// # Errors
/// A usage error that names the invalid value.
pub fn profile_scenario(name: &str, targets: &[String], limits: &Limits) -> Result<Scenario, TrialError> {
    let (profile, variant) = application::find(name)?;
    let target = match targets {
        [] if profile.needs_directory() => ".",
        [one] => one,
        [_, more, ..] if profile.needs_directory() => {
            refuse_devices(&profile.name, targets)?;
            return Err(TrialError::usage(format!("{more}: a profile takes one directory")));
        }
        _ => {
            let expected = "works on blocks: expected one target, a file or a disk";
            return Err(TrialError::usage(format!("profile {} {expected}", profile.name)));
        }
    };
    if profile.needs_directory() {
        refuse_devices(&profile.name, targets)?;
        check_directory(&profile.name, Path::new(target))?;
    }
    Ok(application::scenario(profile, variant, target, limits)?)
}

/// Refuses a place that is not a directory, with a remedy.
fn check_directory(profile: &str, directory: &Path) -> Result<(), TrialError> {
    let place = directory.display();
    let problem = match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is not a directory; name the directory that it is in, or another one".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!(
                "this directory does not exist; make it with `mkdir -p {}`, or name one that exists",
                shell_word(&place.to_string())
            )
        }
        Err(error) => format!("cannot be looked at: {error}; name a directory that you may enter"),
    };
    Err(TrialError::usage(format!("{place}: {problem} (profile {profile} makes its files in a directory)")))
}

/// Refuses to run a profile that works on files on a device that the kernel does not know.
fn refuse_devices(profile: &str, targets: &[String]) -> Result<(), TrialError> {
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
    Err(TrialError::usage(format!(
        "{target}: profile {profile} works on files, and this is a drive; {how}, and name a directory there (a directory of \
         this very name is ./{target})"
    )))
}
