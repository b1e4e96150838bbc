//! Recording prepared for exploration, with the drive profiles, the subject, and the place of the states.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Nanos, RealClock};
use plumb_linux::space::space_at;
use rustix::fs::{Access, StatVfsMountFlags, access, statfs, statvfs};

use super::kept::KeptRecording;
use crate::error::{Error, Result};
use crate::explore::Limits;
use crate::judge::Judge;
use crate::profile::DriveProfile;
use crate::recording::Recording;
use crate::session::{RecordedWork, Window};
use crate::subject::Subject;

/// Memory that states may take, in multiples of the contents of a recording.
const STATES_IN_MEMORY: u64 = 32;
/// Free memory below which states are created on disk.
const FREE_MIN: Bytes = Bytes::mib(64);
/// Type number of tmpfs in statfs(2).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Recording with everything needed to judge its states.
pub struct ReadyRecording {
    /// Recording.
    pub kept: KeptRecording,
    /// Drive profiles, at least one.
    pub profiles: Vec<DriveProfile>,
    subject: Arc<dyn Subject>,
    directory: PathBuf,
    mount_here: bool,
    stop: Arc<AtomicBool>,
    clock: RealClock,
}

impl ReadyRecording {
    /// Prepares the recording for drives of these profiles.
    ///
    /// # Errors
    /// Those of [`SubjectWords::subject`](super::SubjectWords::subject) and [`DriveProfile::parse_all`], and
    /// profiles that do not fit the recording.
    pub fn new(
        kept: KeptRecording,
        drives: &[String],
        mount_here: bool,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self> {
        let timeout = Nanos::from_secs_f64(kept.check_timeout);
        let RecordedWork { recording, cache, file_system_options, .. } = &kept.recorded;
        let (block, further) = (recording.logical_block, &file_system_options.further);
        let profiles = DriveProfile::parse_all(drives, block, kept.file_system, further, mount_here)?;
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
        let subject = kept.subject.subject(timeout, stop)?;
        let (stop, clock) = (Arc::clone(stop), RealClock::start());
        Ok(Self { kept, profiles, subject, directory, mount_here, stop, clock })
    }

    /// Restricts the cuts to the moment of the requested power cut, if there was one, and to `window`.
    /// Returns a description of the range.
    ///
    /// # Errors
    /// Those of [`Window::within`].
    pub fn confine(&mut self, window: Option<&Window>) -> Result<Option<String>> {
        let recorded = &mut self.kept.recorded;
        let cut = recorded.cut_after();
        if cut.is_some() {
            recorded.from = recorded.until;
        }
        if let Some(window) = window {
            let work = window.within(recorded)?;
            (recorded.from, recorded.until) = (work.start, work.end);
        }
        let cut = cut.map(|after| format!("where it was requested, after {after}"));
        Ok(cut.or_else(|| window.map(|window| format!("in {window}"))))
    }

    /// Returns the judge for the first profile, without a time limit.
    pub fn judge(&self) -> Judge<'_> {
        Judge {
            recorded: &self.kept.recorded,
            profile: &self.profiles[0],
            limits: Limits::default(),
            seed: 0,
            subject: &self.subject,
            file_system: self.kept.file_system,
            workers: 1,
            directory: &self.directory,
            timeout: Nanos::from_secs_f64(self.kept.check_timeout),
            stop: &self.stop,
            clock: &self.clock,
            until: Nanos(u64::MAX),
            mount_here: self.mount_here,
            results: None,
        }
    }
}

/// Returns the directory for states of the POSIX model: in memory, if there is room for many states. On ext4,
/// creating a file takes a millisecond where others were removed within seconds (recently_deleted in
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
