//! Tests that the seed determines the stream of operations forever, and that the stream matches its
//! description.

mod division;
mod durability;
mod golden;
mod model;
mod runs;
mod shares;
mod spread;
mod walks;

use super::*;
use crate::access::Random;

const WHOLE: Share = Share::WHOLE;

/// Returns a workload of 30 % writes of 4 KiB, at random places in the gibibyte after the first mebibyte.
fn workload() -> Workload {
    let range = ByteRange { offset: Bytes::mib(1), length: Bytes::gib(1) };
    Workload { write_percent: 30, seed: 42, ..Workload::over(range, Bytes::kib(4)) }
}

/// Returns the range of `count` blocks of 4 KiB from the start of the target.
fn blocks(count: u64) -> ByteRange {
    ByteRange { offset: Bytes(0), length: Bytes::kib(4) * count }
}

fn drawn(distribution: Distribution, runs: Runs) -> Access {
    Access::Random(Random { align: None, distribution, runs })
}

fn generator(workload: &Workload, share: Share) -> Generator {
    Generator::new(workload, share, &Cursor::default()).unwrap()
}

fn operations(workload: &Workload, count: usize) -> Vec<Operation> {
    generator(workload, WHOLE).take(count).collect()
}

/// Returns the start and the length of a read, write or trim.
fn span(operation: Operation) -> Option<(u64, u64)> {
    match operation {
        Operation::Read { offset, length }
        | Operation::Write { offset, length, .. }
        | Operation::Trim { offset, length } => Some((offset.0, length.0)),
        Operation::Flush => None,
    }
}

fn offset(operation: Operation) -> Option<u64> {
    span(operation).map(|(offset, _)| offset)
}

fn offsets(workload: &Workload, count: usize) -> Vec<u64> {
    operations(workload, count).into_iter().filter_map(offset).collect()
}

fn shares(of: u32) -> impl Iterator<Item = Share> {
    Share::all(NonZeroU32::new(of).unwrap())
}

/// Asserts that `counts` match the expectations from `parts` of a whole (which add up to 1), by Pearson's
/// chi-square at an error of one in a thousand. Neighbours are joined until ten of each are expected.
fn assert_fits(counts: &[u64], parts: &[f64], what: &str) {
    let total = counts.iter().sum::<u64>() as f64;
    let sum: f64 = parts.iter().sum();
    assert!((sum - 1.0).abs() < 1e-6, "the expectation of {what} adds up to {sum}");
    let (mut square, mut cells, mut seen, mut expected) = (0.0, 0, 0.0, 0.0);
    let mut left = total;
    for (count, part) in counts.iter().zip(parts) {
        seen += *count as f64;
        expected += part * total;
        left -= part * total;
        if expected >= 10.0 && left >= 10.0 {
            square += (seen - expected).powi(2) / expected;
            cells += 1;
            (seen, expected) = (0.0, 0.0);
        }
    }
    square += if expected > 0.0 { (seen - expected).powi(2) / expected } else { seen };
    // The cells are one more, the degrees of freedom one less. Wilson and Hilferty's approximation.
    let freedom = f64::from(cells);
    let critical = freedom * (1.0 - 2.0 / (9.0 * freedom) + 3.09 * (2.0 / (9.0 * freedom)).sqrt()).powi(3);
    assert!(
        square <= critical,
        "{what}: chi-square {square:.1} over {critical:.1} at {freedom} degrees of freedom"
    );
}

#[test]
#[should_panic(expected = "a skewed coin: chi-square")]
fn the_test_of_frequencies_tells_a_wrong_law() {
    assert_fits(&[10_250, 9_750], &[0.5, 0.5], "a skewed coin");
}

/// Returns the number of accesses to each block of 4 KiB.
fn tally(workload: &Workload, count: usize) -> Vec<u64> {
    let mut counts = vec![0; (workload.range.length.0 / 4096) as usize];
    for offset in offsets(workload, count) {
        counts[((offset - workload.range.offset.0) / 4096) as usize] += 1;
    }
    counts
}
