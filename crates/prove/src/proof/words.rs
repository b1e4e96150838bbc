//! What is said of a proof: the result in one sentence, and what it does not prove.

use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{FailureClass, RecordingFacts};

use super::Request;
use crate::profile::DriveProfile;
use crate::session::Recorded;

/// A document with what is known before anything was explored.
pub(super) fn begun(recorded: &Recorded, request: &Request<'_>) -> ProofDocument {
    ProofDocument {
        schema: ProofDocument::SCHEMA.to_owned(),
        subject: request.subject.name(),
        file_system: request.file_system.to_string(),
        drive: request.profiles[0].name.clone(),
        recording: recorded.facts.clone(),
        seed: request.seed,
        incomplete_because: recorded.ended_because.clone().map(|why| format!("the work ended early: {why}")),
        ..ProofDocument::default()
    }
}

/// Why a profile cannot be judged by what was recorded.
pub(super) fn not_judged_because(profile: &DriveProfile, facts: &RecordingFacts) -> Option<String> {
    let hides = profile.has_native_fua && facts.attached_by != "nbd";
    hides.then(|| {
        "FUA arrived as write and flush, which makes more durable than FUA does and hides states: record over NBD".to_owned()
    })
}

/// Says what all that was found means.
pub(super) fn conclude(document: &mut ProofDocument, request: &Request<'_>) {
    document.complete = document.incomplete_because.is_none();
    let fails = document.profiles.iter().any(|profile| profile.failing.is_some_and(|count| count > 0));
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

/// All that may have hidden a state that fails.
fn not_proved_because(document: &ProofDocument, request: &Request<'_>) -> Vec<String> {
    let mut reasons: Vec<String> = document.incomplete_because.iter().cloned().collect();
    for profile in &document.profiles {
        let because = profile.not_judged_because.iter();
        reasons
            .extend(because.map(|because| format!("the profile {} is not judged: {because}", profile.name)));
        if profile.not_judged_because.is_none() && !profile.exhaustive {
            reasons.push(format!(
                "under the profile {} not every state of every window was explored",
                profile.name
            ));
        }
    }
    let target = request.target.iter();
    reasons.extend(target.map(|target| format!("power was cut only in {target}")));
    let facts = &document.recording;
    match facts.acknowledged_by.as_deref() {
        Some("control-file") => {}
        Some(other) => {
            reasons.push(format!(
                "acknowledgements came by {other}, are read late, and can hide a loss: use the control file"
            ));
        }
        None => reasons.push("nothing was acknowledged, so that nothing had to be found".to_owned()),
    }
    let serialised = facts.serialised_because.iter();
    reasons.extend(
        serialised.map(|because| format!("the drive was given one request after the other: {because}")),
    );
    reasons
}

fn headline(document: &ProofDocument) -> String {
    let ProofDocument { states, profiles, drive, failures, .. } = document;
    let elsewhere = profiles.iter().find(|profile| profile.failing.is_some_and(|count| count > 0));
    match (&failures[..], elsewhere) {
        ([worst, rest @ ..], _) => {
            let classes: Vec<_> = rest.iter().map(|failure| failure.class.name()).collect();
            let also =
                if classes.is_empty() { String::new() } else { format!("; also {}", classes.join(", ")) };
            let of_all = format!("{} of {} states", worst.states, states.distinct);
            format!("After a power cut {} in {of_all}{also}", consequence(worst.class))
        }
        ([], Some(profile)) => {
            let of_all = format!("{} of {} states", profile.failing.unwrap_or(0), profile.explored);
            format!(
                "On a {} drive {of_all} fail, on a {drive} drive none of {}",
                profile.name, states.distinct
            )
        }
        ([], None) if document.proved => {
            format!("None of the {} states that a power cut may leave fails", states.distinct)
        }
        ([], None) => {
            let because = document.not_proved_because.first().map_or("", |because| because);
            format!("None of {} explored states fails, but that proves nothing: {because}", states.distinct)
        }
    }
}

const fn consequence(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Unmountable => "the file system cannot be mounted",
        FailureClass::Corrupt => "data is corrupt",
        FailureClass::LostAcknowledged => "acknowledged data is lost",
        FailureClass::OutOfOrder => "something later is there, something earlier is missing",
        FailureClass::Resurrected => "something that was removed is back",
        FailureClass::Checker => "the checker says so",
    }
}
