//! Header of a record: one block that describes the payload after it, block by block.

use plumb_block::{Lba, LbaRange};

use crate::format::block::{Put, Take};
use crate::settings::{LOG_BLOCK, Uuid};

const MAGIC: [u8; 8] = *b"plumbrec";
/// Maximum number of extents in one record.
pub(crate) const EXTENTS_MAX: usize = 200;
/// Maximum payload of a record, in log blocks.
pub(crate) const PAYLOAD_MAX: u32 = 128;

/// Kind of change to a run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The bytes in the payload.
    Data = 0,
    /// Zeroes; the backing device may deallocate the space.
    Zeroes = 1,
    /// Zeroes that keep their space allocated.
    ZeroesReserved = 2,
    /// Discard: reads return zeroes, and the backing device is sent a discard later.
    Discard = 3,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Data, Self::Zeroes, Self::ZeroesReserved, Self::Discard];
}

/// A run of blocks changed by a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Blocks of the backing device: at least one, and at most `u32::MAX`.
    pub(crate) range: LbaRange,
    pub(crate) kind: Kind,
}

impl Extent {
    /// Returns the length of the payload in log blocks, for logical blocks of `logical_block` bytes.
    pub(crate) fn payload_blocks(self, logical_block: u64) -> u64 {
        match self.kind {
            Kind::Data => (self.range.nlb * logical_block).div_ceil(LOG_BLOCK),
            Kind::Zeroes | Kind::ZeroesReserved | Kind::Discard => 0,
        }
    }
}

/// Position of a record: its identification, and its link to the previous record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the session that wrote the record.
    pub(crate) session: u64,
    /// Number of the record, counted over all sessions.
    pub(crate) sequence: u64,
    /// The number of the segment.
    pub(crate) segment: u64,
    /// Block of the header in the segment.
    pub(crate) block: u32,
    /// Header checksum of the previous record.
    pub(crate) previous: u32,
}

/// The header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) place: Place,
    /// Sequence number up to which all records were durable when this one was written.
    pub(crate) durable: u64,
    /// Number of flushes started before this record.
    pub(crate) flush_epoch: u64,
    /// Extents in the order of their payloads.
    pub(crate) extents: Vec<Extent>,
    /// Checksum of each log block of the payload.
    pub(crate) checksums: Vec<u32>,
}

impl Header {
    /// Returns the length of the record in blocks, including its header.
    pub(crate) fn blocks(&self) -> u32 {
        1 + self.checksums.len() as u32
    }

    /// Returns the record's extents, for logical blocks of `logical_block` bytes, each with the block in the
    /// segment where its payload, if any, starts.
    pub(crate) fn placed(&self, logical_block: u64) -> impl Iterator<Item = (Extent, u32)> {
        let mut block = self.place.block + 1;
        self.extents.iter().map(move |extent| {
            let at = block;
            block += extent.payload_blocks(logical_block) as u32;
            (*extent, at)
        })
    }

    /// Encodes the header into one block. Returns the checksum.
    pub(crate) fn encode(&self, cache: Uuid, into: &mut [u8]) -> u32 {
        let mut put = Put::new(into, MAGIC);
        put.bytes(&cache.0);
        put.u64(self.place.session);
        put.u64(self.place.sequence);
        put.u64(self.place.segment);
        put.u32(self.place.block);
        put.u32(self.place.previous);
        put.u64(self.durable);
        put.u64(self.flush_epoch);
        put.u32(self.extents.len() as u32);
        put.u32(self.checksums.len() as u32);
        for extent in &self.extents {
            put.u64(extent.range.lba.0);
            put.u32(extent.range.nlb as u32);
            put.u32(extent.kind as u32);
        }
        for checksum in &self.checksums {
            put.u32(*checksum);
        }
        put.seal()
    }

    /// Decodes a header of this cache, whose device has `blocks` logical blocks of `logical_block` bytes.
    /// Returns it with its checksum; `None` if it is malformed or inconsistent.
    pub(crate) fn decode(block: &[u8], cache: Uuid, logical_block: u64, blocks: u64) -> Option<(Self, u32)> {
        let mut take = Take::new(block, MAGIC)?;
        if take.array()? != cache.0 {
            return None;
        }
        let place = Place {
            session: take.u64()?,
            sequence: take.u64()?,
            segment: take.u64()?,
            block: take.u32()?,
            previous: take.u32()?,
        };
        let (durable, flush_epoch) = (take.u64()?, take.u64()?);
        if place.session >= 1 << 60 || flush_epoch >= 1 << 60 {
            return None;
        }
        let (extents, payload) = (take.u32()? as usize, take.u32()?);
        if extents > EXTENTS_MAX || payload > PAYLOAD_MAX {
            return None;
        }
        let extents = (0..extents).map(|_| {
            let range = LbaRange::new(Lba(take.u64()?), u64::from(take.u32()?));
            let kind = *Kind::ALL.get(take.u32()? as usize)?;
            let is_inside =
                range.nlb > 0 && range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= blocks);
            is_inside.then_some(Extent { range, kind })
        });
        let extents = extents.collect::<Option<Vec<_>>>()?;
        let payloads = extents.iter().map(|extent| extent.payload_blocks(logical_block)).sum::<u64>();
        let checksums = (0..payload).map(|_| take.u32()).collect::<Option<Vec<_>>>()?;
        let header = Self { place, durable, flush_epoch, extents, checksums };
        (payloads == u64::from(payload)).then_some((header, take.crc))
    }

    /// Returns true if `payload` matches the checksums, block by block.
    pub(crate) fn is_payload<'a>(&self, payload: impl Iterator<Item = &'a [u8]>) -> bool {
        payload.map(crc32c::crc32c).eq(self.checksums.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::block::BLOCK;

    const CACHE: Uuid = Uuid([7; 16]);

    fn header() -> Header {
        let extent = |lba, nlb, kind| Extent { range: LbaRange::new(Lba(lba), nlb), kind };
        Header {
            place: Place { session: 3, sequence: 99, segment: 12, block: 8, previous: 0xdead_beef },
            durable: 90,
            flush_epoch: 4,
            extents: vec![
                extent(5, 1, Kind::Data),
                extent(100, 9, Kind::Data),
                extent(0, 1000, Kind::Discard),
            ],
            checksums: vec![1, 2, 3],
        }
    }

    #[test]
    fn a_header_reads_back_and_every_bit_of_it_counts() {
        let mut block = vec![0; BLOCK];
        let crc = header().encode(CACHE, &mut block);
        assert_eq!(Header::decode(&block, CACHE, 512, 1000), Some((header(), crc)));
        for bit in 0..BLOCK * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&block, CACHE, 512, 1000), None, "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn what_is_whole_but_makes_no_sense_is_not_a_header() {
        let mut block = vec![0; BLOCK];
        header().encode(CACHE, &mut block);
        assert_eq!(Header::decode(&block, Uuid([8; 16]), 512, 1000), None, "of another cache");
        assert_eq!(Header::decode(&block, CACHE, 512, 999), None, "beyond the end of the device");
        assert_eq!(Header::decode(&block, CACHE, 4096, 1000), None, "a payload of another length");
        assert_eq!(Header::decode(&block[..100], CACHE, 512, 1000), None);
        let mut other = header();
        other.extents[0].range.lba = Lba(u64::MAX);
        other.encode(CACHE, &mut block);
        assert_eq!(Header::decode(&block, CACHE, 512, 1000), None, "an address that wraps");
    }

    #[test]
    fn the_largest_header_fits() {
        let extent = Extent { range: LbaRange::new(Lba(0), 1), kind: Kind::Data };
        let zeroes = Extent { kind: Kind::Zeroes, ..extent };
        let mut large = header();
        large.extents = vec![zeroes; EXTENTS_MAX];
        large.extents[..PAYLOAD_MAX as usize].fill(extent);
        large.checksums = vec![9; PAYLOAD_MAX as usize];
        let mut block = vec![0; BLOCK];
        large.encode(CACHE, &mut block);
        assert_eq!(Header::decode(&block, CACHE, 4096, 1).map(|(header, _)| header), Some(large));
    }
}
