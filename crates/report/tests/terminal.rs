//! Terminal report of every sample at three widths, in UTF-8 and in ASCII, reviewed as text.

use crate::common;
use plumb_path::Survey;
use plumb_report::{Format, Style, Verbosity, render, terminal};

fn text(name: &str, style: Style) -> String {
    if let Some(proof) = name.strip_prefix("proof-") {
        return render(&common::proof(proof), Format::Terminal, style).expect("text");
    }
    let recording = match name.strip_prefix("load-") {
        Some(load) => common::load_recording(load),
        None => common::recording(name),
    };
    render(&recording, Format::Terminal, style).expect("text")
}

/// Returns the samples of checks, and those of loads.
fn names() -> Vec<String> {
    let loads = common::LOADS.map(|name| format!("load-{name}"));
    let proofs = ["lost", "proved", "stopped"].map(|name| format!("proof-{name}"));
    common::NAMES.map(str::to_owned).into_iter().chain(loads).chain(proofs).collect()
}

/// Returns true for a line wider than `width`. Lines to copy, which are not broken, are exempt.
fn too_long(line: &str, width: usize) -> bool {
    let copied = ["/", "plumb-runs/", "plumb prove replay"];
    line.chars().count() > width && !copied.iter().any(|start| line.trim_start().starts_with(start))
}

#[test]
fn every_sample_at_three_widths() {
    for name in names() {
        let name = name.as_str();
        for width in [60, 100, 160] {
            let text = text(name, Style { width, colour: false, unicode: true, ..Style::PLAIN });
            insta::assert_snapshot!(format!("{name}-{width}"), text);
            assert!(!text.contains('\u{1b}'), "{name}: colour although it was not asked for");
            for line in text.lines() {
                assert!(!too_long(line, width), "{name} at {width}: {line}");
                assert_eq!(line, line.trim_end(), "{name} at {width} ends in spaces");
            }
        }
    }
}

#[test]
fn a_short_report_is_the_verdict_and_what_matters_about_it() {
    for name in ["virtual-machine", "raid-eight-disks", "load-all-wrong", "load-cache-or-disk", "proof-lost"]
    {
        for verbosity in [Verbosity::Quiet, Verbosity::Normal] {
            let text = text(name, Style { verbosity, ..Style::PLAIN });
            insta::assert_snapshot!(format!("{name}-{verbosity:?}").to_lowercase(), text);
            assert!(text.lines().count() <= if verbosity == Verbosity::Quiet { 3 } else { 45 }, "{text}");
        }
    }
}

#[test]
fn a_rule_is_explained_and_all_are_listed() {
    let rule = plumb_report::rules::find("barriers-off").expect("a rule");
    insta::assert_snapshot!("explain", terminal::explain(rule, Style::PLAIN));
    let listed = terminal::explain_list(Style::PLAIN);
    for rule in plumb_report::rules::all() {
        assert!(listed.contains(&rule.id), "{}", rule.id);
        assert!(!rule.severities().is_empty(), "{} does not say how bad it is", rule.id);
    }
    let words = listed.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = |text: &str| listed.find(text).unwrap_or_else(|| panic!("no `{text}` in {listed}"));
    assert!(at("File system\n") < at("barriers-off") && at("barriers-off") < at("Drive\n"), "{listed}");
    assert!(words.contains("h9-driver-swallows-flush warning, danger"), "{listed}");
}

#[test]
fn without_utf_8_everything_is_ascii() {
    for name in names() {
        let text = text(&name, Style { width: 80, colour: false, unicode: false, ..Style::PLAIN });
        assert!(text.is_ascii(), "{name}: {text}");
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    for name in names() {
        let plain = text(&name, Style { width: 100, colour: false, unicode: true, ..Style::PLAIN });
        let coloured = text(&name, Style { width: 100, colour: true, unicode: true, ..Style::PLAIN });
        assert!(coloured.contains("\u{1b}[1m"));
        let mut bare = String::new();
        for piece in coloured.split('\u{1b}') {
            bare.push_str(
                piece
                    .strip_prefix('[')
                    .and_then(|piece| piece.split_once('m'))
                    .map_or(piece, |split| split.1),
            );
        }
        assert_eq!(bare, plain, "{name}");
    }
}

#[test]
fn surveys_in_full_and_as_a_list() {
    let paths = ["virtual-machine", "raid-eight-disks", "tmpfs"]
        .map(|name| common::document(name).path.unwrap())
        .into();
    let survey = Survey { schema: Survey::SCHEMA.to_owned(), kernel: None, paths };
    insta::assert_snapshot!("survey", terminal::survey(&survey, Style::PLAIN));
    insta::assert_snapshot!("survey-list", terminal::survey_list(&survey, Style::PLAIN));
    let narrow = Style { width: 50, ..Style::PLAIN };
    insta::assert_snapshot!("survey-list-narrow", terminal::survey_list(&survey, narrow));
}
