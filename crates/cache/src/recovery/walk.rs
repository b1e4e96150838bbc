//! The walk over the records of a log, chunk by chunk, from the tail to the first gap.
//!
//! A record is taken if its header is whole, stands where it says, and follows the record before: by its sequence number
//! and by the checksum of that header. Where a power cut may have torn it, its payload has to be whole too. It may be so on any leg; the
//! others get it afterwards.
//!
//! At the first place where no leg has the next record the log ends. That is a crash if everything that was ever said to be durable
//! comes before; otherwise records were lost, and the log is refused.

use std::collections::BTreeMap;

use plumb_block::{ExtentMap, Nanos};

use crate::format::record::{Extent, Header, Kind, Place};
use crate::format::superblock::Superblock;
use crate::geometry::Geometry;
use crate::index::Entry;
use crate::log::{Log, Record, Segment};
use crate::settings::{LOG_BLOCK, Uuid};

/// Blocks of a segment that are to be read from all legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) segment: u64,
    pub(super) block: u32,
    pub(super) blocks: u32,
}

/// What the walk wants next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Read(Read),
    End,
}

/// Blocks that one leg lacks and another has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) segment: u64,
    pub(super) block: u32,
    pub(super) blocks: u32,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// What each leg has of the blocks that were read.
pub(super) type Chunk<'a> = [(usize, &'a [u8])];

/// A walk.
#[derive(Debug)]
pub(super) struct Walk {
    cache: Uuid,
    geometry: Geometry,
    /// The length of the backing device, in logical blocks.
    backing: u64,
    /// The session and the first sequence number of segments that may be live.
    heads: BTreeMap<u64, (u64, u64)>,
    /// The session that was begun last, and its first sequence number.
    began: (u64, u64),
    pub(super) log: Log,
    pub(super) index: ExtentMap<Entry>,
    pub(super) copies: Vec<Copy>,
    /// The session of the last record.
    pub(super) session: u64,
    /// All records up to this one were said to be durable.
    durable: u64,
    /// Once the log has ended: where to look for what was said to be durable, the last first.
    scans: Option<Vec<(u64, u32)>>,
    /// Where the segment before ended, while it is open whether this one goes on.
    before: Option<(u64, u32)>,
    chunk_max: u32,
    now: Nanos,
}

/// A record as a leg has it.
struct Candidate {
    leg: usize,
    header: Header,
    crc: u32,
    is_whole: bool,
}

impl Walk {
    /// A walk from the tail of `superblock` on, and what to read first. `heads` are of segments that may be live; `durable` is the last
    /// record that any of them, or the superblock, says to be durable.
    pub(super) fn new(
        superblock: &Superblock,
        heads: BTreeMap<u64, (u64, u64)>,
        durable: u64,
        (chunk_max, keeps_changes): (u32, bool),
        now: Nanos,
    ) -> (Self, Read) {
        let (geometry, tail) = (superblock.geometry, superblock.tail);
        let log = Log {
            geometry,
            segments: BTreeMap::new(),
            tail: tail.segment,
            next_segment: tail.segment,
            open: None,
            next_sequence: tail.sequence,
            previous: tail.previous,
            complete: tail.sequence - 1,
            durable: 0,
            ordered_from: if keeps_changes { 0 } else { u64::MAX },
            flush_epoch: 0,
            in_flight: BTreeMap::new(),
            grows_to: None,
        };
        let walk = Self {
            cache: superblock.cache,
            geometry,
            backing: superblock.backing_size.0 / u64::from(geometry.logical_block),
            heads,
            began: (superblock.session, superblock.first),
            log,
            index: ExtentMap::default(),
            copies: Vec::new(),
            session: 0,
            durable,
            scans: None,
            before: None,
            chunk_max,
            now,
        };
        let first = walk.read(tail.segment, 0);
        (walk, first)
    }

    /// The chunk that begins at `block` of `segment`.
    fn read(&self, segment: u64, block: u32) -> Read {
        let blocks = (self.geometry.segment_blocks - block).min(self.chunk_max);
        Read { segment, block, blocks }
    }

    /// Takes what the legs have where `read` says.
    pub(super) fn take(&mut self, read: Read, chunk: &Chunk<'_>) -> Result<Next, String> {
        if self.scans.is_some() {
            return self.scan(read, chunk);
        }
        let mut block = read.block;
        loop {
            if block == self.geometry.segment_blocks {
                return self.segment_ended(read.segment, block);
            }
            if block >= read.block + read.blocks {
                return Ok(Next::Read(self.read(read.segment, block)));
            }
            let offset = (block - read.block) as usize * LOG_BLOCK as usize;
            let mut candidates = Vec::new();
            for (leg, bytes) in chunk {
                let Some((header, crc)) = self.header(read.segment, block, &bytes[offset..]) else {
                    continue;
                };
                let end = offset + header.blocks() as usize * LOG_BLOCK as usize;
                if end > bytes.len() && offset > 0 {
                    return Ok(Next::Read(self.read(read.segment, block)));
                }
                if end > bytes.len() {
                    let length = end - offset;
                    return Err(format!("leg {leg} takes no transfers of {length} bytes, which the log has"));
                }
                let is_whole = header.is_payload(&bytes[offset + LOG_BLOCK as usize..end]);
                candidates.push(Candidate { leg: *leg, header, crc, is_whole });
            }
            let is_durable = self.log.next_sequence <= self.durable;
            // A record that was said to be durable is not missing if its payload is damaged: reads of it fail.
            candidates.retain(|candidate| candidate.is_whole || is_durable);
            candidates.sort_by_key(|candidate| (!candidate.is_whole, candidate.leg));
            let Some(best) = candidates.first() else { return self.segment_ended(read.segment, block) };
            let lacking = chunk.iter().map(|(leg, _)| *leg).filter(|leg| {
                best.is_whole
                    && !candidates.iter().any(|it| it.is_whole && it.leg == *leg && it.crc == best.crc)
            });
            let blocks = best.header.blocks();
            let copies = lacking.map(|to| Copy { segment: read.segment, block, blocks, from: best.leg, to });
            self.copies.extend(copies);
            block += blocks;
            let Candidate { header, crc, .. } = candidates.swap_remove(0);
            self.record(&header, crc);
        }
    }

    /// The header at the start of `bytes`, if it is that of the next record.
    fn header(&self, segment: u64, block: u32, bytes: &[u8]) -> Option<(Header, u32)> {
        let (header, crc) = self.decode(bytes)?;
        let place = header.place;
        let Log { next_sequence: sequence, previous, .. } = self.log;
        // Sessions begin with a segment of their own.
        let session = if block == 0 { place.session.max(self.session) } else { self.session };
        let is_next = place == Place { session, sequence, segment, block, previous };
        // A record that was given up by a later session, which goes on in the next segment, if it has written anything.
        let later = self.heads.get(&(segment + 1)).into_iter().chain([&self.began]);
        let is_given_up =
            later.into_iter().any(|(session, first)| *session > place.session && sequence >= *first);
        let fits = block + header.blocks() <= self.geometry.segment_blocks;
        (is_next && fits && !is_given_up).then_some((header, crc))
    }

    fn decode(&self, bytes: &[u8]) -> Option<(Header, u32)> {
        let block = bytes.get(..LOG_BLOCK as usize)?;
        Header::decode(block, self.cache, u64::from(self.geometry.logical_block), self.backing)
    }

    /// Takes the next record.
    fn record(&mut self, header: &Header, crc: u32) {
        let place = header.place;
        let mut block = place.block + 1;
        let with_block = header.extents.iter().map(|extent| {
            let at = block;
            block += extent.payload_blocks(u64::from(self.geometry.logical_block)) as u32;
            // The backing device may do nothing about a discard, and what the log had beneath it may have left the log.
            let kind = if extent.kind == Kind::Discard { Kind::Zeroes } else { extent.kind };
            (Extent { kind, ..*extent }, at)
        });
        let extents = with_block.collect();
        let log = &mut self.log;
        let fresh = || Segment::new(place.sequence, place.previous, self.now);
        let segment = log.segments.entry(place.segment).or_insert_with(fresh);
        segment.checksums.push(crc);
        segment.checksums.extend(&header.checksums);
        log.next_segment = place.segment + 1;
        log.next_sequence += 1;
        log.previous = crc;
        log.complete = place.sequence;
        log.flush_epoch = log.flush_epoch.max(header.flush_epoch + 1);
        self.session = place.session;
        self.durable = self.durable.max(header.durable);
        self.before = None;
        let (clients, legs) = (Vec::new(), std::collections::BTreeSet::new());
        let record = Record { place, flush_epoch: header.flush_epoch, extents, clients, legs };
        log.apply(&mut self.index, &record);
    }

    /// No leg has the next record here: it begins the next segment, or the log has ended.
    fn segment_ended(&mut self, segment: u64, block: u32) -> Result<Next, String> {
        let end = self.log.tail + self.geometry.count();
        if block > 0 && segment + 1 < end {
            self.before = Some((segment, block));
            return Ok(Next::Read(self.read(segment + 1, 0)));
        }
        let mut scans: Vec<_> = self.before.take().into_iter().chain([(segment, block)]).collect();
        scans.retain(|(_, block)| *block < self.geometry.segment_blocks);
        self.scans = Some(scans);
        self.next_scan()
    }

    /// Reads on where records may be that say what was durable; in the end judges the gap by that.
    fn next_scan(&mut self) -> Result<Next, String> {
        if let Some((segment, block)) = self.scans.as_mut().and_then(Vec::pop) {
            return Ok(Next::Read(self.read(segment, block)));
        }
        let (last, durable) = (self.log.complete, self.durable);
        if last < durable {
            return Err(format!(
                "the log ends after record {last}, though all up to {durable} were durable: records that a client may count on are \
                 damaged or gone, so nothing is served; restore the leg, or give the cache up and its backing device with it"
            ));
        }
        Ok(Next::End)
    }

    fn scan(&mut self, read: Read, chunk: &Chunk<'_>) -> Result<Next, String> {
        for (_, bytes) in chunk {
            let blocks = bytes.chunks_exact(LOG_BLOCK as usize);
            for (block, bytes) in (read.block..).zip(blocks) {
                if let Some((header, _)) = self.decode(bytes)
                    && (header.place.segment, header.place.block) == (read.segment, block)
                {
                    self.durable = self.durable.max(header.durable);
                }
            }
        }
        let next = read.block + read.blocks;
        if next < self.geometry.segment_blocks {
            self.scans.get_or_insert_default().push((read.segment, next));
        }
        self.next_scan()
    }
}
