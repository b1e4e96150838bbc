//! Moments of a program: the contents of each name and each file after each of its system calls.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::Nanos;

use super::reading::Readings;
use crate::posix::{Index, Inode, Layout, Object, Spot, Tree, number};
use crate::recording::{Content, Event, Recording};

/// Number of a moment: 0 is the beginning of the work, and each system call that changes something adds one.
pub(super) type Moment = usize;

/// Moments of the work of a program: its files after each call.
#[derive(Debug)]
pub struct Moments {
    /// Recording of the system calls.
    pub recording: Arc<Recording>,
    /// Events of the recording that belong to the work.
    pub work: Range<usize>,
    pub(super) index: Index,
    /// By block of the layout: its contents, each with the moment from which it applies.
    places: Vec<Vec<(Moment, Content)>>,
    /// By path: the files that it named, each with the moment from which it applies.
    pub(super) names: BTreeMap<PathBuf, Vec<(Moment, Option<Inode>)>>,
    /// Acknowledgements, each with its moment.
    acknowledged: Vec<(u64, Moment)>,
    pub(super) last: Moment,
    /// Outputs of the reader at moments.
    pub(super) readings: Readings,
}

/// Time during which a name refers to one file, within a range of moments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch {
    pub(super) inode: Option<Inode>,
    pub(super) first: Moment,
    /// Last moment of the epoch, inclusive.
    pub(super) last: Moment,
}

/// State of the names while the events are read.
#[derive(Default)]
struct Names {
    current: BTreeMap<PathBuf, Inode>,
    directories: HashMap<Inode, PathBuf>,
    history: BTreeMap<PathBuf, Vec<(Moment, Option<Inode>)>>,
}

impl Moments {
    /// Reads the moments of the events `work` of a recording.
    pub fn new(recording: Arc<Recording>, layout: Layout, work: Range<usize>) -> Self {
        let mut moments = Self {
            places: vec![Vec::new(); layout.spots.len()],
            index: Index::new(layout),
            names: BTreeMap::new(),
            acknowledged: Vec::new(),
            last: 0,
            readings: Readings::default(),
            work,
            recording,
        };
        moments.read();
        moments
    }

    /// Returns the meaning of the blocks.
    pub fn layout(&self) -> &Layout {
        &self.index.layout
    }

    fn read(&mut self) {
        let recording = Arc::clone(&self.recording);
        let mut names = Names::default();
        let (mut changed, mut began): (BTreeSet<u64>, Option<Nanos>) = (BTreeSet::new(), None);
        for (number, (at, event)) in recording.events[..self.work.end].iter().enumerate() {
            let is_work = number >= self.work.start;
            if number == self.work.start {
                self.put_names(&mut names, &BTreeSet::new());
            }
            match event {
                Event::Submitted(id) => {
                    // All changes of one call have the same time.
                    if is_work && began != Some(*at) {
                        self.put_names(&mut names, &std::mem::take(&mut changed));
                        began = Some(*at);
                        self.last += 1;
                    }
                    let command = &recording.commands[id.0 as usize];
                    let (place, content) = (command.range.lba.0, command.content(command.range.lba.0));
                    self.places[place as usize].push((self.last, content));
                    changed.insert(place);
                }
                Event::Acknowledged(acknowledged) if is_work => {
                    began = None;
                    self.acknowledged.push((*acknowledged, self.last));
                }
                _ => {}
            }
        }
        self.put_names(&mut names, &changed);
        self.names = names.history;
    }

    /// Records the names after the changes of these blocks.
    fn put_names(&self, names: &mut Names, changed: &BTreeSet<u64>) {
        let contents = &self.recording.contents;
        let is_directory = |inode| matches!(self.layout().object(inode), Some(Object::Directory(_)));
        let mut plain = Vec::new();
        for place in changed {
            let Spot::Entry(directory, name) = &self.layout().spots[*place as usize] else { continue };
            let versions = self.places[*place as usize].iter().rev();
            let now = versions.clone().next().map(|(_, content)| *content);
            let inodes = versions.map(|(_, content)| self.layout().inode_in(contents, *content));
            match names.directories.get(directory) {
                Some(path) if !inodes.flatten().any(is_directory) => {
                    let inode = now.and_then(|content| self.layout().inode_in(contents, content));
                    plain.push((path.join(name), inode));
                }
                _ => return self.walk_names(names),
            }
        }
        if names.directories.is_empty() {
            return self.walk_names(names);
        }
        plain.into_iter().for_each(|(path, inode)| names.put(path, inode, self.last));
    }

    fn walk_names(&self, names: &mut Names) {
        let mut found = BTreeMap::new();
        names.directories = HashMap::from([(Inode::ROOT, PathBuf::new())]);
        let mut content = |place: u64| self.content(place, self.last);
        let walked = self.index.walk(&self.recording.contents, &mut content, &mut |path, inode, _| {
            if matches!(self.layout().object(inode), Some(Object::Directory(_))) {
                names.directories.insert(inode, path.to_owned());
            }
            found.insert(path.to_owned(), inode);
            Ok::<(), Infallible>(())
        });
        walked.unwrap_or_else(|never| match never {});
        let gone: Vec<PathBuf> =
            names.current.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        gone.into_iter().for_each(|path| names.put(path, None, self.last));
        found.into_iter().for_each(|(path, inode)| names.put(path, Some(inode), self.last));
    }

    fn content(&self, place: u64, at: Moment) -> Content {
        let versions = &self.places[place as usize];
        let newer = versions.partition_point(|(moment, _)| *moment <= at);
        newer.checked_sub(1).map_or(Content::ZEROES, |newest| versions[newest].1)
    }

    /// Returns the moments that a state may hold after an acknowledgement, until the next one.
    pub(super) fn since(&self, required: Option<u64>) -> Range<Moment> {
        let next = self.acknowledged.partition_point(|(number, _)| Some(*number) <= required);
        let first = next.checked_sub(1).map_or(0, |last| self.acknowledged[last].1);
        let end = self.acknowledged.get(next).map_or(self.last, |(_, moment)| *moment);
        first..end + 1
    }

    /// Returns the moments of the acknowledgements before a moment, preceded by the beginning of the work.
    pub(super) fn acknowledged_before(&self, moment: Moment) -> impl Iterator<Item = Moment> {
        let earlier = self.acknowledged.iter().map(|(_, at)| *at);
        std::iter::once(0).chain(earlier).filter(move |at| *at < moment)
    }

    /// Returns the largest number of moments that a state may match.
    pub(crate) fn longest(&self) -> usize {
        let all = std::iter::once(None).chain(self.acknowledged.iter().map(|(number, _)| Some(*number)));
        all.map(|required| self.since(required).len()).max().unwrap_or(0)
    }

    /// Returns the epochs of a name within a range of moments.
    pub(super) fn epochs(&self, path: &Path, range: &Range<Moment>) -> Vec<Epoch> {
        let history = self.names.get(path).map_or(&[][..], Vec::as_slice);
        let mut epochs = vec![Epoch { inode: None, first: range.start, last: range.end - 1 }];
        for (moment, inode) in history.iter().take_while(|(moment, _)| *moment < range.end) {
            let first = (*moment).max(range.start);
            match epochs.last_mut() {
                Some(last) if last.first >= first => last.inode = *inode,
                Some(last) => {
                    last.last = first - 1;
                    epochs.push(Epoch { inode: *inode, first, last: range.end - 1 });
                }
                None => {}
            }
        }
        epochs
    }

    /// Returns true if a file has a name at each moment of a range.
    pub(super) fn has_name(&self, file: Inode, range: &Range<Moment>) -> bool {
        let named =
            self.names.iter().filter(|(_, history)| history.iter().any(|(_, one)| *one == Some(file)));
        let mut epochs: Vec<Epoch> = named.flat_map(|(path, _)| self.epochs(path, range)).collect();
        epochs.retain(|epoch| epoch.inode == Some(file));
        epochs.sort_by_key(|epoch| epoch.first);
        let next = epochs.iter().fold(range.start, |next, epoch| {
            if epoch.first <= next { next.max(epoch.last + 1) } else { next }
        });
        next >= range.end
    }

    pub(super) fn size(&self, file: Inode, at: Moment) -> u64 {
        let place = self.index.place(&Spot::Size(file));
        place.map_or(0, |place| number(&self.recording.contents, self.content(place, at)))
    }

    pub(super) fn block(&self, file: Inode, number: u64, at: Moment) -> &[u8] {
        let place = self.index.place(&Spot::Data(file, number));
        self.recording.contents.bytes(place.map_or(Content::ZEROES, |place| self.content(place, at)))
    }

    /// Returns the first moment of a range, and all moments in it at which a file changed.
    pub(super) fn changes(&self, file: Inode, first: Moment, last: Moment) -> BTreeSet<Moment> {
        let places = self.index.data(file, 0).map(|(_, place)| place);
        let places = places.chain(self.index.place(&Spot::Size(file)));
        let versions = places.flat_map(|place| &self.places[place as usize]).map(|(moment, _)| *moment);
        versions.filter(|moment| (first..=last).contains(moment)).chain([first]).collect()
    }

    pub(crate) fn tree(&self, at: Moment) -> Tree {
        let Recording { contents, logical_block, .. } = &*self.recording;
        self.index.tree(contents, *logical_block, &mut |place| self.content(place, at))
    }

    /// Returns the paths that a state may have to contain, and those that it contains.
    pub(super) fn paths<'a>(&'a self, found: impl Iterator<Item = &'a PathBuf>) -> HashSet<&'a Path> {
        self.names.keys().chain(found).map(PathBuf::as_path).collect()
    }
}

impl Names {
    fn put(&mut self, path: PathBuf, inode: Option<Inode>, at: Moment) {
        if self.current.get(&path) == inode.as_ref() {
            return;
        }
        match inode {
            Some(inode) => self.current.insert(path.clone(), inode),
            None => self.current.remove(&path),
        };
        let history = self.history.entry(path).or_default();
        match history.last_mut() {
            Some((moment, last)) if *moment == at => *last = inode,
            _ => history.push((at, inode)),
        }
    }
}
