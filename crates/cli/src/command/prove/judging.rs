//! What `app` and `replay` have in common: subjects and profiles by what was typed, and how failures of the prover end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_block::Bytes;
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::JudgeError;
use plumb_prove::profile::DriveProfile;
use plumb_prove::proof::SubjectWords;
use plumb_prove::session::SessionError;
use plumb_prove::subject::{AckBy, Program, Programs, Subject, named};
use plumb_report::printable::shell_word;

use crate::exit::{Exit, Refusal, usage};

/// The subject that was typed. Its programs may take so long each, and are killed at a `stop`.
///
/// # Errors
/// A usage error if there is none.
pub(super) fn subject(
    words: &SubjectWords,
    timeout: Duration,
    stop: &Arc<AtomicBool>,
) -> Result<Arc<dyn Subject>, Refusal> {
    match words {
        SubjectWords::BuiltIn(name) => named(name).map_err(usage),
        SubjectWords::Command { setup, run, check, ack } => Ok(Arc::new(Programs {
            run: Program { line: run.clone(), ack: ack.parse().map_err(usage)? },
            check: check.clone(),
            setup: setup.clone(),
            timeout,
            stop: Arc::clone(stop),
        })),
    }
}

/// What does the work in a process of its own, which can be traced; `None` if it cannot be.
pub(super) fn program(words: &SubjectWords) -> Option<Program> {
    let line = match words {
        SubjectWords::BuiltIn(name) => {
            let plumb = std::env::current_exe().ok()?;
            format!(
                "exec {} prove subject {} \"${{PLUMB_DEVICE:-$PWD}}\"",
                shell_word(&plumb.display().to_string()),
                shell_word(name)
            )
        }
        // What comes in another way cannot be told apart from what strace says.
        SubjectWords::Command { run, ack, .. } if ack == AckBy::ControlFile.name() => run.clone(),
        SubjectWords::Command { .. } => return None,
    };
    Some(Program { line, ack: AckBy::ControlFile })
}

/// The drive profiles that were typed.
///
/// # Errors
/// A usage error if there is no such profile, or one is typed twice.
pub(super) fn profiles(typed: &[String], logical_block: Bytes) -> Result<Vec<DriveProfile>, Refusal> {
    if let Some((place, twice)) =
        typed.iter().enumerate().find(|(place, name)| typed[..*place].contains(name))
    {
        return Err(Refusal::new(
            Exit::Usage,
            format!("--drive: `{twice}` is there twice (number {})", place + 1),
        ));
    }
    typed.iter().map(|name| DriveProfile::of(name, logical_block).map_err(usage)).collect()
}

/// What breaks a drive's contract may crash the kernel that mounts it.
///
/// # Errors
/// A refusal where that was not allowed.
pub(super) fn allow(
    profiles: &[DriveProfile],
    file_system: FileSystem,
    mount_here: bool,
) -> Result<(), Refusal> {
    let breaks = profiles.iter().find(|profile| profile.breaks_contract);
    match breaks {
        Some(profile) if !mount_here && file_system != FileSystem::None => {
            Err(judging(JudgeError::NeedsGuest { profile: profile.name.clone(), file_system }))
        }
        _ => Ok(()),
    }
}

/// Nothing was recorded.
pub(super) fn recording(error: SessionError) -> Refusal {
    let exit = match &error {
        SessionError::Missing { .. } | SessionError::Interrupted => Exit::NotMeasured,
        _ => Exit::Failed,
    };
    Refusal::because(exit, error)
}

/// Nothing could be judged.
pub(super) fn judging(error: JudgeError) -> Refusal {
    let exit = match &error {
        JudgeError::NeedsGuest { .. } => Exit::Refused,
        JudgeError::Results { .. } | JudgeError::NoSuchState { .. } => Exit::Usage,
        JudgeError::Check(_) => Exit::NotMeasured,
        _ => Exit::Failed,
    };
    Refusal::because(exit, error)
}
