//! Common parts of `app` and `replay`: subjects and profiles by what was typed, and how failures of the
//! prover end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_block::Bytes;
use plumb_linux::apart;
use plumb_linux::space::space_at;
use plumb_prove::Error;
use plumb_prove::drives::FurtherDrive;
use plumb_prove::explore::Limits;
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::Judge;
use plumb_prove::profile::DriveProfile;
use plumb_prove::proof::{KeptRecording, SubjectWords};
use plumb_prove::recording::Recording;
use plumb_prove::session::RecordedWork;
use plumb_prove::subject::{AckBy, CheckBy, Program, Programs, Subject, User, named};
use plumb_report::printable::shell_word;
use rustix::fs::{Access, StatVfsMountFlags, access, statfs, statvfs};

use crate::exit::{Exit, Refusal};

/// Size of memory that states may take, in contents of a whole recording.
const STATES_IN_MEMORY: u64 = 32;
/// Free memory below which states are made elsewhere.
const FREE_MIN: Bytes = Bytes::mib(64);
/// Type of a file system in memory: statfs(2).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Returns the subject that was typed. Its programs may take so long each, and are killed at a `stop`.
///
/// # Errors
/// A usage error if there is none.
pub(super) fn subject(
    words: &SubjectWords,
    timeout: Duration,
    stop: &Arc<AtomicBool>,
) -> plumb_prove::Result<Arc<dyn Subject>> {
    match words {
        SubjectWords::BuiltIn(name) => named(name),
        SubjectWords::Command { setup, run, check, recover, read, ack, user } => Ok(Arc::new(Programs {
            run: Program { line: run.clone(), ack: ack.parse()?, user: as_user(user.as_deref())? },
            check: match check {
                Some(line) => CheckBy::Command(line.clone()),
                None => CheckBy::Moments(read.clone()),
            },
            recover: recover.clone(),
            setup: setup.clone(),
            timeout,
            stop: Arc::clone(stop),
        })),
    }
}

/// Returns a user by name, if there is a name.
fn as_user(name: Option<&str>) -> plumb_prove::Result<Option<User>> {
    name.map(User::named).transpose()
}

/// Returns the program that does the work in a process of its own, which can be traced; `None` if it cannot
/// be.
pub(super) fn program(words: &SubjectWords) -> Option<Program> {
    let mut user = None;
    let line = match words {
        SubjectWords::BuiltIn(name) => {
            if let Some(program) = named(name).ok()?.program() {
                return Some(program);
            }
            let plumb = std::env::current_exe().ok()?;
            format!(
                "exec {} prove subject {} \"${{PLUMB_DEVICE:-$PWD}}\"",
                shell_word(&plumb.display().to_string()),
                shell_word(name)
            )
        }
        // Acknowledgements that come in another way cannot be distinguished from the output of strace.
        SubjectWords::Command { run, ack, user: name, .. } if ack == AckBy::ControlFile.name() => {
            user = as_user(name.as_deref()).ok()?;
            run.clone()
        }
        SubjectWords::Command { .. } => return None,
    };
    Some(Program { user, ..Program::acknowledging(line) })
}

/// Returns a line for the shell whose program is named from the current directory (`./x.sh`), with the whole
/// path of that: programs start elsewhere. Any other line stays as it is.
pub(super) fn from_here(line: &str) -> String {
    let (program, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let is_from_here = program.starts_with("./") || program.starts_with("../");
    let found = is_from_here.then(|| std::fs::canonicalize(program).ok()).flatten();
    found.map_or_else(|| line.to_owned(), |path| shell_word(&path.display().to_string()) + rest)
}

/// Returns the files of the programs that these lines for the shell name, and those that they name from the
/// root: other words are names in the directory where the program starts.
pub(super) fn files_of<'a>(lines: impl IntoIterator<Item = &'a String>) -> Vec<PathBuf> {
    let words = lines.into_iter().flat_map(|line| {
        let words = line.split_whitespace().enumerate();
        words.filter(|(number, word)| (*number == 0 && word.contains('/')) || word.starts_with('/'))
    });
    words.map(|(_, word)| PathBuf::from(word)).collect()
}

/// Returns the drive profiles that were typed. States of those that break a drive's contract may crash the
/// kernel that mounts them.
///
/// # Errors
/// A usage error if there is no such profile, one is typed twice, or not all are beneath the same cache; a
/// refusal where such a state would be mounted and `mount_here` does not allow it.
pub(super) fn profiles(
    typed: &[String],
    logical_block: Bytes,
    file_system: FileSystem,
    further: &[FurtherDrive],
    mount_here: bool,
) -> plumb_prove::Result<Vec<DriveProfile>> {
    let mut profiles: Vec<DriveProfile> = Vec::new();
    for name in typed {
        let profile = DriveProfile::parse(name, logical_block)?.beside(further, logical_block)?;
        if profiles.contains(&profile) {
            return Err(Error::usage(format!("--drive: `{name}` is given twice")));
        }
        if profiles.first().is_some_and(|first| first.cache != profile.cache) {
            return Err(Error::usage(format!(
                "--drive: `{name}` needs another recording than `{}`: a run records once, over one cache or \
                 none",
                typed[0]
            )));
        }
        if !mount_here {
            profile.may_be_mounted(file_system)?;
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Returns the directory in which states of the POSIX model are made: in memory, if that has room for many.
/// ext4 takes a millisecond for a file where others were removed within seconds (recently_deleted in
/// fs/ext4/ialloc.c).
fn directory_of_states(recording: &Recording) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let needed = Bytes(recording.contents.len() as u64 * recording.logical_block.0 * STATES_IN_MEMORY);
    let has_room = space_at(memory).is_ok_and(|space| !space.read_only && space.free >= needed.max(FREE_MIN));
    let may_execute = statvfs(memory).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::NOEXEC));
    let is_memory = statfs(memory).is_ok_and(|found| found.f_type == TMPFS_MAGIC);
    let is_writable = access(memory, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    if has_room && may_execute && is_memory && is_writable { memory.to_owned() } else { std::env::temp_dir() }
}

/// A recording with all that judging its states takes.
pub(super) struct Ready {
    pub(super) kept: KeptRecording,
    pub(super) profiles: Vec<DriveProfile>,
    subject: Arc<dyn Subject>,
    directory: PathBuf,
    mount_here: bool,
    stop: Arc<AtomicBool>,
}

impl Ready {
    /// The recording, on drives of these profiles.
    ///
    /// # Errors
    /// As [`subject`] and [`profiles`].
    pub(super) fn new(
        kept: KeptRecording,
        drives: &[String],
        mount_here: bool,
        stop: &Arc<AtomicBool>,
    ) -> plumb_prove::Result<Self> {
        let timeout = Duration::from_secs_f64(kept.check_timeout);
        let RecordedWork { recording, cache, .. } = &kept.recorded;
        let further = &kept.recorded.file_system_options.further;
        let profiles = profiles(drives, recording.logical_block, kept.file_system, further, mount_here)?;
        if profiles.iter().any(|profile| profile.cache != *cache) {
            let drive = &drives[0];
            return Err(Error::usage(format!(
                "--drive: `{drive}` does not fit the recording, which was made over another cache, or none"
            )));
        }
        let directory = match kept.file_system.is_posix() {
            true => directory_of_states(recording),
            false => std::env::temp_dir(),
        };
        Ok(Self {
            subject: subject(&kept.subject, timeout, stop)?,
            profiles,
            kept,
            directory,
            mount_here,
            stop: Arc::clone(stop),
        })
    }

    /// Confines the cuts to the moment at which the power was cut on request, if it was. Returns when that
    /// was, in words.
    pub(super) fn confine(&mut self) -> Option<String> {
        let recorded = &mut self.kept.recorded;
        let after = recorded.cut_after()?;
        recorded.from = recorded.until;
        Some(after)
    }

    /// Judges states under the first of the profiles.
    pub(super) fn judge(&self) -> Judge<'_> {
        Judge {
            recorded: &self.kept.recorded,
            profile: &self.profiles[0],
            limits: Limits::default(),
            seed: 0,
            subject: &self.subject,
            file_system: self.kept.file_system,
            workers: 1,
            directory: &self.directory,
            timeout: Duration::from_secs_f64(self.kept.check_timeout),
            stop: &self.stop,
            mount_here: self.mount_here,
            results: None,
        }
    }
}

/// Lets what this process mounts be gone with it, however it ends. To be called before anything is mounted.
///
/// # Errors
/// If that may not be done here.
pub(super) fn private_mounts() -> Result<(), Refusal> {
    if !rustix::process::geteuid().is_root() {
        // Steps that need root report that themselves.
        return Ok(());
    }
    apart::private_mounts().map_err(|error| {
        let what =
            format!("cannot make a private mount namespace: {error}; give the container CAP_SYS_ADMIN");
        Refusal::new(Exit::NotMeasured, what)
    })
}
