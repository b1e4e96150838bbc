//! Every switch has an effect on the scenario or the output, or a note says that it has none.

use plumb_block::Nanos;
use plumb_workload::{Affinity, Opening, Priority, Span, Stop, Warmup};

use super::changes::{CHANGES, ChangeKind};

/// Switches that affect the output only.
const PRINTED: &[&str] = &["-L t", "-D t", "-D500 t", "-v t", "-vs t", "-P t", "-Rxml t", "-Rtext -Rxml t"];

/// Switches without an effect, each with the word of its note.
const SAID: &[(&str, &str)] = &[
    ("-x t", "-x"),
    ("-l t", "-l"),
    ("-fr t", "-fr"),
    ("-fs t", "-fs"),
    ("-ft t", "-ft"),
    ("-frst t u v", "-fr"),
    ("-eDISK_IO t", "-e"),
    ("-:1 t", "-:"),
];

/// Returns the span without the fields that a switch of this kind may change.
fn hide(what: ChangeKind, mut span: Span) -> Span {
    match what {
        ChangeKind::Requests => {}
        ChangeKind::Opening => span.jobs.iter_mut().for_each(|job| job.opening = Opening::CACHED),
        ChangeKind::Placement => {
            for job in &mut span.jobs {
                (job.affinity, job.priority) = (Affinity::Any, Priority::Normal);
            }
        }
        ChangeKind::Time => {
            (span.warmup, span.cooldown) = (Warmup::Auto, Nanos::ZERO);
            span.jobs.iter_mut().for_each(|job| job.workload.stop = Stop::default());
        }
        ChangeKind::File => span.jobs.iter_mut().for_each(|job| job.size = None),
        ChangeKind::Target => {
            for job in &mut span.jobs {
                job.name.clear();
                job.targets[0].name.clear();
                job.opening = Opening::CACHED;
            }
        }
    }
    span
}

#[test]
fn each_switch_changes_the_scenario() {
    for (switch, what, without, with) in CHANGES {
        let span = |typed| {
            let meaning = super::meaning(typed).unwrap_or_else(|error| panic!("{typed}: {error}"));
            meaning.scenario.spans.into_iter().next().unwrap()
        };
        let (without, with) = (span(without), span(with));
        assert_ne!(without, with, "{switch} changes nothing");
        let same = hide(*what, without.clone()) == hide(*what, with.clone());
        assert_eq!(
            same,
            *what != ChangeKind::Requests,
            "{switch}: not {what:?} alone: {without:#?} {with:#?}"
        );
    }
}

#[test]
fn what_is_only_printed_changes_the_profile_alone() {
    let plain = super::invocation("t").unwrap();
    for typed in PRINTED {
        let changed = super::invocation(typed).unwrap();
        assert_ne!(plain.profile, changed.profile, "{typed} changes nothing");
        assert_eq!(super::meaning("t").unwrap().scenario, super::meaning(typed).unwrap().scenario, "{typed}");
    }
}

#[test]
fn what_means_nothing_here_is_said_once() {
    for (typed, named) in SAID {
        let notes = super::meaning(typed).unwrap().notes;
        assert_eq!(notes.iter().filter(|note| note.contains(named)).count(), 1, "{typed}: {notes:?}");
    }
    assert!(super::meaning("t").unwrap().notes.is_empty(), "nothing to say of nothing");
}
