//! Check of a directory or a drive: a survey, and a scenario that is run like any other and saved after every
//! phase.
//!
//! A check writes only to its own test files, or to a simulated drive or a cache, and to the run directory.

mod plan;
mod size;
mod subject;

use std::path::PathBuf;

use plumb_block::{Bytes, Nanos};
use plumb_linux::{FileOptions, Filling};
use plumb_load::{Event, Observer, Phase};
use plumb_measure::{Out, RunDirectory};
use plumb_targets::{Intent, Name, Permission, open};
use plumb_workload::{Replays, Scenario};

use self::plan::On;
use self::subject::Subject;
use crate::check_state::CheckState;
use crate::counters::Beneath;
use crate::error::TrialError;
use crate::outcome::{Trial, TrialEnded, ended_by};
use crate::request::{Context, Request, ScheduledSpan};
use crate::session::Session;
use crate::trial::run_session;

/// Number of bytes written first, to measure the speed of the place.
const PROBE: Bytes = Bytes::mib(16);

/// Request for a check, including the sources of time and randomness.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// Directory, file in it, or name of a simulated drive or a cache.
    pub target: PathBuf,
    /// Total duration.
    pub length: Nanos,
    /// Size of the test file, or of the part of the drive; `None` for the default.
    pub size: Option<Bytes>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Permission to write to something other than plumb's own files: a cache.
    pub permission: Permission,
    /// Place for the recording.
    pub out: Out,
    /// Command line, for the recording.
    pub argv: Vec<String>,
    /// Start time, RFC 3339 in UTC, for the recording.
    pub started_at: String,
    /// Function that writes a scenario in plumb's own language, for the recording.
    pub words: fn(&Scenario) -> String,
}

/// Checks the target of `request`. Errors after the beginning are in [`Trial::ended`] and in the document.
///
/// # Errors
/// If the check cannot begin.
pub fn check(
    request: &CheckRequest,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<Trial, TrialError> {
    RunDirectory::check(&request.out)?;
    let subject = Subject::from_target(&request.target, request.size, &request.permission)?;
    if let Some(remark) = &subject.remark {
        observer.note(remark);
    }
    let beneath = Beneath::along(&subject.path, context.clock);
    let mut state = CheckState::begin(request.target.display().to_string(), subject.path.clone(), &beneath);
    let size = match &subject.size {
        Ok(size) => affordable(&subject, *size, request, context, observer),
        Err(reason) => Err(TrialEnded::NotMeasured(reason.clone())),
    };
    let scenario = match &size {
        Ok(size) => {
            state.size = *size;
            plan::scenario(&subject.target, subject.on, *size, request.length, request.seed)
        }
        Err(_) => Scenario { spans: Vec::new() },
    };
    let run = Request {
        words: (request.words)(&scenario),
        scenario,
        profile: None,
        replays: Replays::new(),
        permission: request.permission.clone(),
        remove_after: Vec::new(),
        notes: Vec::new(),
        command: "check".to_owned(),
        argv: request.argv.clone(),
        started_at: request.started_at.clone(),
        out: request.out.clone(),
    };
    let mut session = Session::begin(&run, request.seed, Some(state));
    // A run directory that the user requested must accept the recording before anything else is done.
    if request.out.is_named() {
        session.record()?;
    }
    observer.on(&Event::Scenario(&run.scenario));
    let numbers = 0..run.scenario.spans.len();
    let mut spans =
        numbers.map(|span| ScheduledSpan { span, may_be_empty: true, ..ScheduledSpan::default() });
    match size {
        Ok(_) => run_session(&run, session, context, observer, &mut |_| Ok(spans.next())),
        Err(ended) => session.finish(ended, context.time_of_day),
    }
}

/// Returns the size, or a smaller one if writing that much would exceed its share of the time.
fn affordable(
    subject: &Subject,
    size: Bytes,
    request: &CheckRequest,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<Bytes, TrialEnded> {
    if subject.on == On::Drive || size <= PROBE {
        return Ok(size);
    }
    let begun = context.clock.now();
    let mut write = || -> Result<(), TrialError> {
        let intent = Intent::WRITE.sized(PROBE);
        let name = Name::parse(&subject.target)?;
        let options = FileOptions::write_buffered();
        let mut probe = open(&name, intent, &Permission::default(), options, context.clock)?;
        observer.phase(0, &Phase::LayingOut { path: probe.shown.clone(), size }, None);
        let mut progress = |done| observer.on(&Event::Bytes(done));
        Ok(probe.lay_out(Filling { seed: request.seed, stop: context.stop, progress: &mut progress })?)
    };
    write().map_err(|error| ended_by(&error))?;
    let took = context.clock.now().since(begun);
    let most = size::affordable(PROBE, took, plan::time_to_prepare(request.length));
    Ok(size.min(most.max(PROBE)))
}
