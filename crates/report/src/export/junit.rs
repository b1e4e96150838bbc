//! A proof as JUnit XML, for a build server: a test case for each class of failure on the drive that was asked for, and one
//! for each drive profile that was compared.
//!
//! Of the dialects that are read, this is the part that all have in common: `testsuites` with one `testsuite`, whose test cases hold
//! at most one `failure` or `skipped` each.

use crate::document::ProofDocument;
use crate::document::proof::{Failure, FailureClass};
use crate::html::escape;
use crate::printable::printable;
use crate::proof;

/// What became of a test case.
enum Became {
    Passed,
    Failed { kind: &'static str, message: String, text: String },
    Skipped(String),
}

/// The document as JUnit XML.
pub(crate) fn junit(document: &ProofDocument) -> String {
    let cases = cases(document);
    let failures = cases.iter().filter(|(_, became)| matches!(became, Became::Failed { .. })).count();
    let skipped = cases.iter().filter(|(_, became)| matches!(became, Became::Skipped(_))).count();
    let name = text(&format!("{} on {}", document.subject, document.file_system));
    let counts = format!(r#"tests="{}" failures="{failures}" errors="0""#, cases.len());
    let environment = &document.environment;
    let seconds = document.recording.seconds;
    // The schema of Ant's report knows no time zone; times are UTC.
    let at = Some(environment.started_at.trim_end_matches('Z')).filter(|at| !at.is_empty());
    let at = at.map_or_else(String::new, |at| format!(r#" timestamp="{}""#, text(at)));
    let host = text(environment.host.as_deref().unwrap_or("localhost"));
    let mut out = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="plumb prove" {counts} time="{seconds:.3}">
<testsuite name="{name}" {counts} skipped="{skipped}" time="{seconds:.3}"{at} hostname="{host}">
"#
    );
    let properties = [
        ("drive", document.drive.clone()),
        ("proved", document.proved.to_string()),
        ("headline", document.headline.clone()),
        ("seed", document.seed.to_string()),
        ("coverage", proof::coverage(document)),
    ];
    let property =
        |(name, value): &(&str, String)| format!("<property name=\"{name}\" value=\"{}\"/>\n", text(value));
    out.push_str(&format!(
        "<properties>\n{}</properties>\n",
        properties.iter().map(property).collect::<String>()
    ));
    for (case, became) in &cases {
        out.push_str(&format!(r#"<testcase classname="{name}" name="{}" time="0""#, text(case)));
        out.push_str(&match became {
            Became::Passed => "/>\n".to_owned(),
            Became::Skipped(why) => format!("><skipped message=\"{}\"/></testcase>\n", text(why)),
            Became::Failed { kind, message, text: said } => format!(
                "><failure type=\"{kind}\" message=\"{}\">{}</failure></testcase>\n",
                text(message),
                said.lines().map(text).collect::<Vec<_>>().join("\n")
            ),
        });
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// Every class on the drive that was asked for, then every profile.
fn cases(document: &ProofDocument) -> Vec<(String, Became)> {
    let stopped = document.incomplete_because.as_deref().unwrap_or("it did not run to its end");
    let mut cases = Vec::new();
    for class in FailureClass::ALL {
        let found = document.failures.iter().find(|failure| failure.class == class);
        let became = match found {
            Some(failure) => failed(failure),
            None if !document.complete => Became::Skipped(stopped.to_owned()),
            None => Became::Passed,
        };
        cases.push((format!("{} on {}", class.name(), document.drive), became));
    }
    for profile in &document.profiles {
        let became = match (profile.failing, &profile.not_judged_because) {
            (None, why) => Became::Skipped(why.clone().unwrap_or_else(|| "not judged".to_owned())),
            (Some(0), _) => Became::Passed,
            (Some(failing), _) => {
                let ways: Vec<&str> = profile.classes.iter().map(|class| proof::class(*class)).collect();
                let kind = profile.classes.first().map_or("failing", |class| class.name());
                let message = format!("{failing} of {} states fail", profile.explored);
                Became::Failed { kind, message, text: ways.join("\n") }
            }
        };
        cases.push((format!("drive profile {}", profile.name), became));
    }
    cases
}

fn failed(failure: &Failure) -> Became {
    let mut said = vec![proof::words(failure)];
    said.extend(failure.change.as_ref().map(proof::change));
    said.push(format!("Replay: {}", failure.replay));
    let message = format!("{} states fail: {}", failure.states, proof::case(&failure.minimal));
    Became::Failed { kind: failure.class.name(), message, text: said.join("\n") }
}

/// Text within an element or an attribute; what XML cannot hold is shown as an escape.
fn text(text: &str) -> String {
    escape::escape(&printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}
