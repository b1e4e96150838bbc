//! Guards against averaged percentiles: those of all hosts equal those of the concatenated samples, through
//! the protocol and for any number of hosts. Also guards against a total rate below that of one host: rates
//! are sums of the hosts' rates, whenever each ended.

use plumb_block::Nanos;
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
        // All samples, as if recorded by one host.
        let mut concatenated = LoadOutcome::empty();
        (0..hosts).for_each(|host| record(&mut concatenated, host, 50 + host * 7));
        let mut answers = merge::answers(&mut world.controller);
        let merged = merge::together(answers.iter().filter_map(|answer| answer.outcome.as_deref())).unwrap();
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
        let document = merge::document(&mut answers);
        assert!(!document.partial);
        let total = document.total.unwrap();
        assert_eq!(total.read.ios, whole.read.operations());
        assert_eq!(total.read.latency, whole.read.latency.summary());
    }
}

#[test]
fn what_hosts_reach_in_all_is_the_sum_of_their_rates_whenever_each_of_them_ends() {
    // Both hosts do the same number of operations, one in a tenth of the time.
    let [mut fast, slow] = [1, 2].map(|seed| outcome(seed, 1000));
    fast.length = Nanos::secs(1);
    let mut world = World::new(3, 2, vec![fast, slow]);
    world.run();
    let mut answers = merge::answers(&mut world.controller);
    let step = merge::scale_step(&answers, None);
    let mut document = merge::document(&mut answers);
    plumb_report::verdict::conclude_fleet(&mut document, &[]);
    let total = document.total.clone().unwrap();
    assert_eq!((total.application.iops, total.read.iops, total.sync.iops), (1100.0, 1100.0, 1100.0));
    assert_eq!(total.application.bytes_per_second, 1100.0 * 8192.0);
    assert_eq!((total.read.ios, total.application.seconds), (2000, 10.0));
    // The scale step and the headline state the same figure.
    assert_eq!((step.iops, step.bytes_per_second), (1100.0, 1100.0 * 8192.0));
    assert!(
        document.headline.contains("reached 1,100 IOPS and 8.59 MiB/s in all, 4.3 MiB/s each"),
        "{document:?}"
    );
    assert_eq!(document.each_bytes_per_second() * 2.0, total.application.bytes_per_second);
    assert!(document.notes.iter().any(|note| note.starts_with("Total rates are the sums")), "{document:?}");
    let shown = |format| plumb_report::render(&document, format, plumb_report::Style::PLAIN).unwrap();
    let rows = shown(plumb_report::Format::Csv);
    assert!(rows.contains("load,,,read_iops,1100,"), "{rows}");
    let metrics = shown(plumb_report::Format::Prometheus);
    assert!(metrics.contains("plumb_fleet_operations_per_second{side=\"application\"} 1100\n"), "{metrics}");
}
