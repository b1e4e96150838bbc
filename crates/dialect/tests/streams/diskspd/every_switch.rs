//! Switches that are declared to change the requests change them, and other switches do not.

use plumb_block::Nanos;
use plumb_workload::{Span, Stop, Warmup};

use super::span;
use crate::diskspd::changes::{CHANGES, ChangeKind};
use crate::streams::crew::{SIZE, run};
use crate::streams::recording::SeenRequest;

/// Removes target names, so that equal requests compare equal.
fn unnamed(mut seen: Vec<SeenRequest>) -> Vec<SeenRequest> {
    seen.iter_mut().for_each(|seen| seen.target.clear());
    seen
}

/// Shortens a span to two seconds, unless the switch is about time.
fn shortened(mut span: Span, what: ChangeKind) -> Span {
    if what != ChangeKind::Time {
        span.warmup = Warmup::For(Nanos::ZERO);
        span.jobs.iter_mut().for_each(|job| job.workload.stop = Stop::after(Nanos::secs(2)));
    }
    span
}

#[test]
fn each_switch_changes_the_stream_or_only_what_it_says() {
    let noise = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(noise.path(), "noise").unwrap();
    for (switch, what, without, with) in CHANGES {
        // A seed affects random access only.
        let random = if switch.starts_with("-z") { "-r " } else { "" };
        let of = |typed: &str| {
            let typed = typed.replace(",noise", &format!(",{}", noise.path().display()));
            shortened(span(&format!("{random}{typed}")), *what)
        };
        let (without, with) = (of(without), of(with));
        let (plain, changed) = (unnamed(run(&without).seen), unnamed(run(&with).seen));
        assert!(!plain.is_empty() && !changed.is_empty(), "{switch}");
        match what {
            ChangeKind::Requests | ChangeKind::Time => {
                assert!(plain != changed, "{switch}: the same requests")
            }
            ChangeKind::Opening | ChangeKind::Placement | ChangeKind::Target => {
                assert!(plain == changed, "{switch}: other requests");
            }
            ChangeKind::File => {
                assert_ne!(with.jobs[0].size, None, "{switch}");
                let end = |seen: &[SeenRequest]| seen.iter().map(|seen| seen.offset + seen.length).max();
                assert!(end(&plain) <= Some(SIZE.0) && end(&changed) > Some(SIZE.0), "{switch}");
            }
        }
    }
}

#[test]
fn what_changes_nothing_in_a_command_line_is_said() {
    for (named, without, with) in [
        ("-z", "t", "-z5 t"),
        ("-z", "-w100 t", "-w100 -z5 t"),
        ("-Z", "-r t", "-r -Zr t"),
        ("-Z", "-r t", "-r -Z1m t"),
        ("-Z", "-r t", "-r -Z t"),
        ("-Sw", "-r t", "-r -Sw t"),
        ("-Sw", "-r -Sm t", "-r -Smw t"),
        ("-N", "-r -Sm t", "-r -Sm -Nv t"),
        ("-p", "-o1 t", "-o1 -p t"),
        ("-si", "t", "-si t"),
        ("-x", "t", "-x t"),
    ] {
        let seen = |typed| run(&shortened(span(typed), ChangeKind::Requests)).seen;
        assert!(seen(without) == seen(with), "{with} changes the requests");
        let notes =
            |typed| super::invocation(typed).meaning(&crate::streams::machine(), &|_| None).unwrap().notes;
        let said = |typed| notes(typed).iter().filter(|note| note.starts_with(named)).count();
        assert_eq!((said(without), said(with)), (0, 1), "{with}: {:?}", notes(with));
    }
}

#[test]
fn what_changes_something_is_not_said_to_change_nothing() {
    for typed in
        ["-r -z5 t", "-w50 -z5 t", "-w100 -Zr -z5 t", "-w1 -Zr t", "-w100 -Z64k -z5 t", "-w1 -Sw t", "-Sh t"]
    {
        let notes = super::invocation(typed).meaning(&crate::streams::machine(), &|_| None).unwrap().notes;
        assert!(notes.is_empty(), "{typed}: {notes:?}");
    }
}
