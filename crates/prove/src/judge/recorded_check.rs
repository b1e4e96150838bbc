//! Recording of the recovery of a state, or of its check if the check recovers it: all writes from the
//! mounted file system until they are on the drive.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use plumb_block::{Clock, Lba, LbaRange, Nanos, Op, RealClock};
use plumb_linux::isolated_thread;
use plumb_serve::attach::{AttachOptions, Attachment};

use super::checker::Checker;
use super::parameters::Judge;
use crate::error::{Error, Result, cannot};
use crate::explore::OwnedState;
use crate::mount_point::MountPoint;
use crate::recording::{Content, Event, Recorder, Recording};
use crate::session::{IN_FLIGHT_MIN, RecordedWork, attach};
use crate::state_device::StateDevice;

impl Judge<'_> {
    /// Records the recovery of a state whose file system is mounted: the check, unless the subject has a
    /// separate recovery. At the start of the recording the state is durable, and the required
    /// acknowledgement is given. Returns `None` if nothing was written.
    ///
    /// # Errors
    /// If the state cannot be mounted, or the check itself fails.
    pub(crate) fn recorded_check(&self, state: OwnedState) -> Result<Option<RecordedWork>> {
        let (required, checker) = (state.required, Checker::new(self)?);
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let recorder = Recorder::continuing(durable(&self.recorded.recording, &state), Arc::clone(&clock));
        let recorder = recorder.with_in_flight_min(IN_FLIGHT_MIN);
        let device = StateDevice::new(Arc::clone(&self.recorded.recording), clock);
        device.hold(state);
        let mount_point = MountPoint::new(self.directory)?;
        let options = &self.recorded.file_system_options;
        let drives = options.drives(&recorder.device(Arc::new(device))).into_iter();
        let attached = drives.map(|drive| attach(drive, "check", &AttachOptions::default()));
        let mut attached = attached.collect::<Result<Vec<_>>>()?;
        let paths: Vec<PathBuf> = attached.iter().map(|drive| drive.path().to_owned()).collect();
        let at = mount_point.path().to_owned();
        let checked = isolated_thread::run(|| {
            let mounted = self.file_system.mount_all(&paths, &at, options)?;
            let from = recorder.happened(Event::Marked("the check begins".to_owned()));
            checker.write(mounted.path(), required)?;
            // The kernel writes all of it back eventually.
            mounted.sync().map_err(cannot("write back what the check has written"))?;
            let until = recorder.happened(Event::Marked("the check has ended".to_owned()));
            mounted.unmount()?;
            Ok::<_, Error>((from, until))
        });
        let checked = checked.map_err(cannot("start a thread"))?;
        attached.iter_mut().try_for_each(Attachment::detach)?;
        mount_point.close()?;
        let (from, until) = checked?;
        let moments = self.recorded.moments.clone();
        let file_system_options = options.clone();
        let recorded = RecordedWork::new(recorder.recording(), from, until);
        let recorded = RecordedWork { moments, file_system_options, ..recorded };
        let has_written = recorded.facts.writes + recorded.facts.discards > 0;
        Ok(has_written.then_some(recorded))
    }
}

/// Returns a recording that begins with a state of another one, written and flushed.
fn durable(of: &Recording, state: &OwnedState) -> Recording {
    let mut recording = Recording::of_blank(of.size, of.logical_block);
    let held = state.durable.blocks_in(LbaRange::new(Lba(0), of.blocks()));
    let mut blocks: BTreeMap<u64, Content> = held.collect();
    blocks.extend(state.changes.iter().copied());
    for (lba, content) in blocks {
        let range = LbaRange::new(Lba(lba), 1);
        let write = recording.submit(Nanos(0), Op::Write { fua: false }, range, of.contents.bytes(content));
        recording.happened(Nanos(0), Event::Completed(write));
    }
    recording.further_drives.clone_from(&of.further_drives);
    for first in [0].iter().chain(&of.further_drives) {
        let flush = recording.submit(Nanos(0), Op::Flush, LbaRange::new(Lba(*first), 0), &[]);
        recording.happened(Nanos(0), Event::Completed(flush));
    }
    if let Some(number) = state.required {
        recording.happened(Nanos(0), Event::Acknowledged(number));
    }
    recording
}
