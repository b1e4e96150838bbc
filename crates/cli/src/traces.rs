//! Traces named by a scenario, which are read and assigned to their jobs before anything is opened.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use plumb_dialect::fio::trace;
use plumb_observe::requests::FILE_NAME;
use plumb_trial::Request;
use plumb_workload::{Replay, Trace};

use crate::exit::{Refusal, refuse_if, usage};

/// Size of the read buffer, in bytes.
const CHUNK: usize = 256 << 10;

/// Reads the traces of a request. Each job with a trace then has the targets of the trace's events.
///
/// # Errors
/// If a trace cannot be read, is invalid, or does not suit its job.
pub(crate) fn read(mut request: Request) -> Result<Request, Refusal> {
    request.scenario.validate().map_err(usage)?;
    for (span_number, span) in request.scenario.spans.iter_mut().enumerate() {
        for (job_number, job) in span.jobs.iter_mut().enumerate() {
            let Some(how) = job.trace.clone() else { continue };
            let trace = named(&how.path)?;
            let (replaying, replay) = Replay::new(job, &how, trace).map_err(usage)?;
            *job = replaying;
            request.replays.insert((span_number, job_number), replay);
        }
    }
    Ok(request)
}

/// Reads the trace at `path`, which may be the run directory of an observation with kept requests.
///
/// # Errors
/// If the trace cannot be read or is invalid.
pub(crate) fn named(path: &str) -> Result<Trace, Refusal> {
    let kept = Path::new(path).join(FILE_NAME);
    let is_run = Path::new(path).is_dir();
    let problem = format!("{path} holds no {FILE_NAME}: observe again with --requests");
    refuse_if!(is_run && !kept.exists(), Usage, problem);
    let name = if is_run { kept.to_string_lossy() } else { path.into() };
    trace::read_named(&name, &open).map_err(usage)
}

fn open(name: &str) -> io::Result<Box<dyn BufRead>> {
    Ok(Box::new(BufReader::with_capacity(CHUNK, File::open(name)?)))
}
