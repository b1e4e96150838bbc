//! First recording of a proof, of a subject as the user named it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;

use super::kept::KeptRecording;
use super::request::{Again, Watch};
use super::subject_words::SubjectWords;
use crate::error::Result;
use crate::session::{RecordOptions, record, record_with_calls};

/// Records the work of `subject`, whose checks may take `check_timeout` each. Also returns the parameters to
/// record it again, if that is possible.
///
/// # Errors
/// Those of [`record`].
pub fn record_subject(
    subject: SubjectWords,
    options: RecordOptions,
    check_timeout: Nanos,
    stop: &Arc<AtomicBool>,
    watch: Watch<'_>,
) -> Result<(KeptRecording, Option<Again>)> {
    let worker = subject.subject(options.timeout, stop)?;
    watch(&format!("recording {}", worker.name()), None);
    let recorded = match subject.program() {
        Some(program) => record_with_calls(&*worker, &program, &options, stop),
        None => record(&*worker, &options, stop),
    };
    let kept = KeptRecording::new(subject, options.file_system, check_timeout, recorded?);
    let again = Again::new(&kept, options);
    Ok((kept, again))
}
