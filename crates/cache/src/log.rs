//! The ring of segments: the position of the next record, records in flight, free segments.
//!
//! Segments become free in the order of writing, and only from the tail. So of two versions of a block the
//! older is never replayed once the newer has left the log.
//!
//! ```text
//!   used again ──► kept_from: free, and still read ──► tail: live ──► next_segment
//! ```

use std::collections::BTreeMap;

use plumb_block::{ExtentMap, Lba, LbaRange, Nanos};

use crate::format::record::{Header, Kind, Place};
use crate::format::superblock::Tail;
use crate::geometry::Geometry;
use crate::index::{Entry, Index, with_gaps};
use crate::legs::LegSet;

/// Amount of free log that is still read, in bytes. Bounds the index.
const KEPT_MAX: u64 = 1 << 30;

/// A segment with records.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Sequence number of its first record.
    pub(crate) first: u64,
    /// Header checksum of the record before `first`.
    pub(crate) previous: u32,
    /// Time at which it was started.
    pub(crate) opened_at: Nanos,
    /// Checksum of each block so far; for a header block the stored one.
    pub(crate) checksums: Vec<u32>,
    /// Number of reads and repairs in progress.
    pub(crate) pins: u32,
    /// Changes by its records in order, with their flush epochs. Kept only for ordered destaging.
    pub(crate) changes: Vec<(u64, LbaRange, Entry)>,
}

/// A record being written to the legs.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) header: Header,
    /// Writes with data in the record.
    pub(crate) clients: Vec<u64>,
    /// Legs that have not answered.
    pub(crate) legs: LegSet,
    /// True if a leg failed that no other can replace; the record then never completes.
    pub(crate) has_failed: bool,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) geometry: Geometry,
    /// Segments from `kept_from` on, and earlier ones being read.
    pub(crate) segments: BTreeMap<u64, Segment>,
    /// Oldest segment that may still be read; not after the tail.
    pub(crate) kept_from: u64,
    /// First segment that may have entries in the index.
    pub(crate) indexed_from: u64,
    /// First live segment.
    pub(crate) tail: u64,
    /// Number of the next segment to start.
    pub(crate) next_segment: u64,
    /// Segment that receives records, and its next block.
    pub(crate) open: Option<(u64, u32)>,
    /// Sequence number of the next record.
    pub(crate) next_sequence: u64,
    /// Checksum of the last record's header.
    pub(crate) previous: u32,
    /// Sequence number up to which all records are complete and in the index.
    pub(crate) complete: u64,
    /// Sequence number up to which all records are durable.
    pub(crate) durable: u64,
    /// First segment whose changes are kept in order.
    pub(crate) ordered_from: u64,
    /// Tail position at which ordered mode takes full effect: all data from before the mode has been destaged
    /// by then, including newer versions of blocks whose older version was skipped.
    pub(crate) ordered_at: u64,
    /// Number of flushes started, over all sessions.
    pub(crate) flush_epoch: u64,
    /// Records in flight by sequence number.
    pub(crate) in_flight: BTreeMap<u64, Record>,
    /// Target number of segments on each leg while the log is growing.
    pub(crate) grows_to: Option<u64>,
    /// Sequence number of a failed record that is written again in the next segment, until it is complete.
    pub(crate) retried: Option<u64>,
}

impl Log {
    /// Returns the maximum length of the next record in blocks, including its header; less than 2 if there is
    /// no room for a payload.
    pub(crate) fn room(&self, waits_for_reads: bool) -> u32 {
        let open = self.open.map_or(0, |(_, block)| self.geometry.segment_blocks - block);
        if open < 2 && self.may_open(waits_for_reads) { self.geometry.segment_blocks } else { open }
    }

    /// Returns true if the next segment is free.
    fn may_open(&self, waits_for_reads: bool) -> bool {
        let count = self.geometry.count();
        let old = self.next_segment.checked_sub(count).and_then(|old| self.segments.get(&old));
        let is_read = old.is_some_and(|old| old.pins > 0);
        let is_kept = self.grows_to.is_some() && self.geometry.position(self.next_segment) == 0;
        self.next_segment < self.tail + count && !(waits_for_reads && is_read) && !is_kept
    }

    /// Returns the shape of the log with `per_leg` segments on each leg in which every used or still read
    /// segment keeps its position. `None` if there is none now.
    pub(crate) fn grown(&self, per_leg: u64) -> Option<Geometry> {
        let oldest =
            self.segments.first_key_value().map_or(self.tail, |(segment, _)| self.tail.min(*segment));
        let position = self.geometry.position(oldest);
        let grown = Geometry { per_leg, ..self.geometry };
        let rotation = (position + grown.count() - oldest % grown.count()) % grown.count();
        let is_in_one_piece = position + (self.next_segment - oldest) <= self.geometry.count();
        is_in_one_piece.then_some(Geometry { rotation, ..grown })
    }

    /// Returns the position of the next record of `blocks` blocks, for which there must be
    /// [`room`](Log::room).
    pub(crate) fn next_place(&self, blocks: u32, session: u64) -> Place {
        let fits = |(_, block): &(u64, u32)| self.geometry.segment_blocks - block >= blocks;
        let (segment, block) = self.open.filter(fits).unwrap_or((self.next_segment, 0));
        Place { session, sequence: self.next_sequence, segment, block, previous: self.previous }
    }

    /// Appends the next record. `crc` is the checksum of its header.
    pub(crate) fn append(&mut self, header: &Header, crc: u32, now: Nanos) {
        let place = header.place;
        let segment = self.segments.entry(place.segment).or_insert_with(|| Segment {
            first: place.sequence,
            previous: place.previous,
            opened_at: now,
            checksums: Vec::new(),
            pins: 0,
            changes: Vec::new(),
        });
        segment.checksums.push(crc);
        segment.checksums.extend(&header.checksums);
        self.open = Some((place.segment, place.block + header.blocks()));
        self.next_segment = place.segment + 1;
        self.next_sequence = place.sequence + 1;
        self.previous = crc;
        self.end_reads_before(self.reused_next());
    }

    /// Returns the first segment that the next one does not reuse. A read of an older segment would delay the
    /// next one.
    fn reused_next(&self) -> u64 {
        (self.next_segment + 1).saturating_sub(self.geometry.count())
    }

    /// Ends the readability of free segments before `end`.
    pub(crate) fn end_reads_before(&mut self, end: u64) {
        let end = end.min(self.tail);
        if end > self.kept_from {
            self.kept_from = end;
            self.segments.retain(|number, segment| *number >= end || segment.pins > 0);
        }
    }

    /// Returns true if recovery could replay the record of an entry for `lba`.
    pub(crate) fn is_live(&self, entry: Entry, lba: Lba) -> bool {
        entry.segment(&self.geometry, lba) >= self.tail
    }

    /// Returns true if the log still holds the data of an entry for `lba`.
    pub(crate) fn has(&self, entry: Entry, lba: Lba) -> bool {
        entry.segment(&self.geometry, lba) >= self.kept_from
    }

    /// Creates an empty log of this shape, whose first record will have sequence number `next_sequence`.
    pub(crate) fn empty(geometry: Geometry, next_sequence: u64, flush_epoch: u64) -> Self {
        Self {
            geometry,
            segments: BTreeMap::new(),
            kept_from: 0,
            indexed_from: 0,
            tail: 0,
            next_segment: 0,
            open: None,
            next_sequence,
            previous: 0,
            complete: next_sequence - 1,
            durable: next_sequence - 1,
            ordered_from: u64::MAX,
            ordered_at: u64::MAX,
            flush_epoch,
            in_flight: BTreeMap::new(),
            grows_to: None,
            retried: None,
        }
    }

    /// Returns true if every leg has answered all records in flight.
    pub(crate) fn is_answered(&self) -> bool {
        self.in_flight.values().all(|record| record.legs.is_empty())
    }

    /// Returns the header of the first failed record in flight.
    pub(crate) fn first_failed(&self) -> Option<&Header> {
        self.in_flight.values().find(|record| record.has_failed).map(|record| &record.header)
    }

    /// Returns true if a record that failed at this position can be written again in the next segment. Replay
    /// continues there after a partial segment, but not after an empty one. A second failure is not retried.
    pub(crate) fn may_retry(&self, place: Place) -> bool {
        self.retried.is_none() && place.block > 0
    }

    /// Removes the records in flight from sequence number `from` on, as if they had not been written. The
    /// next one starts a segment.
    pub(crate) fn withdraw(&mut self, from: u64) -> Vec<Record> {
        let records: Vec<_> = self.in_flight.split_off(&from).into_values().collect();
        if let Some(Place { segment, block, sequence, previous, .. }) =
            records.first().map(|record| record.header.place)
        {
            (self.next_sequence, self.previous) = (sequence, previous);
            self.next_segment = if block == 0 { segment } else { segment + 1 };
            self.segments.retain(|number, _| *number < self.next_segment);
            if let Some(last) = self.segments.get_mut(&segment) {
                last.checksums.truncate(block as usize);
            }
        }
        self.close();
        records
    }

    /// Makes the next record start a new segment.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Sets whether the changes of records are kept in order from now on.
    pub(crate) fn set_ordered(&mut self, is_ordered: bool) {
        self.close();
        self.ordered_from = if is_ordered { self.next_segment } else { u64::MAX };
        let is_empty = is_ordered && self.tail == self.next_segment;
        self.ordered_at = if is_empty { self.tail } else { u64::MAX };
        self.segments.values_mut().for_each(|segment| segment.changes.clear());
    }

    /// Returns the first segment that may still get a record or a completion; earlier ones are final.
    pub(crate) fn closed_end(&self) -> u64 {
        let open = self.open.map_or(self.next_segment, |(segment, _)| segment);
        self.in_flight.first_key_value().map_or(open, |(_, record)| record.header.place.segment.min(open))
    }

    /// Returns the tail for a first live segment `segment`.
    pub(crate) fn tail_at(&self, segment: u64) -> Tail {
        let (sequence, previous) = self
            .segments
            .get(&segment)
            .map_or((self.next_sequence, self.previous), |segment| (segment.first, segment.previous));
        Tail { segment, sequence, previous }
    }

    /// Frees every segment before `tail`. Their contents stay readable if `is_kept`.
    pub(crate) fn free_until(&mut self, tail: u64, is_kept: bool) {
        self.tail = tail;
        self.segments.range_mut(..tail).for_each(|(_, segment)| segment.changes = Vec::new());
        let most = KEPT_MAX / self.geometry.segment_bytes();
        self.end_reads_before(if is_kept { self.reused_next().max(tail.saturating_sub(most)) } else { tail });
        if tail >= self.ordered_from && self.ordered_at == u64::MAX {
            self.ordered_at = self.next_segment;
        }
    }

    /// Adds the changes of a complete record to the index, and to its segment if needed. Returns the number
    /// of blocks that replace dirty ones, which are no longer destaged.
    pub(crate) fn apply(&mut self, index: &mut Index, header: &Header) -> u64 {
        let segment = header.place.segment;
        let mut absorbed = 0;
        let keeps_changes = segment >= self.ordered_from;
        for (extent, block) in header.placed(self.geometry.logical_block) {
            let parts = match extent.kind {
                Kind::Discard => self.discarded(index, extent.range),
                kind => vec![(extent.range, kind)],
            };
            for (range, kind) in parts {
                let entry = Entry::new(&self.geometry, kind, range.lba, segment, block);
                absorbed += index.insert(range, entry);
                if let Some(found) = self.segments.get_mut(&segment).filter(|_| keeps_changes) {
                    found.changes.push((header.flush_epoch, range, entry));
                }
            }
        }
        absorbed
    }

    /// Returns the kind of record that a discard leaves for each part of its blocks. A device may ignore a
    /// discard and keep its old data. If that is older than the data in the log, the record must be zeroes.
    fn discarded(&self, index: &ExtentMap<Entry>, range: LbaRange) -> Vec<(LbaRange, Kind)> {
        let kind = |(range, entry): (LbaRange, Option<Entry>)| {
            let is_older = entry.is_some_and(|entry| self.is_live(entry, range.lba));
            (range, if is_older { Kind::Zeroes } else { Kind::Discard })
        };
        with_gaps(index, range).map(kind).collect()
    }

    /// Keeps a segment from being reused until [`unpin`](Log::unpin).
    pub(crate) fn pin(&mut self, segment: u64) {
        if let Some(found) = self.segments.get_mut(&segment) {
            found.pins += 1;
        }
    }

    pub(crate) fn unpin(&mut self, segment: u64) {
        if let Some(found) = self.segments.get_mut(&segment) {
            found.pins -= 1;
            if found.pins == 0 && segment < self.kept_from {
                self.segments.remove(&segment);
            }
        }
    }

    /// Returns the number of used segments.
    pub(crate) fn used(&self) -> u64 {
        self.next_segment - self.tail
    }

    /// Returns the used share of the log, 0 to 1.
    pub(crate) fn used_share(&self) -> f64 {
        self.used() as f64 / self.geometry.count() as f64
    }
}
