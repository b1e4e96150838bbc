//! A sync call that the program does not make: it runs again and the call is made for it, which is recorded and explored.
//!
//! A program under strace(1) is slower, and may order its writes otherwise. So it first runs again without any such call: only what
//! fails then, too, can be said to be removed by one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use plumb_block::{Nanos, in_one_line};
use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{ChangeKind, FailureClass};

use super::{LIMITS, verified};
use crate::judge::{JudgeError, Judged};
use crate::proof::{Again, Prover, Step, Watch};
use crate::recording::Event;
use crate::session::{Recorded, record};
use crate::subject::{AckBy, Outcome, Program, Subject, SubjectError};
use crate::trace::{Injection, TraceOptions, Traced, Tracer, candidates};

/// At most so many sync calls are tried.
const CANDIDATES_MAX: usize = 8;

/// Puts into the document, for each failure, the first sync call that removes it.
pub(super) fn put(
    prover: &Prover<'_>,
    how: &Again,
    document: &mut ProofDocument,
    watch: Watch<'_>,
) -> Result<(), JudgeError> {
    let Some(before) = again(prover, how, Vec::new(), document, watch)? else { return Ok(()) };
    let mut open: Vec<FailureClass> = document.failures.iter().map(|failure| failure.class).collect();
    open.retain(|class| before.judged.failing.contains_key(class));
    for failure in &document.failures {
        if !open.contains(&failure.class) {
            let name = failure.class.name();
            document
                .notes
                .push(format!("under strace no state was {name}, so that no sync call was tried for it"));
        }
    }
    let acknowledged = acknowledged(&before.recorded);
    for injection in
        candidates(&before.traced.calls, &before.root, &acknowledged).into_iter().take(CANDIDATES_MAX)
    {
        if open.is_empty() || prover.is_over() {
            break;
        }
        let what = injection.to_string();
        let Some(after) = again(prover, how, vec![injection], document, watch)? else { continue };
        let is_same = after.recorded.ended_because.is_none()
            && after.recorded.facts.acknowledgements == before.recorded.facts.acknowledgements;
        if !is_same || after.traced.injected == 0 || after.judged.incomplete_because.is_some() {
            continue;
        }
        for failure in &mut document.failures {
            if open.contains(&failure.class) && !after.judged.failing.contains_key(&failure.class) {
                open.retain(|class| *class != failure.class);
                failure.change = Some(verified(ChangeKind::SyncCall, &what, failure.class, &after.judged));
            }
        }
    }
    Ok(())
}

/// The work recorded again.
struct Rerun {
    recorded: Recorded,
    judged: Judged,
    traced: Traced,
    /// Where the work was done.
    root: PathBuf,
}

/// Records and judges the work with sync calls made in the program's place. `None` if that could not be done, which the notes of
/// the document say.
fn again(
    prover: &Prover<'_>,
    how: &Again,
    injections: Vec<Injection>,
    document: &mut ProofDocument,
    watch: Watch<'_>,
) -> Result<Option<Rerun>, JudgeError> {
    let what = injections.first().map_or_else(|| "the program under strace".to_owned(), ToString::to_string);
    let step = Step::Changing(what.clone());
    watch(&step, None);
    let inner = Arc::clone(prover.request.subject);
    let held = UnderStrace { inner, line: how.program.line.clone(), injections, tracer: Mutex::new(None) };
    let recorded = record(&held, &how.options, prover.request.stop).map_err(|error| in_one_line(&error));
    let tracer = held.tracer.into_inner().unwrap_or_else(PoisonError::into_inner);
    let traced = tracer.map(|(tracer, root)| tracer.finish().map(|traced| (traced, root)));
    let (recorded, (traced, root)) = match (recorded, traced) {
        (Ok(recorded), Some(Ok(traced))) => (recorded, traced),
        (Err(error), _) => {
            document.notes.push(format!("{what} could not be recorded: {error}"));
            return Ok(None);
        }
        (Ok(_), Some(Err(error))) => {
            document.notes.push(format!("{what} could not be traced: {}", in_one_line(&error)));
            return Ok(None);
        }
        (Ok(_), None) => return Ok(None),
    };
    let judged = prover.explore(&recorded, prover.profile(), LIMITS, &step, watch)?;
    Ok(Some(Rerun { recorded, judged, traced, root }))
}

/// When it acknowledged, since the epoch.
fn acknowledged(recorded: &Recorded) -> Vec<Nanos> {
    let began = recorded.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let events = recorded.recording.events.iter();
    let acknowledged = events.filter(|(_, event)| matches!(event, Event::Acknowledged(_)));
    acknowledged.map(|(at, _)| at.saturating_add(began.into())).collect()
}

/// A subject whose work a program does under strace.
struct UnderStrace {
    inner: Arc<dyn Subject>,
    line: String,
    injections: Vec<Injection>,
    /// Once it is known where the work will be done.
    tracer: Mutex<Option<(Tracer, PathBuf)>>,
}

impl UnderStrace {
    fn failed(&self, what: &dyn std::error::Error) -> SubjectError {
        SubjectError::Failed { subject: self.inner.name(), what: in_one_line(what) }
    }
}

impl Subject for UnderStrace {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn set_up(&self, place: &Path) -> Result<(), SubjectError> {
        self.inner.set_up(place)?;
        let root = place.canonicalize().map_err(|error| self.failed(&error))?;
        let options = TraceOptions {
            root: root.clone(),
            injections: self.injections.clone(),
            began: SystemTime::UNIX_EPOCH,
        };
        let tracer = Tracer::start(options).map_err(|error| self.failed(&error))?;
        *self.tracer.lock().unwrap_or_else(PoisonError::into_inner) = Some((tracer, root));
        Ok(())
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<(), SubjectError> {
        self.inner.work(place, acknowledge)
    }

    /// The program, with strace before it.
    fn program(&self) -> Option<Program> {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.line);
        let traced = tracer.as_ref().map(|(tracer, _)| tracer.command(&shell))?;
        let words = std::iter::once(traced.get_program()).chain(traced.get_args());
        // As every sh(1) takes it: not all know the $'...' of a word that is shown to people.
        let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
        Some(Program {
            line: format!("exec {}", quoted.collect::<Vec<_>>().join(" ")),
            ack: AckBy::ControlFile,
        })
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome, SubjectError> {
        self.inner.check(place, required)
    }
}
