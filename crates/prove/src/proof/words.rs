//! Wording of a proof: the result in one sentence, and its limits.

use plumb_block::Op;
use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{FailureClass, RecordingFacts};
use plumb_report::quantity::{count, counted};

use super::request::Request;
use crate::file_system::FileSystemOptions;
use crate::profile::DriveProfile;
use crate::recording::Event;
use crate::session::RecordedWork;

/// Words before a reason why the recording lacks something.
const NOT_SEEN: &str = "plumb could not see everything that the program did";

/// Reason why a program that wrote nothing is not proved.
const NOTHING_WRITTEN: &str = "nothing was written, so nothing is proved";

/// Returns the document before the exploration.
pub(super) fn initial_document(request: &Request<'_>) -> ProofDocument {
    let recorded = request.judge.recorded;
    ProofDocument {
        schema: ProofDocument::SCHEMA.to_owned(),
        subject: request.judge.subject.name(),
        file_system: request.judge.file_system.to_string(),
        drive: request.profiles[0].name.clone(),
        recording: recorded.facts.clone(),
        seed: request.judge.seed,
        incomplete_because: incomplete_because(recorded),
        notes: recorded
            .untraced_because
            .iter()
            .map(|why| format!("no system calls are shown: {why}"))
            .chain(recorded.notes.iter().cloned())
            .chain(recorded.unseen.iter().map(|why| format!("{NOT_SEEN}: {why}")))
            .collect(),
        environment: request.environment.clone(),
        run_directory: request.run.path().map(|path| path.display().to_string()),
        ..ProofDocument::default()
    }
}

/// Returns the reason why the recording is incomplete, or shows nothing.
fn incomplete_because(recorded: &RecordedWork) -> Option<String> {
    let ended = recorded.ended_because.iter().map(|why| format!("the work ended early: {why}"));
    let more = match recorded.unseen.len() {
        0 | 1 => String::new(),
        all => format!(" (the notes name {all} reasons)"),
    };
    let silent = "nothing was acknowledged, so no data had to survive: let the program write a number to \
                  the file that PLUMB_ACK names";
    let silent = recorded.facts.acknowledged_by.is_none().then(|| silent.to_owned());
    let unseen = recorded.unseen.first().map(|why| format!("{NOT_SEEN}: {why}{more}"));
    let reasons: Vec<String> = ended.chain(unseen).chain(silent).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns true if the program changed nothing that a power cut could take.
fn is_unwritten(recorded: &RecordedWork) -> bool {
    let RecordedWork { facts, recording, from, until, .. } = recorded;
    let is_write = |event: &Event| match event {
        Event::Submitted(id) => {
            recording.commands.get(id.0 as usize).is_some_and(|command| command.op != Op::Flush)
        }
        _ => false,
    };
    let work = recording.events.get(*from..*until).unwrap_or_default();
    // The facts cover the whole program, the events perhaps a part of it (`--target`).
    facts.writes == 0 && facts.discards == 0 && !work.iter().any(|(_, event)| is_write(event))
}

/// Returns the reason why a profile cannot be judged with this recording.
pub(super) fn not_judged_because(profile: &DriveProfile, facts: &RecordingFacts) -> Option<String> {
    let hides = profile.has_native_fua && facts.attached_by == "loop";
    hides.then(|| {
        "FUA arrived as write and flush, which makes more durable than FUA does and hides states: record where the kernel has ublk \
         (`modprobe ublk_drv`)"
            .to_owned()
    })
}

/// Sets the conclusion of the document.
pub(super) fn conclude(document: &mut ProofDocument, request: &Request<'_>) {
    document.model = model(document, &request.judge.recorded.file_system_options);
    let fails = document.profiles.iter().any(|profile| profile.failing > Some(0));
    let fails = fails || !document.failures.is_empty();
    // A failing state shows that something was written, even if it never reached the drive.
    if !fails && is_unwritten(request.judge.recorded) {
        let already = document.incomplete_because.take().filter(|why| !why.starts_with(NOTHING_WRITTEN));
        let already = already.map_or_else(String::new, |why| format!("; {why}"));
        document.incomplete_because = Some(format!("{NOTHING_WRITTEN}{already}"));
    }
    document.complete = document.incomplete_because.is_none();
    let is_judged = document.profiles.iter().all(|profile| profile.not_judged_because.is_none());
    if !fails {
        document.not_proved_because = not_proved_because(document, request);
    }
    document.proved = !fails && document.not_proved_because.is_empty();
    document.level = match (fails, is_judged && document.complete) {
        (true, _) => "danger",
        (false, false) => "warning",
        (false, true) => "none",
    }
    .to_owned();
    document.headline = headline(document);
}

/// Returns everything that may have hidden a failing state.
fn not_proved_because(document: &ProofDocument, request: &Request<'_>) -> Vec<String> {
    let mut reasons: Vec<String> = document.incomplete_because.iter().cloned().collect();
    for profile in &document.profiles {
        let name = &profile.name;
        match &profile.not_judged_because {
            Some(because) => reasons.push(format!("the profile {name} is not judged: {because}")),
            None if profile.exhaustive => {}
            None => {
                let why = profile.not_exhaustive_because.as_deref();
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                reasons.push(format!(
                    "under the profile {name} not every state of every window was explored{why}"
                ));
            }
        }
    }
    if document.recordings_left > 0 {
        reasons.push(format!(
            "{} of {} recordings with writeback chosen were not made: give more time with --budget, or prove the \
             first recording alone with --recordings 1",
            document.recordings_left,
            document.recordings_left + document.recordings.len() as u64,
        ));
    }
    reasons.extend(request.target.iter().map(|target| format!("the power was cut only {target}")));
    reasons.extend(request.judge.recorded.seen_in_part.iter().cloned());
    let facts = &document.recording;
    reasons.extend(match facts.acknowledged_by.as_deref() {
        Some("control-file" | RecordingFacts::BY_EXIT | RecordingFacts::BY_MARK) | None => None,
        Some(other) => Some(format!(
            "acknowledgements came by {other}, are read late, and can hide a loss: use the control file"
        )),
    });
    let serialised = facts.serialised_because.iter();
    reasons.extend(
        serialised.map(|because| format!("the drive was given one request after the other: {because}")),
    );
    reasons
}

/// Names the model of the file system for which the result holds.
fn model(document: &ProofDocument, options: &FileSystemOptions) -> String {
    let system = match document.file_system.as_str() {
        "none" => "the bare drive",
        "posix" => return "the POSIX model".to_owned(),
        "posix:garbage" => {
            return "the POSIX model with other bytes in blocks that were not written".to_owned();
        }
        system => system,
    };
    let system = if options.is_empty() { system.to_owned() } else { format!("{system} ({options})") };
    match document.recordings.len() {
        0 => format!("{system} as recorded"),
        1 => format!("{system} as recorded and with writeback chosen (1 further recording)"),
        more => format!("{system} as recorded and with writeback chosen ({more} further recordings)"),
    }
}

fn headline(document: &ProofDocument) -> String {
    let ProofDocument { states, profiles, drive, failures, .. } = document;
    let distinct = count(states.distinct);
    let elsewhere = profiles.iter().find(|profile| profile.failing > Some(0));
    match (&failures[..], elsewhere) {
        ([worst, rest @ ..], _) => {
            let also: String =
                rest.iter().map(|failure| format!("; also, {}", failure.class.meaning())).collect();
            let all = match (worst.class, &document.recovery) {
                (FailureClass::RecoveryNotIdempotent, Some(recovery)) => recovery.explored,
                _ => states.distinct,
            };
            format!(
                "After a power cut {} in {} of {}{also}",
                worst.class.meaning(),
                count(worst.states),
                counted(all, "state")
            )
        }
        ([], Some(profile)) => {
            let failing = profile.failing.unwrap_or(0);
            let verb = if failing == 1 { "fails" } else { "fail" };
            let of_all = format!("{} of {} {verb}", count(failing), counted(profile.explored, "state"));
            let first = match profile.name == *drive {
                true => String::new(),
                false => format!(", on a {drive} drive none of {distinct}"),
            };
            format!("On a {} drive {of_all}{first}", profile.name)
        }
        ([], None) if document.proved => {
            let model = &document.model;
            match states.distinct {
                1 => format!("The one state that a power cut may leave does not fail, on {model}"),
                _ => format!("None of the {distinct} states that a power cut may leave fails, on {model}"),
            }
        }
        ([], None) => {
            let because = document.not_proved_because.first().map_or("", |because| because);
            let none = match states.distinct {
                1 => "The only explored state does not fail".to_owned(),
                _ => format!("None of {distinct} explored states fails"),
            };
            format!("{none}, but more is needed for a proof: {because}")
        }
    }
}
