//! The superblock: the identity of a cache, which of its legs count, and the start of its log.
//!
//! There are two slots at the start of a leg and two at its end. A version is written to one slot at each
//! end, the next version to the others: whatever a power cut leaves of a version, the previous one is intact.
//! The valid one of highest rank counts.

use plumb_block::{Bytes, DeviceInfo, Lba, LbaRange};

use crate::format::block::{Put, Take};
use crate::geometry::Geometry;
use crate::legs::LegSet;
use crate::settings::{LEGS_MAX, LOG_BLOCK, Layout, Uuid};

const MAGIC: [u8; 8] = *b"plumbwbc";
/// Latest version of the format, used for a log that has given up unreadable blocks. Other logs use the
/// previous version.
const VERSION: u32 = 2;
/// Maximum number of runs of unreadable blocks.
pub(crate) const UNREADABLE_MAX: usize = 240;

/// State of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LegState {
    /// Complete: the leg holds everything acknowledged.
    Live = 0,
    /// Failed: the other legs continued without it, and its contents are stale.
    Lost = 1,
    /// Replacement being copied to. Nothing is read from it yet.
    Resilvering = 2,
}

impl LegState {
    const ALL: [Self; 3] = [Self::Live, Self::Lost, Self::Resilvering];
}

/// Start of the log: oldest record that recovery reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// First segment that is not free.
    pub(crate) segment: u64,
    /// Sequence number of the first record of `segment`.
    pub(crate) sequence: u64,
    /// Header checksum of the record before `sequence`.
    pub(crate) previous: u32,
}

/// Content of the superblock of a leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) cache: Uuid,
    pub(crate) backing: Uuid,
    pub(crate) backing_size: Bytes,
    pub(crate) geometry: Geometry,
    /// Number of the leg that holds this superblock.
    pub(crate) leg: u8,
    /// State of every leg.
    pub(crate) legs: Vec<LegState>,
    /// Epoch: grows whenever the set of counting legs or the shape of the log changes.
    pub(crate) epoch: u64,
    /// Generation: grows with each version.
    pub(crate) generation: u64,
    /// Session: grows when the log is opened, a leg is lost or replaced, a failed record is written again, or
    /// the log is replaced.
    pub(crate) session: u64,
    pub(crate) tail: Tail,
    /// Sequence number up to which all records were durable.
    pub(crate) durable: u64,
    /// First record of the session. Records of older sessions from there on are given up.
    pub(crate) first: u64,
    /// Blocks that the log has given up although the backing device does not have them, because no leg had
    /// them intact.
    pub(crate) unreadable: Vec<LbaRange>,
}

/// Contents of a superblock slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotContent {
    /// Valid superblock.
    Valid(Box<Superblock>),
    /// Superblock of this newer format version.
    Newer(u32),
    /// Nothing valid.
    Nothing,
}

impl Superblock {
    /// Encodes the superblock into one block.
    pub(crate) fn encode(&self, into: &mut [u8]) {
        let mut put = Put::new(into, MAGIC);
        put.u32(if self.unreadable.is_empty() { VERSION - 1 } else { VERSION });
        put.bytes(&self.cache.0);
        put.bytes(&self.backing.0);
        put.u64(self.backing_size.0);
        put.u32(self.geometry.logical_block as u32);
        put.u32(self.geometry.segment_blocks);
        put.u64(self.geometry.per_leg);
        put.u64(self.geometry.rotation);
        put.u8(self.geometry.layout as u8);
        put.u8(self.leg);
        put.u8(self.legs.len() as u8);
        for leg in 0..LEGS_MAX {
            put.u8(self.legs.get(leg).map_or(0, |state| *state as u8));
        }
        put.u8(0);
        put.u64(self.epoch);
        put.u64(self.generation);
        put.u64(self.session);
        put.u64(self.tail.segment);
        put.u64(self.tail.sequence);
        put.u32(self.tail.previous);
        put.u64(self.durable);
        put.u64(self.first);
        put.u16(self.unreadable.len() as u16);
        for range in &self.unreadable {
            put.u64(range.lba.0);
            put.u64(range.nlb);
        }
        put.seal();
    }

    /// Decodes a superblock.
    pub(crate) fn decode(block: &[u8]) -> SlotContent {
        let Some(mut take) = Take::new(block, MAGIC) else { return SlotContent::Nothing };
        match take.u32() {
            Some(1..=VERSION) => Self::fields(&mut take)
                .map_or(SlotContent::Nothing, |found| SlotContent::Valid(Box::new(found))),
            Some(version) if version > VERSION => SlotContent::Newer(version),
            _ => SlotContent::Nothing,
        }
    }

    fn fields(take: &mut Take<'_>) -> Option<Self> {
        let (cache, backing) = (Uuid(take.array()?), Uuid(take.array()?));
        let backing_size = Bytes(take.u64()?);
        let (logical_block, segment_blocks) = (u64::from(take.u32()?), take.u32()?);
        let (per_leg, rotation) = (take.u64()?, take.u64()?);
        let layout = *[Layout::Mirror, Layout::Stripe].get(usize::from(take.u8()?))?;
        let (leg, count) = (take.u8()?, take.u8()?);
        let states = take.array::<LEGS_MAX>()?.into_iter().take(usize::from(count));
        let state = |number| LegState::ALL.get(usize::from(number)).copied();
        let legs = states.map(state).collect::<Option<Vec<_>>>()?;
        take.u8()?;
        let found = Self {
            cache,
            backing,
            backing_size,
            geometry: Geometry { logical_block, segment_blocks, per_leg, rotation, layout, legs: count },
            leg,
            legs,
            epoch: take.u64()?,
            generation: take.u64()?,
            session: take.u64()?,
            tail: Tail { segment: take.u64()?, sequence: take.u64()?, previous: take.u32()? },
            durable: take.u64()?,
            first: take.u64()?,
            unreadable: unreadable(take, backing_size.0.checked_div(logical_block)?)?,
        };
        let Self { tail, epoch, generation, session, durable, first, .. } = found;
        let is_sound = found.geometry.is_sound()
            && leg < count
            && usize::from(count) <= LEGS_MAX
            && backing_size.0.is_multiple_of(logical_block)
            && backing_size.0 < 1 << 62
            && tail.segment < 1 << 40
            && tail.sequence > 0
            && [tail.sequence, epoch, generation, session, durable, first]
                .iter()
                .all(|count| *count < 1 << 60);
        is_sound.then_some(found)
    }

    /// Returns the rank of a version; the highest rank counts. The session comes first: a leg that was absent
    /// while others were opened may have the same epoch or a higher one, from a version written to it alone.
    pub(crate) const fn rank(&self) -> (u64, u64, u64) {
        (self.session, self.epoch, self.generation)
    }

    /// Returns true if the leg that holds it is complete by its own statement.
    pub(crate) fn calls_itself_live(&self) -> bool {
        self.legs.get(usize::from(self.leg)) == Some(&LegState::Live)
    }

    /// Returns the complete legs.
    pub(crate) fn live(&self) -> impl Iterator<Item = usize> + '_ {
        let states = self.legs.iter().enumerate();
        states.filter(|(_, state)| **state == LegState::Live).map(|(leg, _)| leg)
    }

    /// Returns the legs that receive records, superblocks and flushes.
    pub(crate) fn written(&self) -> LegSet {
        (0..self.legs.len()).filter(|leg| self.legs[*leg] != LegState::Lost).collect()
    }

    /// Marks a leg as lost.
    pub(crate) fn lose(&mut self, leg: usize) {
        self.legs[leg] = LegState::Lost;
        self.epoch += 1;
    }

    /// Returns the positions of superblocks on a leg in log blocks: slots 0 and 1 at its start, then slots 0
    /// and 1 at its end. Either end can be found without the other.
    pub(crate) fn places(leg: &DeviceInfo) -> [u64; 4] {
        let end = (leg.size.0 / LOG_BLOCK).saturating_sub(2);
        [0, 1, end, end + 1]
    }
}

/// Decodes runs of blocks of a device with `blocks` blocks.
fn unreadable(take: &mut Take<'_>, blocks: u64) -> Option<Vec<LbaRange>> {
    let count = usize::from(take.u16()?);
    let run = |_| {
        let range = LbaRange::new(Lba(take.u64()?), take.u64()?);
        let is_inside = range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= blocks);
        is_inside.then_some(range)
    };
    (0..count).map(run).collect::<Option<_>>().filter(|_| count <= UNREADABLE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::block::BLOCK;

    fn superblock() -> Superblock {
        Superblock {
            cache: Uuid([1; 16]),
            backing: Uuid([2; 16]),
            backing_size: Bytes::gib(3),
            geometry: Geometry {
                logical_block: 512,
                segment_blocks: 1024,
                per_leg: 10,
                rotation: 3,
                layout: Layout::Mirror,
                legs: 3,
            },
            leg: 2,
            legs: vec![LegState::Live, LegState::Lost, LegState::Resilvering],
            epoch: 5,
            generation: 77,
            session: 9,
            tail: Tail { segment: 40, sequence: 1234, previous: 0xabcd },
            durable: 1300,
            first: 1200,
            unreadable: vec![LbaRange::new(Lba(8), 2); UNREADABLE_MAX],
        }
    }

    #[test]
    fn a_superblock_reads_back_and_every_bit_of_it_counts() {
        let mut block = vec![0; BLOCK];
        superblock().encode(&mut block);
        assert_eq!(Superblock::decode(&block), SlotContent::Valid(Box::new(superblock())));
        for bit in 0..BLOCK * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Superblock::decode(&block), SlotContent::Nothing, "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn later_versions_are_told_apart_from_damage() {
        let mut block = vec![0; BLOCK];
        let mut put = Put::new(&mut block, MAGIC);
        put.u32(VERSION + 1);
        put.seal();
        assert_eq!(Superblock::decode(&block), SlotContent::Newer(VERSION + 1));
        assert_eq!(crate::Cache::leg_of(&block).unwrap_err(), VERSION + 1);
    }

    #[test]
    fn a_superblock_that_makes_no_sense_is_none() {
        let mut block = vec![0; BLOCK];
        let unsound: [fn(&mut Superblock); 10] = [
            |it| it.geometry.logical_block = 0,
            |it| it.geometry.segment_blocks = 3,
            |it| it.geometry.per_leg = u64::MAX,
            |it| it.leg = 3,
            |it| it.backing_size = Bytes(u64::MAX),
            |it| it.tail.segment = u64::MAX,
            |it| it.tail.sequence = 0,
            |it| it.session = u64::MAX,
            |it| it.epoch = u64::MAX,
            |it| it.unreadable[0].nlb = u64::MAX,
        ];
        for (index, change) in unsound.into_iter().enumerate() {
            let mut superblock = superblock();
            change(&mut superblock);
            superblock.encode(&mut block);
            assert_eq!(Superblock::decode(&block), SlotContent::Nothing, "change {index}");
        }
    }
}
