//! The file system of the model, updated with changes and syncs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::PathBuf;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op};

use super::layout::{Index, Inode, Layout, Object, Spot, number};
use crate::recording::{CommandId, Content, Event, Recording};

/// Byte of an allocated block below the size that was never written.
const GARBAGE: u8 = 0xa5;

/// Contents of a block below the size of its file without stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwritten {
    /// Zeroes.
    Zeroes,
    /// Zeroes or other bytes: the earlier contents of the drive's blocks.
    Garbage,
}

/// Entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// The directory.
    pub directory: Inode,
    /// Name of the entry.
    pub name: &'a OsStr,
}

impl Name<'_> {
    fn spot(self) -> Spot {
        Spot::Entry(self.directory, self.name.to_owned())
    }
}

/// State of the model after the calls so far, and their recording.
#[derive(Debug, Clone)]
pub struct Model {
    recording: Recording,
    index: Index,
    unwritten: Unwritten,
    places: Vec<Place>,
    /// By command.
    fates: Vec<Fate>,
    /// Time of the next events.
    now: Nanos,
    /// Time by which the next changes are complete.
    complete: Nanos,
}

/// State of one spot.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Content that a program sees.
    visible: Content,
    /// Newest content that is durable.
    durable: Content,
    /// Commands at risk, the oldest first.
    at_risk: Vec<CommandId>,
    /// Last group that changed the spot.
    group: Option<CommandId>,
    /// True if data was written since the block was last removed.
    is_written: bool,
}

/// State of one command.
#[derive(Debug, Clone, Copy)]
struct Fate {
    /// Time by which the change was complete.
    complete: Nanos,
    is_durable: bool,
}

/// Change of one spot.
struct Change {
    spot: Spot,
    bytes: Vec<u8>,
}

impl Model {
    /// Creates an empty file system with data blocks of this size, which never tear.
    pub fn new(block: Bytes, unwritten: Unwritten) -> Self {
        let layout = Layout { spots: Vec::new(), objects: vec![Object::Directory(0o755)] };
        Self {
            recording: Recording::of_blank(Bytes(0), block),
            index: Index::new(layout),
            unwritten,
            places: Vec::new(),
            fates: Vec::new(),
            now: Nanos(0),
            complete: Nanos(0),
        }
    }

    /// Returns the recording of all calls so far.
    pub const fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Consumes the model and returns the recording.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// Sets the kind and the permissions of an inode, which no cut changes.
    pub fn set_object(&mut self, inode: Inode, object: Object) {
        if let Some(known) = self.index.layout.objects.get_mut((inode.0 as usize).wrapping_sub(1)) {
            *known = object;
        }
    }

    /// Returns the meaning of the blocks of the recording.
    pub const fn layout(&self) -> &Layout {
        &self.index.layout
    }

    /// Sets the start and end time of the next system call. Times must not decrease.
    pub fn set_time(&mut self, began: Nanos, complete: Nanos) {
        self.now = began.max(self.now);
        self.complete = complete;
    }

    /// Adds an event that changes nothing, and returns the number of events.
    pub fn happened(&mut self, event: Event) -> usize {
        self.recording.happened(self.now, event);
        self.recording.events.len()
    }

    /// Returns the inode that a program finds at a name.
    pub fn entry(&self, name: Name<'_>) -> Option<Inode> {
        Some(Inode(self.visible_number(&name.spot()))).filter(|inode| inode.0 > 0)
    }

    /// Returns the names that a program finds in a directory.
    pub fn names(&self, directory: Inode) -> Vec<&OsStr> {
        let entries = self.index.entries(directory);
        let present = entries.filter(|(_, place)| self.places[*place as usize].visible != Content::ZEROES);
        present.map(|(name, _)| name).collect()
    }

    /// Returns the size of a file that a program sees.
    pub fn size(&self, file: Inode) -> u64 {
        self.visible_number(&Spot::Size(file))
    }

    /// Returns the bytes of a block of a file that a program sees; zeroes beyond its end.
    pub fn block(&self, file: Inode, number: u64) -> &[u8] {
        let place = self.index.place(&Spot::Data(file, number));
        let content = place.map_or(Content::ZEROES, |place| self.places[place as usize].visible);
        self.recording.contents.bytes(content)
    }

    /// Returns true if a write of these bytes to a block changes nothing. A write to an unwritten block that
    /// may hold other bytes always changes it, since a cut may leave those bytes.
    pub fn holds(&self, file: Inode, number: u64, bytes: &[u8]) -> bool {
        let place = self.index.place(&Spot::Data(file, number));
        let is_written = place.is_some_and(|place| self.places[place as usize].is_written);
        (is_written || self.unwritten == Unwritten::Zeroes) && self.block(file, number) == bytes
    }

    /// Returns the blocks of a file that were ever written, from number `from` on.
    pub fn blocks(&self, file: Inode, from: u64) -> impl Iterator<Item = u64> {
        self.index.data(file, from).map(|(number, _)| number)
    }

    /// Creates an inode without a name.
    pub fn make(&mut self, object: Object) -> Inode {
        self.index.layout.objects.push(object);
        Inode(self.index.layout.objects.len() as u64)
    }

    /// Gives an inode a name, and replaces the previous object of that name.
    pub fn link(&mut self, inode: Inode, name: Name<'_>) {
        self.submit(vec![self.number(name.spot(), inode.0)]);
    }

    /// Removes a name.
    pub fn unlink(&mut self, name: Name<'_>) {
        self.submit(vec![self.number(name.spot(), 0)]);
    }

    /// Renames `from` to `to`, replacing the previous object of `to`. Does nothing if both name one file.
    pub fn rename(&mut self, from: Name<'_>, to: Name<'_>) {
        let Some(inode) = self.entry(from) else { return };
        if self.entry(to) != Some(inode) {
            self.submit(vec![self.number(to.spot(), inode.0), self.number(from.spot(), 0)]);
        }
    }

    /// Exchanges the objects of two names.
    pub fn exchange(&mut self, one: Name<'_>, other: Name<'_>) {
        let of = |name: Name<'_>| self.visible_number(&name.spot());
        self.submit(vec![self.number(one.spot(), of(other)), self.number(other.spot(), of(one))]);
    }

    /// Sets a block of a file to its contents after a write.
    pub fn write(&mut self, file: Inode, number: u64, bytes: &[u8]) {
        let spot = Spot::Data(file, number);
        let place = self.index.place(&spot).and_then(|place| self.places.get(place as usize));
        let is_new = place.is_none_or(|place| !place.is_written);
        if is_new && self.unwritten == Unwritten::Garbage {
            self.submit(vec![Change { spot: spot.clone(), bytes: vec![GARBAGE; bytes.len()] }]);
        }
        self.submit(vec![Change { spot: spot.clone(), bytes: bytes.to_vec() }]);
        if let Some(place) = self.index.place(&spot) {
            self.places[place as usize].is_written = true;
        }
    }

    /// Changes the size of a file, removes the blocks beyond it, and fills the rest of its last block with
    /// zeroes.
    pub fn set_size(&mut self, file: Inode, size: u64) {
        if size == self.size(file) {
            return;
        }
        let block = self.recording.logical_block.0;
        let mut changes = vec![self.number(Spot::Size(file), size)];
        for (number, place) in self.index.data(file, size.div_ceil(block)).collect::<Vec<_>>() {
            let place = &mut self.places[place as usize];
            if std::mem::take(&mut place.is_written) {
                changes.push(Change { spot: Spot::Data(file, number), bytes: vec![0; block as usize] });
            }
        }
        self.submit(changes);
        let mut last = self.block(file, size / block).to_vec();
        let rest = &mut last[(size % block) as usize..];
        if !size.is_multiple_of(block) && rest.iter().any(|byte| *byte != 0) {
            rest.fill(0);
            self.write(file, size / block, &last);
        }
    }

    /// Makes the changes until `until` of a file (data and size) or a directory (entries) durable.
    pub fn fsync(&mut self, inode: Inode, until: Nanos) {
        let data = self.index.data(inode, 0).map(|(_, place)| place);
        let entries = self.index.entries(inode).map(|(_, place)| place);
        let places: Vec<u64> = data.chain(entries).chain(self.index.place(&Spot::Size(inode))).collect();
        self.persist(&places, until);
    }

    /// Makes the changes until `until` of a byte range of a file durable, and with it the first size that
    /// reaches the end of the range after the last shorter one.
    pub fn fsync_range(&mut self, file: Inode, range: Range<u64>, until: Nanos) {
        let block = self.recording.logical_block.0;
        let numbers = range.start / block..range.end.div_ceil(block);
        let data = self.index.data(file, numbers.start).take_while(|(number, _)| *number < numbers.end);
        let places: Vec<u64> = data.map(|(_, place)| place).collect();
        self.persist(&places, until);
        let Some(size) = self.index.place(&Spot::Size(file)) else { return };
        let Place { durable, at_risk, .. } = &self.places[size as usize];
        let contents = &self.recording.contents;
        let reaches = |content| number(contents, content) >= range.end;
        let written = |id: CommandId| self.recording.commands[id.0 as usize].contents[0];
        let is_complete = |id: &CommandId| self.fates[id.0 as usize].complete <= until;
        let (mut reached, mut first) = (reaches(*durable), None);
        for id in at_risk.iter().copied().filter(is_complete) {
            match (reaches(written(id)), reached) {
                (true, false) => first = Some(id),
                (false, _) => first = None,
                (true, true) => {}
            }
            reached = reaches(written(id));
        }
        self.persist_commands(first.into_iter().collect());
    }

    /// Makes all changes until `until` durable.
    pub fn sync(&mut self, until: Nanos) {
        let places: Vec<u64> = (0..self.places.len() as u64).collect();
        self.persist(&places, until);
    }

    fn persist(&mut self, places: &[u64], until: Nanos) {
        let of = |place: &u64| self.places[*place as usize].at_risk.clone();
        let had_changed = |id: &CommandId| self.fates[id.0 as usize].complete <= until;
        self.persist_commands(places.iter().flat_map(of).filter(had_changed).collect());
    }

    /// Makes commands durable, with their groups and everything that these depend on.
    fn persist_commands(&mut self, mut open: Vec<CommandId>) {
        let mut found = BTreeSet::new();
        while let Some(id) = open.pop() {
            let leader = self.recording.leader(id);
            let parts = (leader.0..).map(CommandId).take_while(|part| {
                let is_there = (part.0 as usize) < self.recording.commands.len();
                is_there && self.recording.leader(*part) == leader
            });
            for part in parts {
                if !self.fates[part.0 as usize].is_durable && found.insert(part) {
                    open.extend(&self.recording.commands[part.0 as usize].needs);
                }
            }
        }
        for id in found {
            let command = &self.recording.commands[id.0 as usize];
            let place = &mut self.places[command.range.lba.0 as usize];
            place.durable = command.contents[0];
            place.at_risk.retain(|other| *other > id);
            self.fates[id.0 as usize].is_durable = true;
            self.recording.happened(self.now, Event::Persisted(id));
        }
    }

    /// Adds changes that survive or are lost together.
    fn submit(&mut self, changes: Vec<Change>) {
        let leader = CommandId(self.recording.commands.len() as u32);
        let group = (changes.len() > 1).then_some(leader);
        let mut ids = Vec::new();
        for Change { spot, bytes } in changes {
            let place = self.index.place_or_new(&spot);
            let range = LbaRange::new(Lba(place), 1);
            let id = self.recording.submit(self.now, Op::Write { fua: false }, range, &bytes);
            self.places.resize(self.index.layout.spots.len(), Place::default());
            self.fates.push(Fate { complete: self.complete, is_durable: false });
            let place = &mut self.places[place as usize];
            let command = &mut self.recording.commands[id.0 as usize];
            command.group = group;
            let earlier = place.group.filter(|earlier| !self.fates[earlier.0 as usize].is_durable);
            command.needs.extend(earlier.filter(|earlier| *earlier != leader));
            place.group = group.or(place.group);
            place.visible = command.contents[0];
            place.at_risk.push(id);
            ids.push(id);
        }
        ids.into_iter().for_each(|id| self.recording.happened(self.now, Event::Completed(id)));
        self.recording.size = Bytes(self.places.len() as u64 * self.recording.logical_block.0);
    }

    fn number(&self, spot: Spot, number: u64) -> Change {
        let mut bytes = vec![0; self.recording.logical_block.0 as usize];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Change { spot, bytes }
    }

    fn visible_number(&self, spot: &Spot) -> u64 {
        let place = self.index.place(spot);
        place.map_or(0, |place| number(&self.recording.contents, self.places[place as usize].visible))
    }

    /// Returns the paths of all files and directories that a program finds, by inode.
    pub fn paths(&self) -> BTreeMap<Inode, PathBuf> {
        let mut paths = BTreeMap::new();
        let mut visible = |place: u64| self.places[place as usize].visible;
        let walked = self.index.walk(&self.recording.contents, &mut visible, &mut |path, inode, _| {
            paths.entry(inode).or_insert_with(|| path.to_owned());
            Ok::<(), std::convert::Infallible>(())
        });
        walked.unwrap_or_else(|never| match never {});
        paths
    }
}
