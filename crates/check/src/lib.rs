//! The main job: survey the write path beneath a directory, measure a short load on it, and judge both.
//!
//! [`check`] is the whole program at a glance; [`plan`] says what it does and how long each part may take. It writes
//! to nothing but a test file of its own and the run directory.

mod append;
pub mod ended;
pub mod error;
mod io;
pub mod place;
pub mod plan;
mod prepare;
pub mod progress;
pub mod request;
mod session;
mod storage;
mod survey;
mod sync;

use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, in_one_line};
use plumb_linux::space::space_at;

pub use ended::Ended;
pub use error::{CheckError, FailureKind};
pub use place::Place;
pub use progress::{Progress, Silent};
pub use request::{Checked, Request};

use ended::Mishap;
use plan::{FREE_UNSIZED, PHASES, Phase, SizeError, file_size};
use session::Session;

/// Checks the place that `request` names. `now` gives the time of day, RFC 3339 in UTC. When `stop` becomes true the
/// check ends early and keeps what it has.
///
/// # Errors
/// [`CheckError`] if it cannot begin, or its recording cannot be written; whatever else goes wrong is in
/// [`Checked::ended`] and in the document.
pub fn check(
    request: &Request,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
    now: &dyn Fn() -> String,
) -> Result<Checked, CheckError> {
    let place = Place::of(&request.target)?;
    let size = size_for(&place, request.size)?;
    let surveyed = survey::beneath(&place.directory)?;
    let mut session = Session::begin(request, surveyed, progress, stop);
    if let Some(remark) = &place.remark {
        session.note(remark);
    }
    let ended = match size {
        Ok(size) => match measure(&mut session, &place, size) {
            Err(CheckError::Recording(error)) if session.is_recording() => session.lose_recording(&error),
            ended => ended?,
        },
        Err(reason) => Ended::NotMeasured(reason),
    };
    session.finish(ended, &now())
}

/// The size of the test file; the inner error is why nothing can be measured there.
fn size_for(place: &Place, asked: Option<Bytes>) -> Result<Result<Bytes, String>, CheckError> {
    let space = space_at(&place.directory)?;
    let path = place.directory.clone();
    if space.read_only {
        return Ok(Err(format!(
            "cannot measure in {}: its file system is mounted read-only; check a directory that can be written",
            path.display()
        )));
    }
    let free = if space.total == Bytes(0) { FREE_UNSIZED } else { space.free };
    match file_size(asked, free) {
        Ok(size) => Ok(Ok(size)),
        Err(source @ SizeError::NoSpace { .. }) => Ok(Err(in_one_line(&CheckError::Size { path, source }))),
        Err(source) => Err(CheckError::Size { path, source }),
    }
}

/// All phases in their order, until one of them ends the check.
fn measure(session: &mut Session<'_>, place: &Place, size: Bytes) -> Result<Ended, CheckError> {
    // A place that was asked for must take the recording before anything is done.
    if matches!(session.request.out, plumb_measure::Out::At(_)) {
        session.open_recording()?;
    }
    let file = match session.prepare(place, size) {
        Ok(file) => file,
        Err(mishap) => return Ok(ended_by(mishap)),
    };
    session.storage.book(Phase::Prepare.name());
    if !session.is_recording() {
        session.open_recording()?;
    }
    session.storage.book("recording");
    for phase in PHASES {
        let done = match phase {
            Phase::Prepare => continue,
            Phase::Calibrate => session.calibrate(&file),
            Phase::Sync(method) => session.sync(method, place, &file)?,
            Phase::Io(kind) => session.io(kind, &file)?,
        };
        session.storage.book(phase.name());
        session.save()?;
        match done {
            Ok(()) => {}
            Err(mishap @ Mishap::Unsupported(_)) => session.lacks(phase, &mishap),
            Err(mishap) => return Ok(ended_by(mishap)),
        }
        if session.is_stopped() {
            return Ok(Ended::Interrupted);
        }
    }
    Ok(session.ended())
}

fn ended_by(mishap: Mishap) -> Ended {
    match mishap {
        Mishap::Interrupted => Ended::Interrupted,
        Mishap::Failed(reason) => Ended::Failed(reason),
        Mishap::Refused(reason) | Mishap::Unsupported(reason) => Ended::NotMeasured(reason),
    }
}
