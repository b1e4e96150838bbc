//! Plain files: small protocols as programs use them, each with its acknowledgements, and without a database.
//!
//! A protocol is a list of steps that is repeated [`ROUNDS`] times. Each round ends with its acknowledgement.
//! The steps define the contents that each file may have after a cut: those at the last acknowledgement, or
//! any later ones.
//!
//! Results on an honest drive with a volatile cache (checked by the tests of this crate; `-`: intact):
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
//! | `fsync-after-rename` | - | - | - | all three persist the new name with the file; corrupt when a commit by the timer falls between the two |
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

use super::options::{Settings, Values};
use super::{Outcome, Subject};
use crate::error::{Error, Result, cannot};

/// Number of times that the steps of a protocol are repeated.
const ROUNDS: u64 = 4;
/// Length of a file or an appended record in bytes: one logical block, which does not tear.
const BLOCK: usize = 512;
/// Length of a large file in bytes.
const LARGE: usize = 16 << 10;

/// Name of a file that a program may remove, whatever it holds.
const TEMPORARY: &str = "temporary";
/// Names of the files in protocols in which one file must never be newer than another: the one that is
/// written first, and the other.
const ORDERED: [&str; 2] = ["first", "second"];

/// Name, set-up, and steps of each round, separated by commas. In the name of a file `#` stands for the
/// number of the round; the set-up of such a file is done for each round.
///
/// - `create`, `write` from the beginning, `write16k`, `append`, `fsync`, `unlink`, `mkdir`: of one file
/// - `rename`: of one file to the name of another; `dirsync`: of the directory that contains all of them
pub(super) type Protocol = [&'static str; 3];

const PROTOCOLS: [Protocol; 20] = [
    ["write-no-fsync", "create file-#", "write file-#"],
    ["write-fsync", "create file-#", "write file-#,fsync file-#"],
    ["append-no-fsync", "create file", "append file"],
    ["append-fsync", "create file", "append file,fsync file"],
    ["overwrite-no-fsync", "write file", "write file"],
    ["overwrite-fsync", "write file", "write file,fsync file"],
    ["overwrite-16k-fsync", "write16k file", "write16k file,fsync file"],
    ["create-no-dirsync", "", "create file-#,write file-#,fsync file-#"],
    ["create-dirsync", "", "create file-#,write file-#,fsync file-#,dirsync"],
    ["create-dirsync-no-fsync", "", "create file-#,write file-#,dirsync"],
    ["rename-no-fsync", "write file", "create temporary,write temporary,rename temporary file,dirsync"],
    [
        "rename-fsync-no-dirsync",
        "write file",
        "create temporary,write temporary,fsync temporary,rename temporary file",
    ],
    ["fsync-after-rename", "write file", "create temporary,write temporary,rename temporary file,fsync file"],
    [
        "rename-fsync-dirsync",
        "write file",
        "create temporary,write temporary,fsync temporary,rename temporary file,dirsync",
    ],
    ["mkdir-no-dirsync", "", "mkdir directory-#"],
    ["mkdir-dirsync", "", "mkdir directory-#,dirsync"],
    ["unlink-no-dirsync", "write file-#", "unlink file-#"],
    ["unlink-dirsync", "write file-#", "unlink file-#,dirsync"],
    ["ordered-no-fsync", "write first,write second", "write first,write second,fsync second,fsync first"],
    ["ordered-fsync", "write first,write second", "write first,fsync first,write second,fsync second"],
];

/// A mixture of operations, to test the file system alone.
pub(super) const CHURN: Protocol = [
    "churn",
    "write old-#,create log",
    "mkdir directory-#,write16k directory-#/a,append log,fsync log,write directory-#/b,rename directory-#/b b-#,\
     unlink old-#,dirsync,unlink directory-#/a,create c-#,fsync c-#",
];

const NAMES: [&str; PROTOCOLS.len()] = {
    let mut names = [""; PROTOCOLS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PROTOCOLS[at][0];
        at += 1;
    }
    names
};

/// Object behind a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory,
    File(Vec<u8>),
}

/// All existing names.
type Tree = BTreeMap<String, Entry>;

/// Program that follows one protocol.
pub(super) struct Files {
    name: String,
    protocol: &'static Protocol,
    /// Contents of the place before the first step and after each.
    trees: Vec<Tree>,
}

/// Performs a step at `place`. A write is of version `version`.
fn perform(step: &str, place: &Path, round: u64, version: u64) -> io::Result<()> {
    let step = numbered(step, round);
    let mut words = step.split(' ');
    let verb = words.next().unwrap_or_default();
    let name = words.next().unwrap_or_default();
    let path = place.join(name);
    let written = |bytes| content(name, version, bytes);
    let write = || File::options().write(true).create(verb != "append").truncate(false).open(&path);
    match verb {
        "create" => File::create_new(&path).map(drop),
        "write" => write()?.write_all_at(&written(BLOCK), 0),
        "write16k" => write()?.write_all_at(&written(LARGE), 0),
        "append" => {
            let file = write()?;
            let end = file.metadata()?.len();
            file.write_all_at(&written(BLOCK), end)
        }
        "fsync" => File::open(&path)?.sync_all(),
        "rename" => fs::rename(&path, place.join(words.next().unwrap_or_default())),
        "unlink" => fs::remove_file(&path),
        "mkdir" => fs::create_dir(&path),
        "dirsync" => File::open(place)?.sync_all(),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "there is no such step")),
    }
}

fn numbered(text: &str, round: u64) -> String {
    text.replace('#', &round.to_string())
}

/// Returns the content of version `version` of a file: its name and the version, repeated.
fn content(name: &str, version: u64, bytes: usize) -> Vec<u8> {
    format!("{name} {version} ").bytes().cycle().take(bytes).collect()
}

/// Returns the steps of the set-up, each with its round.
fn set_up(protocol: &'static Protocol) -> impl Iterator<Item = (&'static str, u64)> {
    let steps = || protocol[1].split(',').filter(|step| !step.is_empty());
    steps().flat_map(|step| (1..=if step.contains('#') { ROUNDS } else { 1 }).map(move |round| (step, round)))
}

fn steps(protocol: &'static Protocol) -> impl Iterator<Item = &'static str> {
    protocol[2].split(',')
}

/// Reads all names at a place, with their objects.
fn tree(place: &Path) -> io::Result<Tree> {
    let names = fs::read_dir(place)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names: Vec<String> = names.collect::<io::Result<_>>()?;
    found(place, names.iter())
}

impl Files {
    pub(super) const OPTIONS: &[(&str, Values)] = &[("protocol", Values::OneOf(&NAMES))];

    pub(super) fn new(settings: &Settings<'_>) -> Result<Self> {
        let asked = settings.word("protocol");
        let protocol = PROTOCOLS.iter().find(|protocol| protocol[0] == asked);
        let protocol = protocol.ok_or_else(|| Error::usage(format!("there is no protocol `{asked}`")))?;
        Self::doing(settings.typed, protocol)
    }

    /// Creates a program that follows this protocol. Its permitted contents come from a run without a power
    /// cut.
    pub(super) fn doing(name: &str, protocol: &'static Protocol) -> Result<Self> {
        let trees = || {
            let place = tempfile::tempdir()?;
            let place = place.path();
            set_up(protocol).try_for_each(|(step, round)| perform(step, place, round, 0))?;
            let mut trees = vec![tree(place)?];
            for round in 1..=ROUNDS {
                for step in steps(protocol).filter(|step| !step.contains("sync")) {
                    perform(step, place, round, round)?;
                    trees.push(tree(place)?);
                }
            }
            io::Result::Ok(trees)
        };
        let trees = trees().map_err(cannot("do its steps in a temporary directory"))?;
        Ok(Self { name: name.to_owned(), protocol, trees })
    }

    fn perform(&self, step: &str, place: &Path, round: u64, version: u64) -> Result<()> {
        perform(step, place, round, version).map_err(|error| {
            let what = format!("{step}, round {round}, in {}: {error}", place.display());
            Error::failed(&self.name, what)
        })
    }

    /// Judges one name: compares its object with the permitted ones after the step `acknowledged`.
    fn judge(
        &self,
        name: &str,
        found: Option<&Entry>,
        acknowledged: usize,
    ) -> Option<(FailureClass, String)> {
        use FailureClass::{Corrupt, LostAcknowledged, Resurrected};
        let (before, from) = self.trees.split_at(acknowledged);
        if from.iter().any(|tree| tree.get(name) == found) {
            return None;
        }
        let was_before = before.iter().any(|tree| tree.get(name) == found);
        let (class, what) = match (from.first().and_then(|tree| tree.get(name)), found) {
            (None, Some(_)) if before.iter().any(|tree| tree.contains_key(name)) => {
                (Resurrected, "was removed and is back")
            }
            // The file was being created without a guarantee. Bytes beyond the guaranteed ones have none
            // either.
            (None, _) => return None,
            (Some(Entry::File(expected)), Some(Entry::File(found))) if found.starts_with(expected) => {
                return None;
            }
            (Some(_), None) => (LostAcknowledged, "is missing"),
            (Some(_), Some(Entry::File(held))) => match (was_before, held.is_empty()) {
                (true, true) => (LostAcknowledged, "is empty"),
                (true, false) => (LostAcknowledged, "holds an older version"),
                (false, true) => (Corrupt, "is empty, which it never was"),
                (false, false) if held.iter().all(|byte| *byte == 0) => {
                    (Corrupt, "holds zeroes, which it never did")
                }
                (false, false) => (Corrupt, "holds what it was never given"),
            },
            (Some(_), Some(Entry::Directory)) => (Corrupt, "is a directory, which it never was"),
        };
        Some((class, format!("{name} {what}")))
    }

    /// Returns a failure if the second of two files is newer than the first, where the protocol forbids that.
    fn out_of_order(found: &Tree) -> Option<(FailureClass, String)> {
        let version = |name: &str| {
            let Some(Entry::File(held)) = found.get(name) else { return None };
            (0..=ROUNDS).find(|version| content(name, *version, BLOCK) == *held)
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

    fn set_up(&self, place: &Path) -> Result<()> {
        set_up(self.protocol).try_for_each(|(step, round)| self.perform(step, place, round, 0))
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<()> {
        for round in 1..=ROUNDS {
            steps(self.protocol).try_for_each(|step| self.perform(step, place, round, round))?;
            acknowledge(round);
        }
        Ok(())
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome> {
        let names = self.trees.iter().flat_map(Tree::keys).filter(|name| *name != TEMPORARY);
        let names: BTreeSet<&String> = names.collect();
        let found = match found(place, names.iter().copied()) {
            Ok(found) => found,
            Err(error) => return Ok(Outcome::failure(FailureClass::Corrupt, error.to_string())),
        };
        let of_round = (self.trees.len() - 1) / ROUNDS as usize;
        let acknowledged = required.unwrap_or(0).min(ROUNDS) as usize * of_round;
        let failures = names.iter().filter_map(|name| self.judge(name, found.get(*name), acknowledged));
        let rank = |class| FailureClass::ALL.iter().position(|known| *known == class);
        let worst = failures.chain(Self::out_of_order(&found)).min_by_key(|(class, _)| rank(*class));
        Ok(worst.map_or(Outcome::Intact, |(class, words)| {
            Outcome::failure(class, format!("{} rounds were acknowledged: {words}", required.unwrap_or(0)))
        }))
    }
}

/// Reads the objects behind these names at a place.
fn found<'a>(place: &Path, names: impl Iterator<Item = &'a String>) -> io::Result<Tree> {
    let mut found = Tree::new();
    for name in names {
        let entry = match fs::read(place.join(name)) {
            Ok(bytes) => Entry::File(bytes),
            Err(error) if error.kind() == ErrorKind::IsADirectory => Entry::Directory,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(io::Error::new(error.kind(), format!("{name} cannot be read: {error}")));
            }
        };
        found.insert(name.clone(), entry);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    fn subject(protocol: &str) -> std::sync::Arc<dyn Subject> {
        named(&format!("files:{protocol}")).unwrap()
    }

    /// Returns a place after its set-up and `rounds` rounds.
    fn after(protocol: &str, rounds: u64) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let protocol = PROTOCOLS.iter().find(|known| known[0] == protocol).unwrap();
        let steps = (1..=rounds).flat_map(|round| steps(protocol).map(move |step| (step, round, round)));
        for (step, round, version) in set_up(protocol).map(|(step, round)| (step, round, 0)).chain(steps) {
            perform(step, place.path(), round, version).unwrap();
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
