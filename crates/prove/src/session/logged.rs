//! Work recorded by the kernel's dm-log-writes target, on a drive of any machine.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use plumb_report::document::proof::RecordingFacts;

use super::recorded::RecordedWork;
use crate::error::{Error, Result};
use crate::recording::{LogContents, Recording};

/// Reason why such a recording proves nothing.
const SERIALISED: &str =
    "a log of dm-log-writes does not say what was in flight together, and lets FUA overtake";

/// Reads a recording from the log in a file or on a device, as [`logged`] does.
///
/// # Errors
/// A usage error that names the file.
pub fn read_log(log: &Path, base: Option<&Path>, is_silent: bool) -> Result<RecordedWork> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| Error::usage(format!("{}: {why}", path.display()));
    let open = |path: &Path| File::open(path).map_err(|error| wrong(path, &error));
    let mut base = base.map(open).transpose()?;
    let base = base.as_mut().map(|base| base as &mut dyn Read);
    logged(BufReader::new(open(log)?), base, is_silent).map_err(|error| wrong(log, &error))
}

/// Reads a recording from a log. Its device was blank before, or held `base`. Marks that are numbers
/// acknowledge. With `is_silent` no acknowledgement is needed.
///
/// # Errors
/// If `log` is damaged or not a log, or something cannot be read.
pub fn logged(log: impl Read, base: Option<&mut dyn Read>, is_silent: bool) -> Result<RecordedWork> {
    let LogContents { recording, from } = Recording::from_log_writes(log, base)?;
    let until = recording.events.len();
    let mut recorded = RecordedWork::new(recording, from, until);
    let facts = &mut recorded.facts;
    facts.size = recorded.recording.size.0;
    facts.attached_by = RecordingFacts::BY_LOG_WRITES.to_owned();
    facts.serialised_because = Some(SERIALISED.to_owned());
    let is_acknowledged = is_silent || facts.acknowledgements > 0;
    facts.acknowledged_by = is_acknowledged.then(|| RecordingFacts::BY_MARK.to_owned());
    recorded.notes.push("the log has no times: each of its entries takes a microsecond here".to_owned());
    Ok(recorded)
}
