//! Reads of clients: which part comes from where.

use std::collections::VecDeque;

use plumb_block::{Bytes, LbaRange, Payload};

use crate::core::Core;
use crate::format::record::Kind;
use crate::gather::{Gather, Goal, Part, Source};
use crate::index::{Entry, with_gaps};
use crate::io::ClientRequest;

impl Core {
    /// Reads `range` for a client.
    pub(crate) fn read(&mut self, asked: ClientRequest, range: LbaRange, payload: Payload) {
        self.figures.reads += 1;
        self.figures.read += Bytes(self.log.geometry.bytes(range));
        let found: Vec<_> = with_gaps(&self.index, range).collect();
        let target = match payload {
            Payload::Into(buffer) => Some(buffer),
            Payload::None | Payload::Bytes(_) | Payload::Pattern(_) => None,
        };
        let parts = self.parts(range, found);
        self.gather(Gather::new(Goal::Client(asked), target, parts));
    }

    /// Returns the parts of `range`, each no larger than one transfer; `found` covers it.
    pub(crate) fn parts(&self, range: LbaRange, found: Vec<(LbaRange, Option<Entry>)>) -> VecDeque<Part> {
        let geometry = &self.log.geometry;
        let logical_block = geometry.logical_block;
        // A part of the log may begin and end within log blocks, which are read whole.
        let log_max =
            (self.devices.leg_transfer_max() / logical_block).saturating_sub(2 * geometry.per_block()).max(1);
        let backing_max = self.devices.backing_transfer_max() / logical_block;
        let mut parts = VecDeque::new();
        for (run, entry) in found {
            let source_of = |at| match entry {
                Some(entry) if entry.kind() == Kind::Data => (Source::Log(entry.address(at)), log_max),
                Some(entry) if entry.is_unreadable() => (Source::Nowhere, u64::MAX),
                Some(_) => (Source::Zeroes, u64::MAX),
                None => (Source::Backing, backing_max),
            };
            let mut at = run.lba;
            while at < run.end() {
                let (source, most) = source_of(at);
                let nlb = (run.end().0 - at.0).min(most);
                let offset = (at.0 - range.lba.0) * logical_block;
                parts.push_back(Part { range: LbaRange::new(at, nlb), offset, source });
                at = at + nlb;
            }
        }
        parts
    }
}
