//! Content of writes: from the description to payloads.

use std::fs::File;
use std::io::Read;

use plumb_block::{Buffer, Bytes, Lba, Pattern, Payload, Pool, PoolShape};
use plumb_workload::{Content, Workload};

use crate::fault::Error;

/// Largest buffer of noise, so that a typing error does not use all memory.
const SOURCE_MAX: Bytes = Bytes::gib(1);
/// Number of different blocks from which the copies of a reducible content are made.
const COPIES: u64 = 16;

/// Smallest block that can be stamped: see [`Pattern`].
pub(crate) const STAMP: Bytes = Bytes(32);
/// Distance between the places of a source from which writes are taken (DiskSpd 2.2, `-Z<size>`).
const GRAIN: u64 = 4;
/// Block of a file through the page cache.
const SECTOR: Bytes = Bytes(512);

/// Returns the seed in the stamps of a run of `seed` on blocks of `logical_block` bytes: the seed itself for
/// blocks of 512, and a different one for each other length. Addresses count in blocks, so a block stamped
/// with another block length would otherwise look as if it had been written for another address.
pub fn stamp_seed(seed: u64, logical_block: Bytes) -> u64 {
    if logical_block == SECTOR {
        return seed;
    }
    seed ^ logical_block.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Makes the payload of each write.
#[derive(Debug)]
pub(crate) enum Maker {
    /// Content regenerated from (seed, LBA, generation).
    Pattern { seed: u64 },
    /// Content regenerated from the same inputs as `Pattern`, but made here since not all of it is noise.
    Reducible(Reducible),
    /// One buffer for all writes, of which each takes its length.
    Same(Buffer),
    /// Buffer from which each write takes a random place.
    Source { bytes: Vec<u8>, seed: u64 },
}

/// Noise with a compressible part and with copied blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reducible {
    seed: u64,
    logical_block: usize,
    compress_percent: u8,
    dedup_percent: u8,
}

impl Maker {
    /// Creates the content for the writes of `workload` on blocks of `logical_block` bytes.
    pub(crate) fn new(workload: &Workload, logical_block: Bytes, alignment: Bytes) -> Result<Self, Error> {
        let seed = stamp_seed(workload.seed, logical_block);
        let size = workload.block_max();
        let block = logical_block.0 as usize;
        Ok(match &workload.content {
            Content::Pattern if logical_block < STAMP => Self::Reducible(Reducible {
                seed,
                logical_block: block,
                compress_percent: 0,
                dedup_percent: 0,
            }),
            Content::Pattern => Self::Pattern { seed },
            Content::Reducible { compress_percent, dedup_percent } => Self::Reducible(Reducible {
                seed,
                logical_block: block,
                compress_percent: *compress_percent,
                dedup_percent: *dedup_percent,
            }),
            Content::Repeated => same(size, alignment, |bytes| {
                fill(Pattern { seed, lba: Lba(0), generation: 0 }, block, bytes);
            })?,
            Content::Zeroes => same(size, alignment, |bytes| bytes.fill(0))?,
            Content::Counting => same(size, alignment, |bytes| {
                for (index, byte) in bytes.iter_mut().enumerate() {
                    *byte = index as u8;
                }
            })?,
            Content::Buffer(source) => {
                let mut bytes = source_of(*source, size)?;
                // A single block contains no repetition.
                fill(Pattern { seed, lba: Lba(0), generation: 0 }, bytes.len(), &mut bytes);
                Self::Source { bytes, seed }
            }
            Content::File { size: source, path } => {
                let mut bytes = source_of(*source, size)?;
                fill_from(path, &mut bytes)?;
                Self::Source { bytes, seed }
            }
        })
    }

    /// Returns true if payloads are patterns, so that writes need no memory.
    pub(crate) fn is_pattern(&self) -> bool {
        matches!(self, Self::Pattern { .. })
    }

    /// Returns the payload of a write of `length` bytes at `lba`; `None` if the pool has no free buffer.
    #[inline]
    pub(crate) fn payload(&self, lba: Lba, generation: u64, length: Bytes, pool: &Pool) -> Option<Payload> {
        match self {
            Self::Pattern { seed } => Some(Payload::Pattern(Pattern { seed: *seed, lba, generation })),
            Self::Same(buffer) if buffer.len() as u64 == length.0 => Some(Payload::Bytes(buffer.clone())),
            Self::Same(buffer) => made(pool, length, |into| into.copy_from_slice(&buffer[..into.len()])),
            Self::Reducible(reducible) => made(pool, length, |into| reducible.fill(lba, generation, into)),
            Self::Source { bytes, seed } => made(pool, length, |into| {
                let places = (bytes.len() - into.len()) as u64 / GRAIN + 1;
                let place = drawn(Lba(lba.0 ^ seed), generation) % places;
                into.copy_from_slice(&bytes[(place * GRAIN) as usize..][..into.len()]);
            }),
        }
    }

    /// Writes the expected bytes of a block to `into`; returns `false` if this content cannot be regenerated.
    pub(crate) fn expect(&self, lba: Lba, generation: u64, into: &mut [u8]) -> bool {
        match self {
            Self::Pattern { seed } => Pattern { seed: *seed, lba, generation }.fill(into.len(), into),
            Self::Reducible(reducible) => reducible.fill(lba, generation, into),
            Self::Same(_) | Self::Source { .. } => return false,
        }
        true
    }
}

impl Reducible {
    fn fill(self, lba: Lba, generation: u64, into: &mut [u8]) {
        let length = unit_of(self.logical_block, into);
        for (index, block) in into.chunks_exact_mut(length).enumerate() {
            let lba = lba + index as u64;
            let mixed = drawn(lba, generation) >> 32;
            // Copies have no stamp of their own: they are blocks of a generation that no write has.
            let pattern = if mixed % 100 < u64::from(self.dedup_percent) {
                Pattern { seed: self.seed, lba: Lba(mixed / 100 % COPIES), generation: u64::MAX }
            } else {
                Pattern { seed: self.seed, lba, generation }
            };
            fill(pattern, length, block);
            let noise = length * usize::from(100 - self.compress_percent) / 100;
            block[noise.max(STAMP.0 as usize).min(length)..].fill(0);
        }
    }
}

/// Returns the length after which the bytes of a write repeat or are stamped: the block, or the whole write
/// if blocks are too small for a stamp.
fn unit_of(block: usize, write: &[u8]) -> usize {
    if block < STAMP.0 as usize { write.len().max(1) } else { block }
}

/// Fills `into` with the blocks of `pattern`. A range too short for a stamp gets the noise after a stamp.
fn fill(pattern: Pattern, block: usize, into: &mut [u8]) {
    let unit = unit_of(block, into);
    if unit >= STAMP.0 as usize {
        return pattern.fill(unit, into);
    }
    let mut stamped = [0; 2 * STAMP.0 as usize];
    pattern.fill(stamped.len(), &mut stamped);
    into.copy_from_slice(&stamped[STAMP.0 as usize..][..into.len()]);
}

/// Returns a number that depends on a write and looks unrelated to those of other writes.
fn drawn(lba: Lba, generation: u64) -> u64 {
    let mixed = (lba.0 ^ generation.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn made(pool: &Pool, length: Bytes, fill: impl FnOnce(&mut [u8])) -> Option<Payload> {
    let mut buffer = pool.take(length)?;
    fill(&mut buffer);
    Some(Payload::Bytes(buffer.freeze()))
}

fn same(length: Bytes, alignment: Bytes, fill: impl FnOnce(&mut [u8])) -> Result<Maker, Error> {
    let pool = Pool::new(PoolShape { buffer: length, count: 1, alignment })?;
    let mut buffer = pool.take(length).ok_or(Error::Memory { wanted: length })?;
    fill(&mut buffer);
    Ok(Maker::Same(buffer.freeze()))
}

fn source_of(size: Bytes, block: Bytes) -> Result<Vec<u8>, Error> {
    if size > SOURCE_MAX {
        return Err(Error::Memory { wanted: size });
    }
    Ok(vec![0; size.max(block).0 as usize])
}

/// Fills `bytes` from a file, which is repeated if it is shorter.
fn fill_from(path: &str, bytes: &mut [u8]) -> Result<(), Error> {
    let failed = |source: std::io::Error| Error::Source { path: path.to_owned(), source };
    let mut read = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(bytes.len() as u64).read_to_end(&mut read).map_err(failed)?;
    if read.is_empty() {
        return Err(failed(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)));
    }
    for chunk in bytes.chunks_mut(read.len()) {
        chunk.copy_from_slice(&read[..chunk.len()]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plumb_workload::ByteRange;

    use super::*;

    fn maker(content: Content) -> Maker {
        let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
        let workload = Workload { content, seed: 3, ..Workload::over(range, Bytes::kib(4)) };
        Maker::new(&workload, Bytes(512), Bytes(4096)).unwrap()
    }

    fn bytes_of(maker: &Maker, lba: u64, generation: u64, length: usize) -> Vec<u8> {
        let pool = Pool::new(PoolShape { buffer: Bytes::kib(8), count: 1, alignment: Bytes(4096) }).unwrap();
        match maker.payload(Lba(lba), generation, Bytes(length as u64), &pool).unwrap() {
            Payload::Bytes(buffer) => buffer.to_vec(),
            Payload::Pattern(pattern) => {
                let mut bytes = vec![0; length];
                pattern.fill(512, &mut bytes);
                bytes
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn shorter_writes_take_a_part_of_what_repeats() {
        let counting = bytes_of(&maker(Content::Counting), 0, 1, 1024);
        assert!(counting.iter().enumerate().all(|(index, byte)| *byte == index as u8));
        assert_eq!(bytes_of(&maker(Content::Zeroes), 0, 1, 512), vec![0; 512]);
        let repeated = maker(Content::Repeated);
        assert_eq!(bytes_of(&repeated, 0, 1, 4096)[..512], bytes_of(&repeated, 80, 9, 512)[..]);
    }

    #[test]
    fn reducible_content_reduces_by_what_was_asked_for_and_regenerates() {
        let content = Content::Reducible { compress_percent: 50, dedup_percent: 25 };
        let maker = maker(content);
        let mut seen = std::collections::HashMap::new();
        let mut zeroes = 0;
        for lba in 0..4000 {
            let block = bytes_of(&maker, lba, 7, 512);
            let mut again = vec![1; 512];
            assert!(maker.expect(Lba(lba), 7, &mut again));
            assert_eq!(again, block);
            zeroes += block[256..].iter().filter(|byte| **byte == 0).count();
            *seen.entry(block).or_insert(0) += 1;
        }
        assert_eq!(zeroes, 4000 * 256, "half of each block compresses to nothing");
        let copies: i32 = seen.values().filter(|count| **count > 1).sum();
        assert!((900..1100).contains(&copies), "{copies} of 4000 are copies");
    }

    #[test]
    fn blocks_that_hold_no_stamp_are_written_in_every_content() {
        let contents = [
            Content::Pattern,
            Content::Reducible { compress_percent: 50, dedup_percent: 10 },
            Content::Repeated,
            Content::Zeroes,
            Content::Counting,
            Content::Buffer(Bytes(1001)),
        ];
        for block in [1, 10, 31] {
            for content in contents.clone() {
                let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
                let length = Bytes(block * 7);
                let workload = Workload { content: content.clone(), ..Workload::over(range, length) };
                let maker = Maker::new(&workload, Bytes(block), Bytes(4096)).unwrap();
                assert!(!maker.is_pattern(), "no device could fill it in");
                let written = bytes_of(&maker, 3, 1, length.0 as usize);
                assert_eq!(written.len() as u64, length.0, "{content:?}");
                if content == Content::Pattern {
                    assert_ne!(written, bytes_of(&maker, 4, 1, length.0 as usize), "{block}");
                }
            }
        }
    }

    #[test]
    fn stamps_of_each_length_of_blocks_are_told_apart_and_sectors_have_the_seed_itself() {
        assert_eq!(stamp_seed(7, Bytes(512)), 7);
        let seeds = [512, 4096, 513, 2300, 1024 + 512, 256, 100].map(|block| stamp_seed(7, Bytes(block)));
        let different: std::collections::HashSet<u64> = seeds.into_iter().collect();
        assert_eq!(different.len(), seeds.len());
    }

    #[test]
    fn writes_from_a_source_share_no_bytes_with_their_neighbours() {
        let noise = maker(Content::Buffer(Bytes::mib(20)));
        let mut starts = std::collections::HashSet::new();
        let mut words = std::collections::HashSet::new();
        for write in 0..1000 {
            let bytes = bytes_of(&noise, 8 * write, 1 + write, 4096);
            starts.insert(bytes[..8].to_vec());
            words.extend(bytes.chunks_exact(8).map(<[u8]>::to_vec));
        }
        assert_eq!(starts.len(), 1000, "each from another place");
        // 1000 random pieces cover 18 % of the 20 MiB; those that overlap lie at the same phase of eight
        // bytes half the time.
        assert!(words.len() > 440_000, "{} of 512,000 words differ", words.len());
    }

    #[test]
    fn a_source_gives_other_bytes_to_other_writes_and_a_short_file_repeats() {
        let noise = maker(Content::Buffer(Bytes::mib(1)));
        assert_ne!(bytes_of(&noise, 0, 1, 4096), bytes_of(&noise, 0, 2, 4096));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        let path = file.path().display().to_string();
        let from_file = maker(Content::File { size: Bytes::kib(8), path });
        let taken = bytes_of(&from_file, 0, 0, 4096);
        let at = taken.iter().position(|byte| *byte == b'a').unwrap();
        assert!(taken[at..].iter().enumerate().all(|(place, byte)| *byte == b"abc"[place % 3]));
        let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
        let content = Content::File { size: Bytes::kib(8), path: "/nonexistent/source".to_owned() };
        let workload = Workload { content, ..Workload::over(range, Bytes::kib(4)) };
        let error = Maker::new(&workload, Bytes(512), Bytes(4096)).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/source"), "{error}");
    }
}
