//! Tests that the model conforms, and that the kit finds every planted bug, so every check can fail.

use std::collections::BTreeSet;

use super::*;
use crate::conformance::{Report, Verdict, names, run};

const SEED: u64 = 20;

fn report_of(options: ModelOptions) -> Report {
    run(&mut ModelRig::new(options).unwrap(), SEED)
}

fn variants(seed: u64) -> [ModelOptions; 3] {
    let small = ModelOptions::small(seed);
    [
        small,
        ModelOptions { discard_zeroes: true, fast_zeroes: true, ..small },
        ModelOptions { is_cached: false, discards: false, logical_block: crate::Bytes(4096), ..small },
    ]
}

#[test]
fn the_model_conforms() {
    for seed in 0..4 {
        for options in variants(seed) {
            let report = report_of(options);
            assert!(report.failed().next().is_none(), "{report}");
            let skipped: Vec<_> = report.skipped().collect();
            if options.discards {
                assert!(skipped.is_empty(), "the model can stage everything: {report}");
            }
        }
    }
}

#[test]
fn every_bug_is_caught_and_every_check_catches_one() {
    let mut missed = Vec::new();
    let mut unused: BTreeSet<&str> = names().into_iter().collect();
    for bug in Bug::ALL {
        let mut catchers = BTreeSet::new();
        for options in variants(7) {
            let report = report_of(ModelOptions { bug: Some(*bug), ..options });
            catchers.extend(report.failed().map(|check| check.name.clone()));
            for check in report.failed() {
                let Verdict::Failed { why } = &check.verdict else { continue };
                assert!(why.contains("seed"), "a failure without its seed: {why}");
            }
            if !catchers.is_empty() {
                break;
            }
        }
        if catchers.is_empty() {
            missed.push(bug);
        }
        println!("{bug:?}: {catchers:?}");
        unused.retain(|name| !catchers.contains(*name));
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
    assert!(unused.is_empty(), "never failed, whatever the bug: {unused:?}");
}

#[test]
fn one_seed_gives_one_report() {
    let options = ModelOptions { bug: Some(Bug::OlderOverDurable), ..ModelOptions::small(3) };
    assert_eq!(report_of(options), report_of(options));
}
