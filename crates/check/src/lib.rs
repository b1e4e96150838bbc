//! The main job: survey the write path beneath a directory, or to a simulated drive, measure a short load on it, and
//! judge both.
//!
//! [`check`] is the whole program at a glance; [`plan`] says what it does and how long each part may take. It writes
//! to nothing but a test file of its own, or that drive, and the run directory.

mod append;
pub mod ended;
pub mod error;
mod ground;
mod io;
pub mod place;
pub mod plan;
mod prepare;
pub mod progress;
pub mod request;
mod running;
mod session;
mod site;
mod storage;
mod survey;
mod sync;

use std::sync::atomic::AtomicBool;

use plumb_block::Bytes;

pub use ended::Ended;
pub use error::{CheckError, FailureKind};
pub use place::Place;
pub use progress::{Progress, Silent};
pub use request::{Checked, Drive, Request, Subject};

use ended::Mishap;
use plan::Phase;
use session::Session;
use site::Site;

/// Checks what `request` names. `now` gives the time of day, RFC 3339 in UTC. When `stop` becomes true the
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
    let site = Site::of(&request.subject)?;
    let size = site.size(request.size)?;
    let surveyed = site.survey()?;
    let mut session = Session::begin(request, &site, surveyed, progress, stop);
    if let Some(remark) = site.remark() {
        session.note(remark);
    }
    let ended = match size {
        Ok(size) => match measure(&mut session, &site, size) {
            Err(CheckError::Recording(error)) if session.is_recording() => session.lose_recording(&error),
            ended => ended?,
        },
        Err(reason) => Ended::NotMeasured(reason),
    };
    session.finish(ended, &now())
}

/// All phases in their order, until one of them ends the check.
fn measure(session: &mut Session<'_>, site: &Site<'_>, size: Bytes) -> Result<Ended, CheckError> {
    // A place that was asked for must take the recording before anything is done.
    if matches!(session.request.out, plumb_measure::Out::At(_)) {
        session.open_recording()?;
    }
    let ground = match session.prepare(site, size) {
        Ok(ground) => ground,
        Err(mishap) => return Ok(ended_by(mishap)),
    };
    session.storage.book(Phase::Prepare.name());
    if !session.is_recording() {
        session.open_recording()?;
    }
    session.storage.book("recording");
    for phase in site.phases().iter().copied() {
        let done = match phase {
            Phase::Prepare => continue,
            Phase::Calibrate => session.calibrate(&ground),
            Phase::Sync(method) => session.sync(method, &ground)?,
            Phase::Io(kind) => session.io(kind, &ground)?,
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
