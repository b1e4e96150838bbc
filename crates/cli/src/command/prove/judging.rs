//! What `app` and `replay` have in common: subjects and profiles by what was typed, and how failures of the prover end.

use std::sync::Arc;

use plumb_block::Bytes;
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::JudgeError;
use plumb_prove::profile::DriveProfile;
use plumb_prove::proof::SubjectWords;
use plumb_prove::session::SessionError;
use plumb_prove::subject::{Subject, named};

use crate::exit::{Exit, Refusal, usage};

/// The subject that was typed.
///
/// # Errors
/// A usage error if there is none.
pub(super) fn subject(words: &SubjectWords) -> Result<Arc<dyn Subject>, Refusal> {
    match words {
        SubjectWords::BuiltIn(name) => named(name).map_err(usage),
        SubjectWords::Command { .. } => Err(Refusal::new(Exit::Failed, "not yet")),
    }
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
