//! From how a job wants its targets opened to what `linux` is told.

use plumb_block::Bytes;
use plumb_linux::{Access, FileOptions};
use plumb_workload::Job;

/// What is addressed in blocks of 512 bytes, as ever.
const SECTOR: Bytes = Bytes(512);
/// Larger ones are laid out and verified in parts where they can be.
const BLOCK_MAX: u64 = 64 << 10;
/// The shortest part that holds a stamp.
const BLOCK_MIN: u64 = 32;

/// How the targets of `job` are opened, for writing or not, where all offsets and lengths are multiples of `unit`.
pub(crate) fn options(job: &Job, writes: bool, unit: Bytes) -> FileOptions {
    let access = if writes { Access::ReadWrite } else { Access::ReadOnly };
    FileOptions {
        append: job.size.filter(|_| job.append),
        logical_block: logical_block(unit),
        ..FileOptions::new(access, job.opening)
    }
}

/// The blocks in which to address, if not sectors. Past the page cache they are the device's, whatever is said.
fn logical_block(unit: Bytes) -> Option<Bytes> {
    if unit.0.is_multiple_of(SECTOR.0) {
        return None;
    }
    let part = (BLOCK_MIN..=BLOCK_MAX).rev().find(|part| unit.0.is_multiple_of(*part));
    Some(part.filter(|_| unit.0 > BLOCK_MAX).map_or(unit, Bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_the_unit_and_are_sectors_where_these_do() {
        for (unit, expected) in [(512, None), (4096, None), (1 << 30, None), (2300, Some(2300)), (1, Some(1))]
        {
            assert_eq!(logical_block(Bytes(unit)), expected.map(Bytes), "{unit}");
        }
        assert_eq!(logical_block(Bytes(100_000_000)), Some(Bytes(62_500)));
        assert_eq!(logical_block(Bytes(1_000_003)), Some(Bytes(1_000_003)), "a prime");
    }
}
