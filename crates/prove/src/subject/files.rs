//! Plain files: small protocols as programs use them, each with what it acknowledges, and none with a database beneath.
//!
//! A protocol is a list of steps that is done [`ROUNDS`] times; each round ends with its acknowledgement. What each file may
//! hold after a cut follows from the steps: what it held at the last acknowledgement, or anything that it was given later.
//!
//! What is found on an honest drive with a volatile cache (held by the tests of this crate; `-`: intact):
//!
//! | protocol | ext4 | xfs | btrfs | |
//! |---|---|---|---|---|
//! | `write-`, `append-`, `overwrite-no-fsync` | lost | lost | lost | nothing was asked to be durable |
//! | `write-`, `append-`, `overwrite-fsync` | - | - | - | an overwrite of one logical block does not tear |
//! | `overwrite-16k-fsync` | corrupt | corrupt | - | btrfs writes elsewhere and then points there |
//! | `create-no-dirsync` | - | - | - | fsync of a new file persists its name too, which POSIX does not promise |
//! | `create-dirsync-no-fsync` | lost | lost | lost | the name is there, the contents are not |
//! | `rename-no-fsync` | corrupt | corrupt | corrupt | empty; on ext4, which begins to write the data when a file is replaced, zeroes or, by luck, intact |
//! | `rename-fsync-no-dirsync` | lost | lost | lost | the old contents are back |
//! | `fsync-after-rename` | - | - | - | all three persist the new name with the file; POSIX does not promise it |
//! | `mkdir-no-dirsync` | lost | lost | lost | |
//! | `unlink-no-dirsync` | resurrected | resurrected | resurrected | |
//! | `ordered-no-fsync` | out of order | out of order | out of order | the second file is synced before the first |
//! | all others | - | - | - | |

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use plumb_report::document::proof::FailureClass;

use super::named::{Settings, Values};
use super::{Outcome, Subject, SubjectError};

/// How often the steps of a protocol are done.
const ROUNDS: u64 = 4;
/// Bytes of a file or an appended record: one logical block, which does not tear.
const BLOCK: usize = 512;

/// A step. A `#` in a name stands for the number of the round.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Makes an empty file.
    Create(&'static str),
    /// Writes a file from its beginning.
    Write(&'static str),
    /// Writes one record behind the end.
    Append(&'static str),
    Fsync(&'static str),
    Rename(&'static str, &'static str),
    Unlink(&'static str),
    MakeDirectory(&'static str),
    /// Syncs the directory that holds all of them.
    Dirsync,
}

use Step::{Append, Create, Dirsync, Fsync, MakeDirectory, Rename, Unlink, Write};

/// A program is free to remove it, whatever it holds.
const TEMPORARY: &str = "temporary";
/// Of the protocols in which one file must never be newer than another: the one that is written first, and the other.
const ORDERED: [&str; 2] = ["first", "second"];

struct Protocol {
    name: &'static str,
    set_up: &'static [Step],
    round: &'static [Step],
    /// Bytes that a step writes.
    bytes: usize,
}

const fn protocol(name: &'static str, set_up: &'static [Step], round: &'static [Step]) -> Protocol {
    Protocol { name, set_up, round, bytes: BLOCK }
}

const REPLACED: &[Step] = &[Write("file")];
const NEW: Step = Create(TEMPORARY);
const WRITTEN: Step = Write(TEMPORARY);
const RENAMED: Step = Rename(TEMPORARY, "file");
const BOTH: &[Step] = &[Write("first"), Write("second")];

const PROTOCOLS: [Protocol; 20] = [
    protocol("write-no-fsync", &[Create("file-#")], &[Write("file-#")]),
    protocol("write-fsync", &[Create("file-#")], &[Write("file-#"), Fsync("file-#")]),
    protocol("append-no-fsync", &[Create("file")], &[Append("file")]),
    protocol("append-fsync", &[Create("file")], &[Append("file"), Fsync("file")]),
    protocol("overwrite-no-fsync", REPLACED, &[Write("file")]),
    protocol("overwrite-fsync", REPLACED, &[Write("file"), Fsync("file")]),
    Protocol {
        bytes: 16 << 10,
        ..protocol("overwrite-16k-fsync", REPLACED, &[Write("file"), Fsync("file")])
    },
    protocol("create-no-dirsync", &[], &[Create("file-#"), Write("file-#"), Fsync("file-#")]),
    protocol("create-dirsync", &[], &[Create("file-#"), Write("file-#"), Fsync("file-#"), Dirsync]),
    protocol("create-dirsync-no-fsync", &[], &[Create("file-#"), Write("file-#"), Dirsync]),
    protocol("rename-no-fsync", REPLACED, &[NEW, WRITTEN, RENAMED, Dirsync]),
    protocol("rename-fsync-no-dirsync", REPLACED, &[NEW, WRITTEN, Fsync(TEMPORARY), RENAMED]),
    protocol("fsync-after-rename", REPLACED, &[NEW, WRITTEN, RENAMED, Fsync("file")]),
    protocol("rename-fsync-dirsync", REPLACED, &[NEW, WRITTEN, Fsync(TEMPORARY), RENAMED, Dirsync]),
    protocol("mkdir-no-dirsync", &[], &[MakeDirectory("directory-#")]),
    protocol("mkdir-dirsync", &[], &[MakeDirectory("directory-#"), Dirsync]),
    protocol("unlink-no-dirsync", &[Write("file-#")], &[Unlink("file-#")]),
    protocol("unlink-dirsync", &[Write("file-#")], &[Unlink("file-#"), Dirsync]),
    protocol("ordered-no-fsync", BOTH, &[Write("first"), Write("second"), Fsync("second"), Fsync("first")]),
    protocol("ordered-fsync", BOTH, &[Write("first"), Fsync("first"), Write("second"), Fsync("second")]),
];

const NAMES: [&str; PROTOCOLS.len()] = {
    let mut names = [""; PROTOCOLS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PROTOCOLS[at].name;
        at += 1;
    }
    names
};

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory,
    File(Vec<u8>),
}

/// All names that there are.
type Tree = BTreeMap<String, Entry>;

/// A program that follows one protocol.
pub(super) struct Files {
    name: String,
    protocol: &'static Protocol,
    /// What there is before the first step and after each.
    trees: Vec<Tree>,
}

impl Step {
    /// Does it at `place`; a write is of version `version`.
    fn perform(self, place: &Path, round: u64, version: u64, bytes: usize) -> io::Result<()> {
        let path = |name| place.join(numbered(name, round));
        match self {
            Create(name) => File::create_new(path(name)).map(drop),
            Write(name) => File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path(name))?
                .write_all_at(&content(&numbered(name, round), version, bytes), 0),
            Append(name) => {
                let file = File::options().write(true).open(path(name))?;
                let end = file.metadata()?.len();
                file.write_all_at(&content(&numbered(name, round), version, bytes), end)
            }
            Fsync(name) => File::open(path(name))?.sync_all(),
            Rename(from, to) => fs::rename(path(from), path(to)),
            Unlink(name) => fs::remove_file(path(name)),
            MakeDirectory(name) => fs::create_dir(path(name)),
            Dirsync => File::open(place)?.sync_all(),
        }
    }

    /// Does the same to what is known to be there.
    fn imagine(self, tree: &mut Tree, round: u64, version: u64, bytes: usize) {
        match self {
            Create(name) => {
                tree.insert(numbered(name, round), Entry::File(Vec::new()));
            }
            Write(name) => {
                let name = numbered(name, round);
                let written = content(&name, version, bytes);
                tree.insert(name, Entry::File(written));
            }
            Append(name) => {
                let name = numbered(name, round);
                if let Some(Entry::File(held)) = tree.get_mut(&name) {
                    held.extend(content(&name, version, bytes));
                }
            }
            Rename(from, to) => {
                if let Some(entry) = tree.remove(&numbered(from, round)) {
                    tree.insert(numbered(to, round), entry);
                }
            }
            Unlink(name) => {
                tree.remove(&numbered(name, round));
            }
            MakeDirectory(name) => {
                tree.insert(numbered(name, round), Entry::Directory);
            }
            Fsync(_) | Dirsync => {}
        }
    }
}

fn numbered(name: &str, round: u64) -> String {
    name.replace('#', &round.to_string())
}

/// What version `version` of a file holds: its name and the version, over and over.
fn content(name: &str, version: u64, bytes: usize) -> Vec<u8> {
    format!("{name} {version} ").bytes().cycle().take(bytes).collect()
}

impl Protocol {
    /// What is made at first: steps with their rounds. What names no round is made once.
    fn set_up(&self) -> impl Iterator<Item = (Step, u64)> {
        let of_round = |round| self.set_up.iter().map(move |step| (*step, round));
        let rounds =
            if self.set_up.iter().any(|step| format!("{step:?}").contains('#')) { ROUNDS } else { 1 };
        (1..=rounds).flat_map(of_round)
    }
}

impl Files {
    pub(super) const OPTIONS: &[(&str, Values)] = &[("protocol", Values::OneOf(&NAMES))];

    pub(super) fn of(settings: &Settings<'_>) -> Result<Self, String> {
        let asked = settings.word("protocol");
        let protocol = PROTOCOLS.iter().find(|protocol| protocol.name == asked);
        let protocol = protocol.ok_or_else(|| format!("there is no protocol `{asked}`"))?;
        let mut tree = Tree::new();
        for (step, round) in protocol.set_up() {
            step.imagine(&mut tree, round, 0, protocol.bytes);
        }
        let mut trees = vec![tree.clone()];
        for round in 1..=ROUNDS {
            for step in protocol.round {
                step.imagine(&mut tree, round, round, protocol.bytes);
                trees.push(tree.clone());
            }
        }
        Ok(Self { name: settings.typed.to_owned(), protocol, trees })
    }

    fn perform(&self, step: Step, place: &Path, round: u64, version: u64) -> Result<(), SubjectError> {
        step.perform(place, round, version, self.protocol.bytes).map_err(|error| SubjectError::Failed {
            subject: self.name.clone(),
            what: format!("{step:?}, round {round}, in {}: {error}", place.display()),
        })
    }

    /// Judges one name: what stands there, against what it may be after the step `acknowledged`.
    fn judge(
        &self,
        name: &str,
        found: Option<&Entry>,
        acknowledged: usize,
    ) -> Option<(FailureClass, String)> {
        let (before, from) = self.trees.split_at(acknowledged);
        let expected = from.first().and_then(|tree| tree.get(name));
        if from.iter().any(|tree| tree.get(name) == found) {
            return None;
        }
        let was_before = || before.iter().rev().any(|tree| tree.get(name) == found);
        match (expected, found) {
            (None, Some(_)) if before.iter().any(|tree| tree.contains_key(name)) => {
                Some((FailureClass::Resurrected, format!("{name} was removed and is back")))
            }
            // It was just being made, and nothing was promised of it; so it is with what stands behind the promised bytes.
            (None, _) => None,
            (Some(Entry::File(expected)), Some(Entry::File(found))) if found.starts_with(expected) => None,
            (Some(_), None) => Some((FailureClass::LostAcknowledged, format!("{name} is missing"))),
            (Some(Entry::File(_)), Some(Entry::File(found))) if was_before() => {
                let what = if found.is_empty() { "is empty" } else { "holds an older version" };
                Some((FailureClass::LostAcknowledged, format!("{name} {what}")))
            }
            (Some(_), Some(Entry::File(found))) if found.is_empty() => {
                Some((FailureClass::Corrupt, format!("{name} is empty, which it never was")))
            }
            (Some(_), Some(Entry::File(found))) if found.iter().all(|byte| *byte == 0) => {
                Some((FailureClass::Corrupt, format!("{name} holds zeroes, which it never did")))
            }
            _ => Some((FailureClass::Corrupt, format!("{name} holds what it was never given"))),
        }
    }

    /// Whether the second of two files is newer than the first, where that must not be.
    fn out_of_order(&self, found: &Tree) -> Option<(FailureClass, String)> {
        let version = |name: &str| {
            let Some(Entry::File(held)) = found.get(name) else { return None };
            (0..=ROUNDS).find(|version| content(name, *version, self.protocol.bytes) == *held)
        };
        let [first, second] = ORDERED.map(version);
        let (first, second) = (first?, second?);
        let words = || format!("the second file holds version {second}, the first one version {first}");
        (second > first).then(|| (FailureClass::OutOfOrder, words()))
    }
}

impl Subject for Files {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn set_up(&self, place: &Path) -> Result<(), SubjectError> {
        self.protocol.set_up().try_for_each(|(step, round)| self.perform(step, place, round, 0))
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<(), SubjectError> {
        for round in 1..=ROUNDS {
            for step in self.protocol.round {
                self.perform(*step, place, round, round)?;
            }
            acknowledge(round);
        }
        Ok(())
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome, SubjectError> {
        let names = self.trees.iter().flat_map(Tree::keys).filter(|name| *name != TEMPORARY);
        let names: BTreeSet<&String> = names.collect();
        let mut found = Tree::new();
        for name in &names {
            match read(&place.join(name)) {
                Ok(entry) => found.extend(entry.map(|entry| (String::clone(name), entry))),
                Err(error) => {
                    return Ok(Outcome::of(FailureClass::Corrupt, format!("{name} cannot be read: {error}")));
                }
            }
        }
        let acknowledged = required.unwrap_or(0).min(ROUNDS) as usize * self.protocol.round.len();
        let failures = names.iter().filter_map(|name| self.judge(name, found.get(*name), acknowledged));
        let rank = |class| FailureClass::ALL.iter().position(|known| *known == class);
        let worst = failures.chain(self.out_of_order(&found)).min_by_key(|(class, _)| rank(*class));
        Ok(worst.map_or(Outcome::Intact, |(class, words)| {
            Outcome::of(class, format!("{} rounds were acknowledged: {words}", required.unwrap_or(0)))
        }))
    }
}

/// What stands at a path.
fn read(path: &Path) -> io::Result<Option<Entry>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(Entry::File(bytes))),
        Err(error) if error.kind() == ErrorKind::IsADirectory => Ok(Some(Entry::Directory)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    fn subject(protocol: &str) -> std::sync::Arc<dyn Subject> {
        named(&format!("files:{protocol}")).unwrap()
    }

    /// A place after its set-up and so many rounds.
    fn after(protocol: &str, rounds: u64) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let protocol = PROTOCOLS.iter().find(|known| known.name == protocol).unwrap();
        let steps =
            (1..=rounds).flat_map(|round| protocol.round.iter().map(move |step| (*step, round, round)));
        for (step, round, version) in protocol.set_up().map(|(step, round)| (step, round, 0)).chain(steps) {
            step.perform(place.path(), round, version, protocol.bytes).unwrap();
        }
        place
    }

    #[test]
    fn each_protocol_leaves_what_it_acknowledges_and_no_later_round() {
        for name in NAMES {
            let subject = subject(name);
            let place = tempfile::tempdir().unwrap();
            subject.set_up(place.path()).unwrap();
            assert_eq!(subject.check(place.path(), None).unwrap(), Outcome::Intact, "{name}");
            let mut acknowledged = Vec::new();
            subject
                .work(place.path(), &mut |round| {
                    acknowledged.push(round);
                    for required in 0..=ROUNDS {
                        let outcome = subject.check(place.path(), Some(required)).unwrap();
                        let is_there = required <= round;
                        assert_eq!(
                            outcome == Outcome::Intact,
                            is_there,
                            "{name}, {round}, {required}: {outcome:?}"
                        );
                    }
                })
                .unwrap();
            assert_eq!(acknowledged, [1, 2, 3, 4], "{name}");
        }
    }

    #[test]
    fn what_is_wrong_has_its_class() {
        type Tampering = fn(&Path);
        const HARMS: [(&str, FailureClass, Tampering); 10] = [
            ("write-fsync", FailureClass::LostAcknowledged, |place| {
                fs::write(place.join("file-2"), "").unwrap()
            }),
            ("append-fsync", FailureClass::LostAcknowledged, |place| {
                File::options().write(true).open(place.join("file")).unwrap().set_len(1024).unwrap();
            }),
            ("append-fsync", FailureClass::Corrupt, |place| {
                File::options()
                    .write(true)
                    .open(place.join("file"))
                    .unwrap()
                    .write_all_at(&[0; 512], 512)
                    .unwrap();
            }),
            ("overwrite-fsync", FailureClass::LostAcknowledged, |place| {
                fs::write(place.join("file"), content("file", 2, BLOCK)).unwrap();
            }),
            ("overwrite-16k-fsync", FailureClass::Corrupt, |place| {
                let file = File::options().write(true).open(place.join("file")).unwrap();
                file.write_all_at(&content("file", 2, 512), 0).unwrap();
            }),
            ("create-dirsync", FailureClass::LostAcknowledged, |place| {
                fs::remove_file(place.join("file-3")).unwrap()
            }),
            ("rename-fsync-dirsync", FailureClass::Corrupt, |place| {
                fs::write(place.join("file"), "").unwrap()
            }),
            ("mkdir-dirsync", FailureClass::LostAcknowledged, |place| {
                fs::remove_dir(place.join("directory-1")).unwrap()
            }),
            ("unlink-dirsync", FailureClass::Resurrected, |place| {
                fs::write(place.join("file-1"), content("file-1", 0, BLOCK)).unwrap();
            }),
            ("ordered-fsync", FailureClass::OutOfOrder, |place| {
                fs::write(place.join("second"), content("second", 4, BLOCK)).unwrap();
            }),
        ];
        for (name, class, harm) in HARMS {
            let place = after(name, 3);
            let subject = subject(name);
            assert_eq!(subject.check(place.path(), Some(3)).unwrap(), Outcome::Intact, "{name}");
            harm(place.path());
            let outcome = subject.check(place.path(), Some(3)).unwrap();
            assert_eq!(outcome.class(), Some(class), "{name}: {outcome:?}");
        }
    }

    #[test]
    fn what_is_in_flight_may_be_there_or_not() {
        let place = after("append-fsync", 3);
        let file = File::options().write(true).open(place.path().join("file")).unwrap();
        file.write_all_at(b"a part of a record", 3 * 512).unwrap();
        assert_eq!(subject("append-fsync").check(place.path(), Some(3)).unwrap(), Outcome::Intact);
        let place = after("rename-fsync-dirsync", 3);
        fs::write(place.path().join(TEMPORARY), "anything").unwrap();
        assert_eq!(subject("rename-fsync-dirsync").check(place.path(), Some(3)).unwrap(), Outcome::Intact);
    }
}
