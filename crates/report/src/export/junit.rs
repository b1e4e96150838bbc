//! Proof as JUnit XML for build servers: a test case for each class of failure on each drive profile.
//!
//! The output is limited to elements common to all dialects: `testsuites` with one `testsuite`, whose test
//! cases have at most one `failure` or `skipped` each.

use askama::Template;
use plumb_text::printable;

use crate::document::ProofDocument;
use crate::document::proof::{FailureClass, ProfileResult};
use crate::html::escape;
use crate::proof;

/// The whole file.
#[derive(Template)]
#[template(path = "junit.xml", escape = "none")]
struct Suites<'a> {
    document: &'a ProofDocument,
    cases: Vec<Case>,
}

/// Test case, ready to print.
struct Case {
    name: String,
    class: &'static str,
    /// Failure, in a line and in full.
    failure: Option<(String, String)>,
    /// Reason why the result is unknown.
    skipped: Option<String>,
}

impl Suites<'_> {
    fn name(&self) -> String {
        text(&format!("{} on {}", self.document.subject, self.document.file_system))
    }

    fn failures(&self) -> usize {
        self.cases.iter().filter(|case| case.failure.is_some()).count()
    }

    fn skipped(&self) -> usize {
        self.cases.iter().filter(|case| case.skipped.is_some()).count()
    }

    /// Returns the time of the proof in seconds.
    fn seconds(&self) -> f64 {
        self.document.recording.seconds.max(self.document.seconds)
    }

    /// Returns the share of one test case in the time, which is equal for all: one exploration gives all
    /// results.
    fn share(&self) -> f64 {
        self.seconds() / self.cases.len().max(1) as f64
    }

    /// Returns the start time without a time zone, which the schema of Ant's report does not permit. Times
    /// are UTC.
    fn timestamp(&self) -> &str {
        self.document.environment.started_at.trim_end_matches('Z')
    }
}

/// Returns the document as JUnit XML.
///
/// # Errors
/// If the template cannot be rendered, which formatting into memory does not do.
pub(crate) fn junit(document: &ProofDocument) -> Result<String, askama::Error> {
    let of = |profile| FailureClass::ALL.map(|class| case(document, profile, class));
    let cases = document.profiles.iter().flat_map(of).collect();
    Suites { document, cases }.render()
}

fn case(document: &ProofDocument, profile: &ProfileResult, class: FailureClass) -> Case {
    let mut case = Case {
        name: text(&format!("{} on {}", class.name(), profile.name)),
        class: class.name(),
        failure: None,
        skipped: None,
    };
    let details = document.failures.iter().find(|failure| failure.class == class);
    let unknown = profile.not_judged_because.as_ref().or(document.incomplete_because.as_ref());
    match (profile.classes.contains(&class), details, unknown) {
        (true, Some(failure), _) if failure.accepted => {
            case.skipped = Some(text(&format!("accepted by the baseline: {}", proof::words(failure))));
        }
        (true, Some(failure), _) if profile.name == document.drive => {
            let message = format!("{} states fail: {}", failure.states, proof::case(&failure.minimal));
            let replay = format!("Replay: {}", failure.replay);
            let said = [proof::words(failure), proof::change(document, failure), replay];
            case.failure = Some((text(&message), said.map(|line| text(&line)).join("\n")));
        }
        (true, ..) => case.failure = Some((class.meaning().to_owned(), String::new())),
        (false, _, Some(why)) => case.skipped = Some(text(why)),
        (false, _, None) => {}
    }
    case
}

/// Returns text escaped for an element or an attribute. Characters that XML does not permit become escapes.
fn text(text: &str) -> String {
    escape::escape(&printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}
