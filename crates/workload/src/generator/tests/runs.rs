//! Tests of runs: their lengths, kinds and ends.

use super::*;
use crate::block_sizes::{BlockSizes, BlockSplit};

/// Returns the runs of a stream: operations that each start where the previous one ended.
fn cut(stream: &[Operation]) -> Vec<Vec<Operation>> {
    let mut runs: Vec<Vec<Operation>> = Vec::new();
    let mut end = None;
    for operation in stream {
        let (offset, length) = span(*operation).unwrap();
        match runs.last_mut() {
            Some(run) if end == Some(offset) => run.push(*operation),
            _ => runs.push(vec![*operation]),
        }
        end = Some(offset + length);
    }
    runs
}

fn is_of_one_kind(run: &[Operation]) -> bool {
    run.iter().all(|operation| std::mem::discriminant(operation) == std::mem::discriminant(&run[0]))
}

#[test]
fn runs_are_of_geometric_length_and_of_one_kind() {
    for (seed, random_percent) in [(1, 5), (2, 30), (3, 90)] {
        let access = drawn(Distribution::Uniform, Runs::Geometric { random_percent });
        let range = ByteRange { offset: Bytes(0), length: Bytes::gib(1 << 20) };
        let workload = Workload { access, seed, range, trim_percent: 20, ..workload() };
        let mut runs = cut(&operations(&workload, 200_000));
        runs.pop();
        assert!(runs.iter().all(|run| is_of_one_kind(run)), "a run changed its kind");
        let draws = f64::from(random_percent) / 100.0;
        let mut counts = vec![0_u64; 400];
        let mut parts: Vec<f64> = (0..399).map(|more| draws * (1.0 - draws).powi(more)).collect();
        parts.push((1.0 - draws).powi(399));
        runs.iter().for_each(|run| counts[run.len().min(400) - 1] += 1);
        assert_fits(&counts, &parts, &format!("lengths of runs at {random_percent} % random"));
        let kinds = runs.iter().fold([0; 3], |mut kinds, run| {
            match run[0] {
                Operation::Read { .. } => kinds[0] += 1,
                Operation::Write { .. } => kinds[1] += 1,
                Operation::Trim { .. } | Operation::Flush => kinds[2] += 1,
            }
            kinds
        });
        assert_fits(&kinds, &[0.5, 0.3, 0.2], "kinds of runs");
    }
}

#[test]
fn fixed_runs_are_as_long_as_was_asked_for() {
    let range = ByteRange { offset: Bytes(512), length: Bytes::gib(1 << 20) };
    let workload = Workload { access: drawn(Distribution::Uniform, Runs::Fixed(8)), range, ..workload() };
    let runs = cut(&operations(&workload, 8 * 1000));
    assert_eq!(runs.len(), 1000);
    assert!(runs.iter().all(|run| run.len() == 8 && is_of_one_kind(run)));
}

#[test]
fn a_run_ends_at_the_end_of_the_range() {
    let split = BlockSplit(vec![(Bytes::kib(4), 50), (Bytes::kib(12), 50)]);
    for runs in [Runs::Fixed(50), Runs::Geometric { random_percent: 1 }] {
        let workload = Workload {
            access: drawn(Distribution::Uniform, runs),
            range: blocks(30),
            blocks: BlockSizes { read: split.clone(), ..BlockSizes::one(Bytes::kib(8)) },
            ..workload()
        };
        let end = blocks(30).length.0;
        let stream = operations(&workload, 20_000);
        assert!(stream.iter().copied().filter_map(span).all(|(offset, length)| offset + length <= end));
        assert!(cut(&stream).iter().all(|run| run.len() <= 60), "a run is longer than the range");
    }
    let access = drawn(Distribution::Uniform, Runs::Fixed(50));
    let mut runs = cut(&operations(&Workload { access, range: blocks(30), ..workload() }, 20_000));
    runs.pop();
    for run in runs {
        let end = run.last().copied().and_then(span).map(|(offset, length)| offset + length);
        assert_eq!(end, Some(blocks(30).length.0), "a run ended before the range and before its count");
    }
}
