//! Tests of several workers: parts, generations, and refusals.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::pace::Stop;

proptest! {
    #[test]
    fn every_rewrite_takes_a_higher_generation_and_replays(seed: u64, count in 1_u64..50, length in 1_u64..500) {
        let range = blocks(count);
        let workload = Workload { range, seed, write_percent: 70, stop: Stop::operations(length), ..workload() };
        let mut latest = HashMap::new();
        for operation in generator(&workload, WHOLE) {
            prop_assert!(offset(operation).unwrap() < range.length.0);
            if let Operation::Write { offset, generation, .. } = operation {
                prop_assert!(generation > 0, "0 means never written");
                let before = latest.insert(offset, generation);
                prop_assert!(before.is_none_or(|before| before < generation));
            }
        }
        prop_assert_eq!(generator(&workload, WHOLE).count() as u64, length);
        prop_assert!(generator(&workload, WHOLE).eq(generator(&workload, WHOLE)));
    }

    #[test]
    fn workers_with_parts_never_touch_the_same_byte(
        seed: u64, of in 1_u32..8, align in 1_u64..24, random: bool, offset in 0_u64..9, length in 300_u64..900
    ) {
        let step = Some(Bytes(512 * align));
        let access = if random {
            Access::Random(Random { align: step, distribution: Distribution::Uniform, runs: Runs::Fixed(3) })
        } else {
            Access::Sequential(crate::access::Sequential { stride: step, walk: crate::access::Walk::Each })
        };
        let range = ByteRange { offset: Bytes(512 * offset), length: Bytes(512 * length + 77) };
        let workload = Workload { seed, access, range, ..workload() };
        let mut owners = HashMap::new();
        for share in shares(of) {
            for (offset, length) in generator(&workload, share).take(200).filter_map(span) {
                prop_assert!(offset >= range.offset.0 && offset + length <= range.offset.0 + range.length.0);
                for sector in offset / 512..(offset + length) / 512 {
                    prop_assert_eq!(*owners.entry(sector).or_insert(share.index()), share.index());
                }
            }
        }
    }
}

#[test]
fn generations_of_workers_that_overlap_are_distinct() {
    let workload =
        Workload { write_percent: 100, division: Division::Overlap, range: blocks(10), ..workload() };
    let mut seen = HashSet::new();
    for share in shares(3) {
        for operation in generator(&workload, share).take(1000) {
            let Operation::Write { generation, .. } = operation else { unreachable!() };
            assert!(generation > 0 && seen.insert(generation), "generation {generation} was given twice");
        }
    }
    let alone: Vec<Operation> = operations(&workload, 100);
    let parts = operations(&Workload { division: Division::Parts, ..workload }, 100);
    assert_eq!(alone, parts, "a single worker has all of it either way");
}

#[test]
fn parts_cover_all_places() {
    let workload = Workload { access: Access::SEQUENTIAL, range: blocks(103), ..workload() };
    let touched: HashSet<u64> =
        shares(4).flat_map(|share| generator(&workload, share).take(26).filter_map(offset)).collect();
    assert_eq!(touched.len(), 103);
}

#[test]
fn what_cannot_be_divided_or_verified_is_refused() {
    let refused = |workload: &Workload, of| {
        shares(of)
            .find_map(|share| Generator::new(workload, share, &Cursor::default()).err())
            .map(|invalid| invalid.to_string())
    };
    let few = Workload { range: blocks(3), ..workload() };
    assert_eq!(refused(&few, 3), None);
    let room = "length is 12 KiB: expected room for a block of 4 KiB for each of 4 workers";
    assert_eq!(refused(&few, 4).as_deref(), Some(room));
    let open = Workload { range: ByteRange::ALL, ..workload() };
    assert_eq!(open.validate(), Ok(()));
    assert!(refused(&open, 1).unwrap().starts_with("length is open-ended"));
    assert_eq!(refused(&open.within(Bytes::mib(1)).unwrap(), 1), None);
    let verified = Workload { verify: true, division: Division::Overlap, ..workload() };
    assert_eq!(refused(&verified, 1), None);
    assert!(refused(&verified, 2).unwrap().starts_with("verify is true: expected false with 2 workers"));
    assert_eq!(refused(&Workload { division: Division::Parts, ..verified }, 2), None);
}
