//! The percentiles of all hosts are those of the samples put together, over the wire and whatever the number of hosts: guards
//! against averaged percentiles.

use plumb_fleet::controller::Phase;
use plumb_fleet::merge;
use plumb_load::LoadOutcome;

use crate::world::{World, in_phase, outcome, record};

#[test]
fn merged_percentiles_are_those_of_the_concatenated_samples() {
    for hosts in [1, 2, 7, 100] {
        let outcomes: Vec<LoadOutcome> = (0..hosts).map(|host| outcome(host, 50 + host * 7)).collect();
        let mut world = World::new(hosts, hosts as usize, outcomes.clone());
        world.run();
        assert_eq!(in_phase(&world, Phase::Done), hosts as usize);
        // The samples in one, as if one host had recorded them.
        let mut concatenated = LoadOutcome::empty();
        (0..hosts).for_each(|host| record(&mut concatenated, host, 50 + host * 7));
        let answers = merge::answers(&mut world.controller);
        let merged = merge::together(answers.iter().filter_map(|answer| answer.outcome.as_ref())).unwrap();
        let whole = LoadOutcome::together(&outcomes);
        assert_eq!(merged.read.latency.summary(), whole.read.latency.summary());
        assert_eq!(merged.flush.latency.summary(), whole.flush.latency.summary());
        for per_mille in (1..=999).step_by(7) {
            let (merged, exact) = (&merged.read.latency, &concatenated.read.latency);
            assert_eq!(
                merged.at_per_mille(per_mille),
                exact.at_per_mille(per_mille),
                "{hosts} hosts, {per_mille}"
            );
        }
        let document = merge::document(&answers);
        assert!(!document.partial);
        let total = document.total.unwrap();
        assert_eq!(total.read.ios, whole.read.operations());
        assert_eq!(total.read.latency, whole.read.latency.summary());
    }
}
