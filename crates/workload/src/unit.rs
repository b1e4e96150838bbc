//! Common divisor of all offsets and lengths: the address granularity that a device must support.

use plumb_block::Bytes;

use crate::access::Access;
use crate::replay::RecordedEvents;
use crate::workload::{Division, Workload};

/// Returns the greatest common divisor; 0 if all numbers are 0, or there are none.
pub fn common_unit(all: impl IntoIterator<Item = Bytes>) -> Bytes {
    let mut unit = 0;
    for Bytes(one) in all {
        unit = greatest_common_divisor(unit, one);
        if unit == 1 {
            break;
        }
    }
    Bytes(unit)
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

impl Workload {
    /// Returns the lengths of operations and the distances between places, each with its field. Offsets are
    /// sums of these from the start of the range.
    pub fn steps(&self) -> Vec<(&'static str, Bytes)> {
        let lengths = self.splits().flat_map(|(split, _)| &split.0);
        let mut steps: Vec<_> = lengths.map(|(length, _)| ("block", *length)).collect();
        match &self.access {
            Access::Random(random) => steps.extend(random.align.map(|align| ("access.align", align))),
            Access::Sequential(sequential) => {
                steps.extend(sequential.stride.map(|stride| ("access.stride", stride)));
            }
        }
        if let Division::Offset(offset) = self.division {
            steps.push(("division.offset", offset));
        }
        steps
    }

    /// Returns the greatest common divisor of all offsets and lengths of operations.
    pub fn unit(&self) -> Bytes {
        common_unit(self.steps().into_iter().map(|(_, step)| step).chain([self.range.offset]))
    }
}

impl RecordedEvents {
    /// Returns the greatest common divisor of all offsets and lengths of events.
    pub fn unit(&self) -> Bytes {
        common_unit(self.events().iter().flat_map(|event| [event.offset, event.length()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Random;
    use crate::block_sizes::{BlockSizes, BlockSplit};
    use crate::byte_range::ByteRange;

    fn blocks_of(lengths: &[u64]) -> Workload {
        let split = BlockSplit(lengths.iter().map(|length| (Bytes(*length), 50)).collect());
        let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
        let blocks = BlockSizes { read: split, ..BlockSizes::one(Bytes(4097)) };
        Workload { blocks, ..Workload::over(range, Bytes(512)) }
    }

    #[test]
    fn lengths_steps_and_the_start_count_and_what_does_not_occur_does_not() {
        assert_eq!(blocks_of(&[2300]).unit(), Bytes(2300), "nothing is written");
        assert_eq!(Workload { write_percent: 1, ..blocks_of(&[2300]) }.unit(), Bytes(1));
        assert_eq!(blocks_of(&[700, 1300]).unit(), Bytes(100));
        let Access::Random(random) = Access::RANDOM else { panic!("random access is random") };
        let access = Access::Random(Random { align: Some(Bytes(512)), ..random });
        assert_eq!(Workload { access, ..blocks_of(&[4096]) }.unit(), Bytes(512));
        let range = ByteRange { offset: Bytes(24), length: Bytes::mib(1) };
        assert_eq!(Workload { range, ..blocks_of(&[1000]) }.unit(), Bytes(8));
        assert_eq!(
            Workload { division: Division::Offset(Bytes(50)), ..blocks_of(&[700, 1300]) }.unit(),
            Bytes(50)
        );
    }
}
