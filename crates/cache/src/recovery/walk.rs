//! The walk over the records of a log, chunk by chunk, from the tail to the first gap.
//!
//! A record is accepted if its header is intact, states this position, and follows the previous record by its
//! sequence number and the checksum of that header. If a power cut may have torn it, its payload must be
//! intact too. One leg suffices; the others get it afterwards.
//!
//! The log ends at the first position where no leg has the next record. This is an ordinary crash if
//! everything reported as durable comes before. Later data may show that the next record was durable. Then
//! its payload is damaged rather than torn, and the walk continues after it. If its header is missing too,
//! records were lost, and the log is refused.

use std::collections::{BTreeMap, BTreeSet};

use plumb_block::{Lba, LbaRange, Nanos};
use plumb_text::shell_word;

use super::findings::Findings;
use crate::format::record::{Extent, Header, Kind, Place};
use crate::format::superblock::{Superblock, Tail};
use crate::geometry::Geometry;
use crate::index::{Entry, Index};
use crate::log::Log;
use crate::settings::{LOG_BLOCK, Mark, Mode, Options};

/// Blocks of a segment to read from all legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) segment: u64,
    pub(super) block: u32,
    pub(super) blocks: u32,
}

/// Blocks that one leg lacks and another has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(super) segment: u64,
    pub(super) block: u32,
    pub(super) blocks: u32,
    pub(super) sequence: u64,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Bytes of the requested blocks from each leg.
pub(super) type Chunk<'a> = [(usize, &'a [u8])];

/// Available blocks of a segment: a chunk, and before it the start of a record that continues in it.
struct Blocks<'a> {
    chunk: &'a Chunk<'a>,
    /// Start of the chunk.
    at: u32,
    /// Bytes before the chunk, for each leg.
    rest: &'a [Vec<u8>],
}

impl<'a> Blocks<'a> {
    /// Returns block `block` as read from the leg at position `index` of the chunk.
    fn get(&self, index: usize, block: u32) -> Option<&'a [u8]> {
        let rest = self.rest.get(index).map_or(&[][..], |rest| rest);
        let first = self.at - (rest.len() / LOG_BLOCK as usize) as u32;
        let (bytes, from) = if block < self.at { (rest, first) } else { (self.chunk.get(index)?.1, self.at) };
        bytes.chunks_exact(LOG_BLOCK as usize).nth(block.checked_sub(from)? as usize)
    }

    /// Returns a copy of the blocks from `block` on, for each leg.
    fn rest_from(&self, block: u32, end: u32) -> Vec<Vec<u8>> {
        let rest =
            |index| (block..end).filter_map(|block| self.get(index, block)).collect::<Vec<_>>().concat();
        (0..self.chunk.len()).map(rest).collect()
    }
}

/// A walk.
#[derive(Debug)]
pub(super) struct Walk {
    /// Superblock by which the cache is opened. It names the last session.
    pub(super) superblock: Superblock,
    /// Session and first sequence number of potentially live segments.
    heads: BTreeMap<u64, (u64, u64)>,
    pub(super) log: Log,
    pub(super) index: Index,
    pub(super) copies: Vec<Copy>,
    /// Findings so far; those about legs and damage are filled in when the walk is over.
    pub(super) findings: Findings,
    /// Sequence numbers of records after the end.
    behind: BTreeSet<u64>,
    /// Blocks whose durable data no leg has, with their index entries.
    damaged: Vec<(LbaRange, Entry)>,
    /// Session of the last record.
    pub(super) session: u64,
    /// Highest sequence number reported as durable by a header or superblock.
    durable: u64,
    /// True if durable records may be missing.
    gives_up_lost: bool,
    /// Name of the cache in suggested commands.
    name: String,
    /// Mark of a sealed log, which states the records that count.
    sealed: Option<Mark>,
    /// First record of a sealed log that counts, if a segment starts with it.
    sealed_tail: Option<Tail>,
    /// After the end of the log: positions to search for reports of durability, the last first.
    scans: Option<Vec<(u64, u32)>>,
    /// Position at which no leg has the next record. The walk examines it again if later data shows that the
    /// record was durable.
    gap: Option<(u64, u32)>,
    /// Sequence number known to be durable when the gap was last examined with complete information.
    judged: u64,
    /// End of the previous segment, until it is known whether this one continues it.
    before: Option<(u64, u32)>,
    /// Start of a record that continues in the next chunk, for each leg.
    rest: Vec<Vec<u8>>,
    chunk_max: u32,
    now: Nanos,
}

/// A record as read from a leg.
struct Candidate {
    leg: usize,
    header: Header,
    crc: u32,
    is_whole: bool,
}

impl Walk {
    /// Creates a walk from the tail of `superblock`, in chunks of at most `transfer_max` bytes.
    pub(super) fn new(superblock: Superblock, options: &Options, transfer_max: u64, now: Nanos) -> Self {
        let (geometry, tail) = (superblock.geometry, superblock.tail);
        let is_ordered = options.mode == Mode::Ordered;
        let log = Log {
            geometry,
            segments: BTreeMap::new(),
            tail: tail.segment,
            next_segment: tail.segment,
            kept_from: tail.segment,
            indexed_from: tail.segment,
            open: None,
            next_sequence: tail.sequence,
            previous: tail.previous,
            complete: tail.sequence - 1,
            durable: 0,
            ordered_from: if is_ordered { 0 } else { u64::MAX },
            ordered_at: u64::MAX,
            flush_epoch: 0,
            in_flight: BTreeMap::new(),
            grows_to: None,
            retried: None,
        };
        let mut index = Index::default();
        for range in &superblock.unreadable {
            index.insert(*range, Entry::UNREADABLE);
        }
        Self {
            heads: BTreeMap::new(),
            log,
            index,
            copies: Vec::new(),
            findings: Findings::for_legs(superblock.legs.len()),
            behind: BTreeSet::new(),
            damaged: Vec::new(),
            session: 0,
            durable: superblock.durable,
            gives_up_lost: options.gives_up_lost,
            name: options.name.clone(),
            sealed: options.identity.map(|identity| identity.marked).filter(|marked| marked.is_sealed),
            sealed_tail: None,
            scans: None,
            gap: None,
            judged: 0,
            before: None,
            rest: Vec::new(),
            chunk_max: (transfer_max / LOG_BLOCK) as u32,
            now,
            superblock,
        }
    }

    /// Records the session and record at the start of `segment` on a leg, and the durability that it reports.
    pub(super) fn head(&mut self, segment: u64, block: &[u8]) {
        let Some((header, _)) = self.decode(block) else { return };
        let place = header.place;
        if (place.segment, place.block) != (segment, 0) {
            return;
        }
        // The statements of a record that was given up do not count.
        if place.session >= self.superblock.session || place.sequence < self.superblock.first {
            self.durable = self.durable.max(header.durable);
        }
        let head = self.heads.entry(segment).or_insert((0, 0));
        *head = (*head).max((place.session, place.sequence));
        if self.sealed.is_some_and(|sealed| sealed.tail == place.sequence)
            && *head == (place.session, place.sequence)
        {
            let Place { sequence, previous, .. } = place;
            self.sealed_tail = Some(Tail { segment, sequence, previous });
        }
    }

    /// Moves to the first counting record of a sealed log once all heads are known; earlier records may be
    /// unreadable. Returns the first read; `None` if no record counts.
    pub(super) fn begin(&mut self) -> Option<Read> {
        let is_spent = self.sealed.is_some_and(|sealed| sealed.tail > sealed.durable);
        if let Some(sealed) = self.sealed.filter(|_| is_spent) {
            (self.log.next_sequence, self.log.complete) = (sealed.tail, sealed.durable);
            self.superblock.tail.sequence = sealed.tail;
        } else if let Some(tail) = self.sealed_tail {
            let Tail { segment, sequence, previous } = tail;
            self.superblock.tail = tail;
            (self.log.tail, self.log.next_segment) = (segment, segment);
            (self.log.next_sequence, self.log.previous, self.log.complete) =
                (sequence, previous, sequence - 1);
        }
        (!is_spent).then(|| self.read(self.log.tail, 0))
    }

    /// Returns the chunk that starts at `block` of `segment`.
    pub(super) fn read(&self, segment: u64, block: u32) -> Read {
        let blocks = (self.log.geometry.segment_blocks - block).min(self.chunk_max);
        Read { segment, block, blocks }
    }

    /// Returns the likely read after `read`; the log may end before.
    pub(super) fn after(&self, read: Read) -> Option<Read> {
        let (segment, block) = match read.block + read.blocks {
            end if end < self.log.geometry.segment_blocks => (read.segment, end),
            _ => (read.segment + 1, 0),
        };
        let is_known = block > 0 || self.heads.contains_key(&segment);
        (is_known && self.scans.is_none()).then(|| self.read(segment, block))
    }

    /// Walks the records of `chunk`, read from the legs at `read`, which continues the previous chunk.
    /// Returns the blocks to read next, or `None` if the walk is over.
    pub(super) fn walk(&mut self, read: Read, chunk: &Chunk<'_>) -> Result<Option<Read>, String> {
        if self.scans.is_some() {
            return self.scan(read, chunk);
        }
        let (rest, end) = (std::mem::take(&mut self.rest), read.block + read.blocks);
        let blocks = Blocks { chunk, at: read.block, rest: &rest };
        let before = rest.first().map_or(0, |rest| rest.len() / LOG_BLOCK as usize);
        let mut block = read.block - before as u32;
        loop {
            if block == self.log.geometry.segment_blocks {
                return self.segment_ended(read.segment, block);
            }
            if block == end {
                return Ok(Some(self.read(read.segment, end)));
            }
            let mut candidates = Vec::new();
            for (index, (leg, _)) in chunk.iter().enumerate() {
                let found = blocks.get(index, block);
                let Some((header, crc)) = found.and_then(|found| self.header(read.segment, block, found))
                else {
                    continue;
                };
                if block + header.blocks() > end {
                    self.rest = blocks.rest_from(block, end);
                    return Ok(Some(self.read(read.segment, end)));
                }
                let payload =
                    (block + 1..block + header.blocks()).filter_map(|block| blocks.get(index, block));
                let is_whole = header.is_payload(payload);
                candidates.push(Candidate { leg: *leg, header, crc, is_whole });
            }
            let is_durable = self.log.next_sequence <= self.durable;
            // A durable record with a damaged payload is not missing: only reads of it fail.
            candidates.retain(|candidate| candidate.is_whole || is_durable);
            candidates.sort_by_key(|candidate| (!candidate.is_whole, candidate.leg));
            let Some(best) = candidates.first() else { return self.segment_ended(read.segment, block) };
            let has =
                |leg: usize| candidates.iter().any(|it| it.is_whole && it.leg == leg && it.crc == best.crc);
            let lacking = chunk.iter().map(|(leg, _)| *leg).filter(|leg| !has(*leg));
            let (length, sequence) = (best.header.blocks(), best.header.place.sequence);
            let from = best.leg;
            let copy = |to| Copy { segment: read.segment, block, blocks: length, sequence, from, to };
            if best.is_whole {
                self.copies.extend(lacking.map(copy));
            } else {
                // Each block is read from whichever leg has it.
                for leg in lacking {
                    self.findings.lacks(leg, u64::from(length) * LOG_BLOCK, true);
                }
                self.damaged.extend(damaged(&best.header, &self.log.geometry, &blocks));
            }
            block += length;
            let Candidate { header, crc, .. } = candidates.swap_remove(0);
            self.record(header, crc);
        }
    }

    /// Parses the header at the start of `bytes`; `None` if it is not that of the next record.
    fn header(&self, segment: u64, block: u32, bytes: &[u8]) -> Option<(Header, u32)> {
        let (header, crc) = self.decode(bytes)?;
        let place = header.place;
        let Log { next_sequence: sequence, previous, .. } = self.log;
        // Every session starts with a new segment.
        let session = if block == 0 { place.session.max(self.session) } else { self.session };
        let is_next = place == Place { session, sequence, segment, block, previous };
        let fits = block + header.blocks() <= self.log.geometry.segment_blocks;
        let is_beyond = self.sealed.is_some_and(|sealed| sequence > sealed.durable);
        (is_next && fits && !is_beyond && !self.is_given_up(place)).then_some((header, crc))
    }

    /// Returns true if a later session, which would have continued in the next segment, gave the record up.
    fn is_given_up(&self, place: Place) -> bool {
        let began = (self.superblock.session, self.superblock.first);
        let mut later = self.heads.get(&(place.segment + 1)).copied().into_iter().chain([began]);
        later.any(|(session, first)| session > place.session && place.sequence >= first)
    }

    fn decode(&self, bytes: &[u8]) -> Option<(Header, u32)> {
        let Superblock { cache, backing_size, geometry, .. } = self.superblock;
        let logical_block = geometry.logical_block;
        let block = bytes.get(..LOG_BLOCK as usize)?;
        Header::decode(block, cache, logical_block, backing_size.0 / logical_block)
    }

    /// Accepts the next record.
    fn record(&mut self, mut header: Header, crc: u32) {
        // The backing device may ignore a discard, and the older data in the log may be gone.
        for extent in header.extents.iter_mut().filter(|extent| extent.kind == Kind::Discard) {
            extent.kind = Kind::Zeroes;
        }
        self.findings.records += 1;
        self.findings.record_bytes.0 += u64::from(header.blocks()) * LOG_BLOCK;
        let log = &mut self.log;
        log.append(&header, crc, self.now);
        log.complete = header.place.sequence;
        log.flush_epoch = log.flush_epoch.max(header.flush_epoch + 1);
        self.session = header.place.session;
        self.durable = self.durable.max(header.durable);
        self.before = None;
        // Records before the tail of a sealed log are on the backing device, which may have newer data.
        if self.sealed.is_none_or(|sealed| header.place.sequence >= sealed.tail) {
            log.apply(&mut self.index, &header);
        }
    }

    /// Continues where no leg has the next record: in the next segment, or with the end of the log.
    fn segment_ended(&mut self, segment: u64, block: u32) -> Result<Option<Read>, String> {
        let end = self.log.tail + self.log.geometry.count();
        if block > 0 && segment + 1 < end {
            self.before = Some((segment, block));
            return Ok(Some(self.read(segment + 1, 0)));
        }
        let mut scans: Vec<_> = self.before.take().into_iter().chain([(segment, block)]).collect();
        scans.retain(|(_, block)| *block < self.log.geometry.segment_blocks);
        self.gap = scans.first().copied();
        self.scans = Some(scans);
        self.next_scan()
    }

    /// Continues the search for reports of durability; at its end classifies the gap.
    fn next_scan(&mut self) -> Result<Option<Read>, String> {
        if let Some((segment, block)) = self.scans.as_mut().and_then(Vec::pop) {
            return Ok(Some(self.read(segment, block)));
        }
        let (last, durable) = (self.log.complete, self.durable);
        if let Some((segment, block)) = self.gap.filter(|_| last < durable && self.judged < durable) {
            self.judged = durable;
            self.scans = None;
            self.behind.clear();
            return Ok(Some(self.read(segment, block)));
        }
        if last < durable && !self.gives_up_lost {
            return Err(format!(
                "the log ends after record {last}, but all up to {durable} were durable: records that a \
                 client relies on are damaged or gone, so the cache is not served; bring back the device \
                 that has them, or keep what comes before and lose the rest: `plumb cache recover {} \
                 --give-up-lost {}`",
                shell_word(&self.name),
                self.superblock.cache
            ));
        }
        self.findings.given_up_records = self.behind.range(durable + 1..).count() as u64;
        self.findings.lost_records = durable.saturating_sub(last);
        for copy in &self.copies {
            self.findings.lacks(copy.to, u64::from(copy.blocks) * LOG_BLOCK, copy.sequence <= durable);
        }
        let is_newest =
            |(range, entry): &&(LbaRange, Entry)| self.index.over(*range).any(|(_, found)| found == entry);
        self.findings.damaged = self.damaged.iter().filter(is_newest).map(|(range, _)| *range).collect();
        Ok(None)
    }

    fn scan(&mut self, read: Read, chunk: &Chunk<'_>) -> Result<Option<Read>, String> {
        for (_, bytes) in chunk {
            let blocks = bytes.chunks_exact(LOG_BLOCK as usize);
            for (block, bytes) in (read.block..).zip(blocks) {
                let Some((header, _)) = self.decode(bytes) else { continue };
                let place = header.place;
                // The statements of a record that an earlier session gave up do not count.
                if (place.segment, place.block) == (read.segment, block) && !self.is_given_up(place) {
                    self.durable = self.durable.max(header.durable);
                    self.behind.extend(Some(place.sequence).filter(|sequence| *sequence > self.log.complete));
                }
            }
        }
        let next = read.block + read.blocks;
        if next < self.log.geometry.segment_blocks {
            self.scans.get_or_insert_default().push((read.segment, next));
        }
        self.next_scan()
    }
}

/// Returns the blocks of a record whose payload no leg has.
fn damaged(header: &Header, geometry: &Geometry, blocks: &Blocks<'_>) -> Vec<(LbaRange, Entry)> {
    let place = header.place;
    let per_block = geometry.per_block();
    let is_anywhere = |block: u32| {
        let checksum = header.checksums[(block - place.block - 1) as usize];
        let legs = (0..blocks.chunk.len()).filter_map(|index| blocks.get(index, block));
        legs.map(crc32c::crc32c).any(|found| found == checksum)
    };
    let mut damaged = Vec::new();
    for (Extent { range, kind }, at) in header.placed(geometry.logical_block) {
        let entry = Entry::new(geometry, kind, range.lba, place.segment, at);
        for start in (0..range.nlb).step_by(per_block as usize).filter(|_| kind == Kind::Data) {
            if !is_anywhere(at + (start / per_block) as u32) {
                let part = LbaRange::new(Lba(range.lba.0 + start), per_block.min(range.nlb - start));
                damaged.push((part, entry));
            }
        }
    }
    damaged
}
