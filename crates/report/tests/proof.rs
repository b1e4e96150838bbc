//! Proof in the formats for other programs, and opened again from its run directory.

use crate::common;
use plumb_measure::{Manifest, Out, RunDirectory};
use plumb_report::document::proof::{FailureClass, FlushesLeftOut, StateCounts};
use plumb_report::{Format, OpenError, ProofDocument, RunContents, RunRecording, Style, render};
use roxmltree::{Document, Node};

fn junit(document: &ProofDocument) -> String {
    render(document, Format::Junit, Style::default()).expect("XML")
}

fn elements<'a, 'i>(xml: &'a Document<'i>, name: &'static str) -> Vec<Node<'a, 'i>> {
    xml.descendants().filter(|node| node.has_tag_name(name)).collect()
}

#[test]
fn the_counts_of_junit_are_those_of_its_cases() {
    for name in common::PROOFS {
        let document = common::proof(name);
        let text = junit(&document);
        let xml = Document::parse(&text).expect("well-formed XML");
        let suite = elements(&xml, "testsuite")[0];
        let counted = |name| suite.attribute(name).and_then(|count| count.parse::<usize>().ok());
        assert_eq!(counted("tests"), Some(elements(&xml, "testcase").len()), "{name}");
        assert_eq!(counted("tests"), Some(FailureClass::ALL.len() * document.profiles.len()), "{name}");
        assert_eq!(counted("failures"), Some(elements(&xml, "failure").len()), "{name}");
        assert_eq!(counted("skipped"), Some(elements(&xml, "skipped").len()), "{name}");
        let lost: usize = document.profiles.iter().map(|profile| profile.classes.len()).sum();
        assert_eq!(counted("failures"), Some(lost), "{name}");
        for case in elements(&xml, "testcase") {
            assert!(case.attribute("name").is_some() && case.attribute("classname").is_some(), "{name}");
            assert!(
                case.children().filter(Node::is_element).count() <= 1,
                "{name}: one result for each case"
            );
        }
    }
}

#[test]
fn a_failure_in_junit_says_what_to_do_and_how_to_see_it_again() {
    let text = junit(&common::proof("lost"));
    let xml = Document::parse(&text).expect("well-formed XML");
    let failure =
        elements(&xml, "failure").into_iter().find(|of| of.attribute("type") == Some("lost-acknowledged"));
    let failure = failure.expect("the class is there");
    let said = failure.text().unwrap_or_default();
    assert!(
        said.contains("fsync of the directory after unlink") && said.contains("plumb prove replay"),
        "{said}"
    );
    assert!(failure.attribute("message").is_some_and(|said| said.contains("directory of /")), "{text}");
}

#[test]
fn what_was_not_judged_is_skipped_and_never_passes() {
    let stopped = common::proof("stopped");
    let text = junit(&stopped);
    let xml = Document::parse(&text).expect("well-formed XML");
    let skipped = elements(&xml, "skipped");
    assert_eq!(skipped.len(), stopped.profiles.len() * FailureClass::ALL.len(), "{text}");
    assert!(skipped.iter().all(|of| of.attribute("message") == Some("Ctrl-C")), "{text}");
    let lost = junit(&common::proof("lost"));
    assert!(lost.contains("<skipped message=\"it was recorded through FUSE"), "{lost}");
}

#[test]
fn no_name_breaks_the_xml() {
    let mut document = common::proof("lost");
    let evil = "]]></failure>\u{0}\u{1b}\u{ffff}<x y=\"&'";
    document.subject = evil.to_owned();
    document.failures[0].words = evil.to_owned();
    document.profiles[4].not_judged_because = Some(evil.to_owned());
    document.environment.host = Some(evil.to_owned());
    let text = junit(&document);
    let xml = Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(elements(&xml, "x").is_empty());
}

#[test]
fn formats_of_loads_are_refused_with_those_of_proofs() {
    for format in [Format::Prometheus, Format::Fio] {
        let error = render(&common::proof("lost"), format, Style::default()).expect_err("no such format");
        assert!(error.to_string().contains("html, markdown, json, csv or junit"), "{error}");
    }
    let load = common::recording("virtual-machine");
    assert!(render(&load, Format::Junit, Style::default()).is_err());
}

#[test]
fn markdown_names_the_case_and_the_change() {
    let text = render(&common::proof("lost"), Format::Markdown, Style::default()).expect("text");
    for words in [
        "# plumb prove app `sqlite:journal=delete,synchronous=full`",
        "was dropped",
        "**Danger: ",
        "Sync call",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn proved_is_said_with_its_limits_and_of_nothing_else() {
    for name in common::PROOFS {
        let document = common::proof(name);
        let text = render(&document, Format::Terminal, Style::PLAIN).expect("text");
        assert_eq!(text.contains("\nPROVED\n"), document.proved, "{name}: {text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let limits = "This holds for this recording, this drive profile and this check.";
        assert_eq!(words.contains(limits), document.proved, "{name}: {text}");
    }
    let mut document = common::proof("stopped");
    let text = render(&document, Format::Terminal, Style::PLAIN).expect("text");
    assert!(text.contains("NOT PROVED") && text.contains("stdout, which is read late"), "{text}");
    document.profiles.iter_mut().for_each(|profile| profile.exhaustive = profile.failing == Some(0));
    for format in [Format::Terminal, Format::Markdown, Format::Html] {
        let text = render(&document, format, Style::PLAIN).expect("text");
        let safe = [" safe\n", "| safe |", ">safe<"].into_iter().find(|cell| text.contains(cell));
        assert!(text.contains("none fails") && safe.is_none(), "{safe:?}: {text}");
    }
}

#[test]
fn a_run_directory_of_a_proof_is_opened_like_any_other() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let manifest = Manifest::starting("prove", vec!["plumb".into()], 7, "2026-01-02T03:04:05Z");
    let out = Out::At { path: root.path().to_owned(), replace: true };
    let run = RunDirectory::create(&out, &manifest).expect("a directory").expect("one is kept");
    assert!(matches!(RunContents::open(root.path()), Ok(None)), "nothing is there yet");
    let document = common::proof("lost");
    run.write_result(&document).expect("a result");
    run.finish(None, "2026-01-02T03:05:00Z").expect("an end");
    let Ok(Some(RunContents::Proof(read))) = RunContents::open(root.path()) else {
        panic!("no proof was read")
    };
    assert_eq!(*read, document);
    assert!(
        matches!(RunRecording::open(root.path()), Err(OpenError::UnknownKind { .. })),
        "it is not a load"
    );
}

/// Returns the terminal report in one line.
fn told(document: &ProofDocument) -> String {
    let text = render(document, Format::Terminal, Style::PLAIN).expect("text");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn failures_that_a_baseline_accepts_are_not_a_danger() {
    let mut document = common::proof("lost");
    document.environment.argv = ["plumb", "prove", "ci", "--", "true"].map(str::to_owned).to_vec();
    assert!(told(&document).contains(" DANGER "), "{}", told(&document));
    document.failures[0].accepted = true;
    let some = told(&document);
    assert!(some.contains(" DANGER ") && some.contains("The baseline accepts 1 of 2 failures."), "{some}");
    document.failures.iter_mut().for_each(|failure| failure.accepted = true);
    let all = told(&document);
    assert!(all.contains(" ACCEPTED ") && all.contains("The baseline accepts all 2 failures."), "{all}");
    assert!(all.starts_with("plumb prove ci "), "{all}");
    let page = render(&document, Format::Html, Style::PLAIN).expect("a page");
    assert!(page.contains("<strong>plumb prove ci</strong>") && page.contains("accepted by the baseline"));
}

#[test]
fn one_state_fails_and_several_fail() {
    let mut document = common::proof("lost");
    document.states = StateCounts { explored: 1, distinct: 1, checked: 1, failing: 1 };
    document.failures.retain(|failure| failure.change.is_some());
    let change = document.failures[0].change.as_mut().expect("a change");
    (change.failing_after, change.explored) = (1, 1);
    document.flushes = Some(FlushesLeftOut { flushes: 1, explored: 1, failing: 1 });
    let text = told(&document);
    for words in [
        "1 state that a power cut may leave, 1 of them distinct; 1 fails.",
        "with it 1 of 1 state fails in",
        "Without its only device flush, 1 of 1 distinct state fails.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_search_for_needless_syncs_that_was_not_made_says_why() {
    let mut document = common::proof("lost");
    assert!(!told(&document).contains("No sync call was left out"));
    document.environment.argv.push("--needless-syncs".to_owned());
    let text = told(&document);
    assert!(text.contains("No sync call was left out, because a state fails with all of them"), "{text}");
}
