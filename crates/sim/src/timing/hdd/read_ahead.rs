//! Read buffer of a disk: data kept from earlier reads, and read-ahead while idle.
//!
//! After a read, while there is nothing else to do, the head stays and continues to read. Its progress is
//! computed on demand rather than simulated sector by sector. A segment is a run of sectors in the buffer.
//! Each stream of reads uses one, and the least recently used is replaced.

use super::positioning::Positioning;
use crate::command::Sectors;

/// Sectors in the buffer.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    end: u64,
    used: u64,
}

impl Segment {
    /// Returns true if it contains `first..end`. Both conditions are evaluated, since a branch would be
    /// unpredictable.
    #[inline]
    const fn has(&self, first: u64, end: u64) -> bool {
        (self.first <= first) & (end <= self.end)
    }
}

/// A read-ahead in progress: `next` starts to pass under the head at `at`.
#[derive(Debug, Clone, Copy)]
struct Stream {
    next: u64,
    at: u64,
    limit: u64,
}

/// Segments of the buffer, and the stream that extends one of them.
#[derive(Debug, Clone)]
pub(super) struct ReadAhead {
    segments: Vec<Segment>,
    segments_max: usize,
    /// Maximum distance of read-ahead, in sectors.
    reach: u64,
    stream: Option<Stream>,
    uses: u64,
}

impl ReadAhead {
    pub(super) fn new(segments_max: usize, reach: u64) -> Self {
        let segments_max = if reach == 0 { 0 } else { segments_max };
        Self { segments: Vec::with_capacity(segments_max), segments_max, reach, stream: None, uses: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.stream = None;
    }

    /// Records that `sectors` were read.
    pub(super) fn keep(&mut self, sectors: Sectors) {
        if self.segments_max == 0 {
            return;
        }
        self.uses += 1;
        let used = self.uses;
        let (first, end) = (sectors.first, sectors.end());
        let joined = self.segments.iter_mut().find(|segment| segment.has(first, first));
        if let Some(segment) = joined {
            segment.end = segment.end.max(end);
            segment.first = segment.first.max(segment.end.saturating_sub(2 * self.reach)).min(first);
            segment.used = used;
            return;
        }
        let segment = Segment { first, end, used };
        if self.segments.len() < self.segments_max {
            self.segments.push(segment);
        } else if let Some(oldest) = self.segments.iter_mut().min_by_key(|segment| segment.used) {
            *oldest = segment;
        }
    }

    /// Records that the head stays after reading `sectors`, and reads on from `at`.
    pub(super) fn stream_from(&mut self, sectors: Sectors, at: u64, gap: u64) {
        if self.segments_max > 0 {
            self.stream =
                Some(Stream { next: sectors.end(), at: at + gap, limit: sectors.end() + self.reach });
        }
    }

    /// Updates the stream's segment to `now`.
    pub(super) fn catch_up(&mut self, now: u64, disk: &Positioning) {
        let Some(mut stream) = self.stream else { return };
        let Some(time) = now.checked_sub(stream.at) else { return };
        let (passed, used) = disk.passed(stream.next, stream.limit - stream.next, time);
        if passed > 0 {
            self.keep(Sectors { first: stream.next, count: passed });
            stream.next += passed;
            stream.at += used;
        }
        self.stream = (stream.next < stream.limit).then_some(stream);
    }

    /// Ends the stream because the head moves at `now`.
    pub(super) fn stop(&mut self, now: u64, disk: &Positioning) {
        self.catch_up(now, disk);
        self.stream = None;
    }

    /// Returns true if the buffer contains all of `sectors`.
    pub(super) fn holds(&mut self, sectors: Sectors) -> bool {
        let inside = |segment: &&mut Segment| segment.has(sectors.first, sectors.end());
        let Some(segment) = self.segments.iter_mut().find(inside) else { return false };
        self.uses += 1;
        segment.used = self.uses;
        if let Some(stream) = &mut self.stream
            && stream.next <= segment.end
            && segment.first < stream.next
        {
            stream.limit = stream.limit.max(sectors.end() + self.reach);
        }
        true
    }

    /// Returns the time when the stream will have read all of `sectors`, if they start in its segment, or so
    /// little ahead of the head that staying is faster than returning. The stream must be up to date.
    pub(super) fn arrival(&self, sectors: Sectors, disk: &Positioning) -> Option<u64> {
        let stream = self.stream?;
        let near = stream.next + disk.track(stream.next) / 2;
        let begun = |segment: &Segment| segment.end == stream.next && segment.first <= sectors.first;
        let starts_here = sectors.first >= stream.next || self.segments.iter().any(begun);
        let ours = starts_here && sectors.first <= near && sectors.end() > stream.next;
        ours.then(|| {
            let rest = Sectors { first: stream.next, count: sectors.end() - stream.next };
            stream.at + disk.transfer(rest)
        })
    }

    /// Removes the buffered data of `sectors`, which are being written.
    pub(super) fn forget(&mut self, sectors: Sectors) {
        let stale = |first: u64, end: u64| sectors.overlaps(Sectors { first, count: end - first });
        self.segments.retain(|segment| !stale(segment.first, segment.end));
        if self.stream.is_some_and(|stream| stale(stream.next, stream.limit)) {
            self.stream = None;
        }
    }
}
