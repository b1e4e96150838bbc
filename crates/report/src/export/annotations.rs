//! Failures of a proof as annotations of a change, which build servers show next to the code.

use plumb_text::printable;
use serde_json::{Value, json};

use crate::document::ProofDocument;
use crate::document::proof::Failure;
use crate::proof;

/// Returns the workflow commands of GitHub for the failures: a line each, an error at the file `path`. An
/// accepted failure is a notice.
pub fn github(document: &ProofDocument, path: &str) -> String {
    let line = |failure: &Failure| {
        let command = if failure.accepted { "notice" } else { "error" };
        let title = value(&title(failure)).replace(':', "%3A").replace(',', "%2C");
        let path = value(path).replace(':', "%3A").replace(',', "%2C");
        format!("::{command} file={path},line=1,title={title}::{}\n", value(&words(document, failure)))
    };
    document.failures.iter().map(line).collect()
}

/// Returns the Code Quality report of GitLab: a JSON array of the failures that are not accepted, at the file
/// `path`.
pub fn gitlab(document: &ProofDocument, path: &str) -> String {
    let issue = |failure: &Failure| {
        json!({
            "description": format!("{}: {}", title(failure), words(document, failure)),
            "check_name": format!("plumb-prove-{}", failure.class.name()),
            "fingerprint": failure.fingerprint(),
            "severity": "critical",
            "location": {"path": path, "lines": {"begin": 1}},
        })
    };
    let issues = document.failures.iter().filter(|failure| !failure.accepted);
    format!("{:#}\n", Value::Array(issues.map(issue).collect()))
}

fn title(failure: &Failure) -> String {
    format!("After a power cut {}", failure.class.meaning())
}

fn words(document: &ProofDocument, failure: &Failure) -> String {
    let what = [proof::words(failure), proof::case_sentence(failure), proof::change(document, failure)];
    printable(&what.join(" "))
}

/// Escapes characters that are special in a workflow command.
fn value(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
