//! POSIX model compared with a slow oracle, which enumerates the states of every short trace from the rules
//! alone: every set of changes, in the order of the calls, that contains everything durable and everything
//! that survivors need.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::ControlFlow;

use plumb_block::{Bytes, Nanos};
use plumb_prove::explore::Explorer;
use plumb_prove::posix::{Index, Inode, Model, Name, Node, Object, Unwritten};

use crate::explorer;

const BLOCK: usize = 512;

/// Calls of the traces, on a file `a` unless stated otherwise, in one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    WriteDsync,
    Append,
    Truncate,
    Fsync,
    RenameToB,
    RenameFromB,
    Exchange,
    CreateB,
    Unlink,
    LinkToB,
    FsyncDirectory,
}

const CALLS: [Call; 12] = [
    Call::Write,
    Call::WriteDsync,
    Call::Append,
    Call::Truncate,
    Call::Fsync,
    Call::RenameToB,
    Call::RenameFromB,
    Call::Exchange,
    Call::CreateB,
    Call::Unlink,
    Call::LinkToB,
    Call::FsyncDirectory,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Block(usize, usize),
    Size(usize),
    Name(&'static str),
}

/// State of a spot after a change; `None` means zeroes, size 0 or no file.
type Value = (Key, Option<usize>);
type Values = BTreeMap<Key, Option<usize>>;
/// Contents of files by their names.
type Trees = BTreeSet<BTreeMap<String, Vec<u8>>>;

#[derive(Clone)]
struct Change {
    values: Vec<Value>,
    is_durable: bool,
}

#[derive(Default)]
struct Oracle {
    changes: Vec<Change>,
    files: usize,
}

impl Oracle {
    fn values(&self, survives: impl Fn(usize) -> bool) -> Values {
        let survivors = self.changes.iter().enumerate().filter(|(number, _)| survives(*number));
        survivors.flat_map(|(_, change)| change.values.clone()).collect()
    }

    fn visible(&self, key: Key) -> Option<usize> {
        self.values(|_| true).get(&key).copied().flatten()
    }

    fn change(&mut self, values: Vec<Value>) {
        self.changes.push(Change { values, is_durable: false });
    }

    /// Returns the earlier changes of several spots together that share a spot with this change.
    fn needs(&self, number: usize) -> Vec<usize> {
        let keys = |number: usize| self.changes[number].values.iter().map(|(key, _)| *key);
        let is_shared = |earlier: &usize| keys(*earlier).any(|key| keys(number).any(|own| own == key));
        (0..number).filter(|earlier| keys(*earlier).count() > 1).filter(is_shared).collect()
    }

    fn persist(&mut self, number: usize) {
        self.changes[number].is_durable = true;
        self.needs(number).into_iter().for_each(|needed| self.persist(needed));
    }

    fn fsync(&mut self, covers: impl Fn(Key) -> bool) {
        for number in 0..self.changes.len() {
            if self.changes[number].values.iter().any(|(key, _)| covers(*key)) {
                self.persist(number);
            }
        }
    }

    /// Simulates O_DSYNC of the first block of a file.
    fn dsync(&mut self, file: usize) {
        self.fsync(|key| key == Key::Block(file, 0));
        let durable = self.values(|number| self.changes[number].is_durable);
        if durable.get(&Key::Size(file)).copied().flatten().unwrap_or(0) >= BLOCK {
            return;
        }
        let sizes = |change: &Change| {
            let size = change.values.iter().find(|(key, _)| *key == Key::Size(file));
            size.map(|(_, size)| size.unwrap_or(0))
        };
        let is_durable_size = |change: &Change| change.is_durable && sizes(change).is_some();
        let newer = self.changes.iter().rposition(is_durable_size).map_or(0, |last| last + 1);
        let reaches = |number: &usize| sizes(&self.changes[*number]) >= Some(BLOCK);
        let first = (newer..self.changes.len()).find(reaches);
        first.into_iter().for_each(|number| self.persist(number));
    }

    /// Adds all trees that a cut may leave now.
    fn put_trees(&self, trees: &mut Trees) {
        for subset in 0_u32..1 << self.changes.len() {
            let survives = |number: usize| subset >> number & 1 == 1;
            let is_possible = (0..self.changes.len()).all(|number| {
                let may_be_lost = !self.changes[number].is_durable;
                (survives(number) || may_be_lost)
                    && (!survives(number) || self.needs(number).into_iter().all(survives))
            });
            if is_possible {
                trees.insert(tree(&self.values(survives)));
            }
        }
    }
}

fn tree(values: &Values) -> BTreeMap<String, Vec<u8>> {
    let value = |key: Key| values.get(&key).copied().flatten().unwrap_or(0);
    let contents = |file| {
        let byte = |at: usize| value(Key::Block(file, at / BLOCK)) as u8;
        (0..value(Key::Size(file))).map(byte).collect()
    };
    let names = values.iter().filter_map(|(key, file)| match (key, file) {
        (Key::Name(name), Some(file)) => Some(((*name).to_owned(), contents(*file))),
        _ => None,
    });
    names.collect()
}

fn name(name: &'static str) -> Name<'static> {
    Name { directory: Inode::ROOT, name: OsStr::new(name) }
}

/// Makes a call in both, and adds the trees of a cut during the call. Returns false if it would fail.
fn call(call: Call, version: usize, model: &mut Model, oracle: &mut Oracle, trees: &mut Trees) -> bool {
    let (a, b) = (oracle.visible(Key::Name("a")), oracle.visible(Key::Name("b")));
    let inode = model.entry(name("a"));
    assert_eq!((inode.is_some(), model.entry(name("b")).is_some()), (a.is_some(), b.is_some()));
    let size = |oracle: &Oracle, file| oracle.visible(Key::Size(file)).unwrap_or(0);
    let now = Nanos(u64::MAX);
    match (call, a.zip(inode)) {
        (Call::Write | Call::WriteDsync | Call::Append, Some((file, inode))) => {
            let old = size(oracle, file);
            let at = if call == Call::Append { old / BLOCK } else { 0 };
            model.write(inode, at as u64, &[version as u8; BLOCK]);
            oracle.change(vec![(Key::Block(file, at), Some(version))]);
            let new = old.max((at + 1) * BLOCK);
            model.set_size(inode, new as u64);
            if new > old {
                oracle.change(vec![(Key::Size(file), Some(new))]);
            }
            if call == Call::WriteDsync {
                oracle.put_trees(trees);
                model.fsync_range(inode, 0..BLOCK as u64, now);
                oracle.dsync(file);
            }
        }
        (Call::Truncate, Some((file, inode))) => {
            model.set_size(inode, 0);
            let blocks = size(oracle, file) / BLOCK;
            let removed = (0..blocks).map(|block| (Key::Block(file, block), None));
            if blocks > 0 {
                oracle.change(removed.chain([(Key::Size(file), None)]).collect());
            }
        }
        (Call::Fsync, Some((file, inode))) => {
            model.fsync(inode, now);
            oracle.fsync(|key| match key {
                Key::Block(of, _) | Key::Size(of) => of == file,
                Key::Name(_) => false,
            });
        }
        _ => return call_on_names(call, model, oracle),
    }
    true
}

/// Makes a call that changes or syncs names in both. Returns false if it would fail.
fn call_on_names(call: Call, model: &mut Model, oracle: &mut Oracle) -> bool {
    let (a, b) = (oracle.visible(Key::Name("a")), oracle.visible(Key::Name("b")));
    match (call, a.zip(model.entry(name("a"))), b) {
        (Call::RenameToB, Some((file, _)), _) => {
            model.rename(name("a"), name("b"));
            if b != Some(file) {
                oracle.change(vec![(Key::Name("b"), Some(file)), (Key::Name("a"), None)]);
            }
        }
        (Call::RenameFromB, _, Some(file)) => {
            model.rename(name("b"), name("a"));
            if a != Some(file) {
                oracle.change(vec![(Key::Name("a"), Some(file)), (Key::Name("b"), None)]);
            }
        }
        (Call::Exchange, Some((file, _)), Some(other)) => {
            model.exchange(name("a"), name("b"));
            oracle.change(vec![(Key::Name("a"), Some(other)), (Key::Name("b"), Some(file))]);
        }
        (Call::CreateB, _, None) => {
            let inode = model.make(Object::File(0o644));
            model.link(inode, name("b"));
            oracle.files += 1;
            oracle.change(vec![(Key::Name("b"), Some(oracle.files))]);
        }
        (Call::Unlink, Some(_), _) => {
            model.unlink(name("a"));
            oracle.change(vec![(Key::Name("a"), None)]);
        }
        (Call::LinkToB, Some((file, inode)), None) => {
            model.link(inode, name("b"));
            oracle.change(vec![(Key::Name("b"), Some(file))]);
        }
        (Call::FsyncDirectory, ..) => {
            model.fsync(Inode::ROOT, Nanos(u64::MAX));
            oracle.fsync(|key| matches!(key, Key::Name(_)));
        }
        _ => return false,
    }
    true
}

/// Returns a model in which a file `a` of one block is durable.
fn begun(unwritten: Unwritten) -> (Model, Inode) {
    let mut model = Model::new(Bytes(BLOCK as u64), unwritten);
    let file = model.make(Object::File(0o644));
    model.link(file, name("a"));
    model.write(file, 0, &[9; BLOCK]);
    model.set_size(file, BLOCK as u64);
    model.sync(Nanos(0));
    (model, file)
}

/// Returns the trees of all states after the first `from` events.
fn explored(model: &Model, from: usize) -> Trees {
    let index = Index::new(model.layout().clone());
    let recording = model.recording();
    let mut found = Trees::new();
    Explorer { from, ..explorer(recording) }.explore(&mut |state| {
        let tree = index.tree(&recording.contents, recording.logical_block, &mut |lba| state.content(lba));
        let contents = |node: &Node| {
            let Node::File(file) = node else { return Vec::new() };
            let mut bytes = vec![0; file.size.0 as usize];
            for (number, content) in &file.blocks {
                let block = recording.contents.bytes(*content);
                bytes[*number as usize * BLOCK..][..BLOCK].copy_from_slice(block);
            }
            bytes
        };
        let named = tree.nodes.iter().map(|(path, node)| (path.display().to_string(), contents(node)));
        found.insert(named.collect());
        ControlFlow::Continue(())
    });
    found
}

/// Compares the states of one trace. Returns false if one of its calls would fail.
fn compare(trace: &[Call]) -> bool {
    let (mut model, _) = begun(Unwritten::Zeroes);
    let mut oracle = Oracle { files: 1, ..Oracle::default() };
    let first = vec![(Key::Name("a"), Some(1)), (Key::Size(1), Some(BLOCK))];
    for values in first.into_iter().chain([(Key::Block(1, 0), Some(9))]) {
        oracle.changes.push(Change { values: vec![values], is_durable: true });
    }
    let from = model.recording().events.len();
    let mut expected = Trees::new();
    oracle.put_trees(&mut expected);
    for (number, one) in trace.iter().enumerate() {
        if !call(*one, number + 1, &mut model, &mut oracle, &mut expected) {
            return false;
        }
        oracle.put_trees(&mut expected);
    }
    // Without an event nothing is explored. The durable state remains.
    model.happened(plumb_prove::recording::Event::Acknowledged(1));
    let brief = |trees: &Trees| {
        let brief = |contents: &Vec<u8>| (contents.len(), contents.iter().copied().collect::<BTreeSet<u8>>());
        let brief = |tree: &BTreeMap<String, Vec<u8>>| tree.values().map(brief).collect::<Vec<_>>();
        trees.iter().map(brief).collect::<Vec<_>>()
    };
    let found = explored(&model, from);
    assert!(found == expected, "{trace:?}: {:?}, expected {:?}", brief(&found), brief(&expected));
    true
}

#[test]
fn every_trace_of_up_to_four_calls_leaves_what_the_rules_allow() {
    let mut compared = 0;
    for length in 0..=4_u32 {
        for number in 0..CALLS.len().pow(length) {
            let trace: Vec<Call> =
                (0..length).map(|place| CALLS[number / CALLS.len().pow(place) % CALLS.len()]).collect();
            compared += usize::from(compare(&trace));
        }
    }
    assert_eq!(compared, 6615);
}

#[test]
fn a_block_that_was_allocated_and_not_written_holds_garbage_only_where_that_is_wanted() {
    for (unwritten, expected) in [(Unwritten::Zeroes, vec![0, 3]), (Unwritten::Garbage, vec![0, 3, 0xa5])] {
        let (mut model, file) = begun(unwritten);
        let from = model.recording().events.len();
        model.write(file, 1, &[3; BLOCK]);
        model.set_size(file, 2 * BLOCK as u64);
        let trees = explored(&model, from);
        let second = trees.iter().filter_map(|tree| tree["a"].get(BLOCK)).copied();
        assert_eq!(second.collect::<BTreeSet<u8>>(), BTreeSet::from_iter(expected));
    }
}

#[test]
fn a_sync_covers_what_had_changed_when_it_was_called() {
    let (mut model, file) = begun(Unwritten::Zeroes);
    model.set_time(Nanos(5), Nanos(5));
    model.write(file, 0, &[1; BLOCK]);
    model.set_time(Nanos(7), Nanos(7));
    model.write(file, 0, &[2; BLOCK]);
    model.fsync(file, Nanos(5));
    let trees = explored(&model, model.recording().events.len());
    let first: Vec<u8> = trees.iter().map(|tree| tree["a"][0]).collect();
    assert_eq!(first, [1, 2]);
}

#[test]
fn a_durable_range_keeps_the_size_that_reaches_its_end_after_a_shorter_one() {
    let mut model = Model::new(Bytes(BLOCK as u64), Unwritten::Zeroes);
    let file = model.make(Object::File(0o644));
    model.link(file, name("a"));
    // No block of it is written, so its truncation only changes the size.
    model.set_size(file, 2 * BLOCK as u64);
    model.sync(Nanos(0));
    model.set_size(file, 0);
    model.write(file, 0, &[1; BLOCK]);
    model.set_size(file, BLOCK as u64);
    model.fsync_range(file, 0..BLOCK as u64, Nanos(u64::MAX));
    let trees = explored(&model, model.recording().events.len());
    assert_eq!(trees, BTreeSet::from([BTreeMap::from([("a".to_owned(), vec![1; BLOCK])])]));
}
