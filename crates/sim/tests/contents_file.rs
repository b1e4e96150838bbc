//! Tests of contents in a file: exactly the durable data is in the file, even if the drive is dropped without
//! notice; failures of the file become permanent errors.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use plumb_block::{Bytes, Errno, ExtentState, Lba, LbaRange, Op, Pattern, Stamp};
use plumb_sim::CommandId;
use plumb_sim::contents::{Backing, Contents, Damage, Data, Promise, Shape};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

const BLOCKS: u64 = 4096;
const WRITE: Op = Op::Write { fua: false };

fn contents(file: File, promise: Promise) -> Contents {
    let shape = Shape { logical_block: Bytes(512), blocks: BLOCKS };
    Contents::new(shape, promise, Backing::File(file)).unwrap()
}

fn empty() -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(BLOCKS * 512).unwrap();
    file
}

fn done(contents: &mut Contents, id: u64, op: Op, range: LbaRange) {
    let data = Data::Pattern(Pattern { seed: 3, lba: range.lba, generation: id });
    contents.submit(CommandId(id), op, range, data);
    contents.complete(CommandId(id)).unwrap();
}

/// Returns the generation of a block in the file.
fn in_file(file: &File, lba: u64) -> Option<u64> {
    let mut bytes = [0; 512];
    file.read_exact_at(&mut bytes, lba * 512).unwrap();
    let stamp = Stamp::read(&bytes)?;
    assert!(stamp.is_whole(&bytes) && stamp.lba == Lba(lba));
    Some(stamp.generation)
}

fn visible(contents: &Contents, lba: u64) -> Option<u64> {
    let mut bytes = [1; 512];
    contents.read(LbaRange::new(Lba(lba), 1), &mut bytes).unwrap();
    Stamp::read(&bytes).map(|stamp| stamp.generation)
}

#[test]
fn what_is_durable_and_nothing_else_is_in_the_file() {
    let file = empty();
    let watched = file.try_clone().unwrap();
    let mut contents = contents(file, Promise::VOLATILE);
    let range = LbaRange::new(Lba(13), 20);
    done(&mut contents, 1, WRITE, range);
    assert_eq!((visible(&contents, 20), in_file(&watched, 20)), (Some(1), None));
    done(&mut contents, 2, Op::Flush, LbaRange::EMPTY);
    assert_eq!((in_file(&watched, 13), in_file(&watched, 32)), (Some(1), Some(1)));
    assert_eq!((in_file(&watched, 12), in_file(&watched, 33)), (None, None));
    done(&mut contents, 3, Op::Write { fua: true }, LbaRange::new(Lba(14), 1));
    done(&mut contents, 4, WRITE, LbaRange::new(Lba(15), 1));
    contents.persist(CommandId(4));
    assert_eq!((in_file(&watched, 14), in_file(&watched, 15)), (Some(3), Some(4)));
    done(&mut contents, 5, Op::Discard, LbaRange::new(Lba(0), BLOCKS));
    assert_eq!((visible(&contents, 14), in_file(&watched, 14)), (None, Some(3)));
    done(&mut contents, 6, Op::Flush, LbaRange::EMPTY);
    assert_eq!(in_file(&watched, 14), None);
    contents.sync_backing().unwrap();
}

/// Tests that a flush does not wait for commands in flight, and that the data it covers is in the file when
/// it is answered.
#[test]
fn what_is_durable_is_in_the_file_beside_a_write_in_flight() {
    for (seed, is_discarded) in (0..8).flat_map(|seed| [(seed, false), (seed, true)]) {
        let file = empty();
        let watched = file.try_clone().unwrap();
        let mut contents = contents(file, Promise::VOLATILE).with_seed(seed);
        done(&mut contents, 1, Op::Write { fua: true }, LbaRange::new(Lba(8), 8));
        let data = Data::Pattern(Pattern { seed: 3, lba: Lba(10), generation: 2 });
        let op = if is_discarded { Op::Discard } else { WRITE };
        let expected = if is_discarded { None } else { Some(2) };
        contents.submit(CommandId(2), op, LbaRange::new(Lba(10), 4), data);
        contents.submit(CommandId(3), WRITE, LbaRange::new(Lba(8), 8), data);
        contents.complete(CommandId(2)).unwrap();
        done(&mut contents, 4, Op::Flush, LbaRange::EMPTY);
        let found: Vec<_> = (8..16).map(|lba| in_file(&watched, lba)).collect();
        let durable = [Some(1), Some(1), expected, expected, expected, expected, Some(1), Some(1)];
        assert_eq!(found, durable, "seed {seed}");
    }
}

/// Environment variable that gives the backing file to the child that will be killed.
const KILLED_WITH: &str = "PLUMB_TEST_BACKING_OF_A_KILLED_DRIVE";

#[test]
fn what_was_flushed_is_there_after_a_sigkill() {
    if let Some(path) = std::env::var_os(KILLED_WITH) {
        return be_killed(Path::new(&path));
    }
    let backing = tempfile::NamedTempFile::new().unwrap();
    backing.as_file().set_len(BLOCKS * 512).unwrap();
    let name = "contents_file::what_was_flushed_is_there_after_a_sigkill";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(KILLED_WITH, backing.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("the flush is answered")), "the child ended early");
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    let found: Vec<_> = (0..600).map(|lba| in_file(backing.as_file(), lba)).collect();
    let expected: Vec<_> = (0..600).map(|lba| (lba < 500).then_some(lba + 1)).collect();
    assert_eq!(found, expected);
}

/// Writes and flushes, reports that, writes more without a flush, and waits to be killed.
fn be_killed(path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut contents = contents(file, Promise::VOLATILE);
    for lba in 0..500 {
        done(&mut contents, lba + 1, WRITE, LbaRange::new(Lba(lba), 1));
    }
    done(&mut contents, 1000, Op::Flush, LbaRange::EMPTY);
    for lba in 0..600 {
        done(&mut contents, 2000 + lba, WRITE, LbaRange::new(Lba(lba), 1));
    }
    println!("the flush is answered");
    // Until it is killed, or its parent has ended.
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn a_drive_that_is_gone_without_a_word_left_what_was_durable() {
    let file = empty();
    let again = file.try_clone().unwrap();
    let mut first = contents(file, Promise::VOLATILE);
    done(&mut first, 1, WRITE, LbaRange::new(Lba(8), 8));
    done(&mut first, 2, Op::Flush, LbaRange::EMPTY);
    done(&mut first, 3, WRITE, LbaRange::new(Lba(8), 2));
    done(&mut first, 4, WRITE, LbaRange::new(Lba(100), 2));
    drop(first);
    let second = contents(again, Promise::VOLATILE);
    assert_eq!((visible(&second, 8), visible(&second, 15), visible(&second, 100)), (Some(1), Some(1), None));
    let written: u64 = second
        .extents(LbaRange::new(Lba(0), BLOCKS))
        .iter()
        .filter(|extent| extent.state == ExtentState::Written)
        .map(|extent| extent.range.nlb)
        .sum();
    assert!((8..BLOCKS).contains(&written), "{written} blocks are written: holes are not seen");
}

#[test]
fn a_cut_leaves_in_the_file_what_is_read_afterwards() {
    for seed in 0..50 {
        let file = empty();
        let watched = file.try_clone().unwrap();
        let mut contents = contents(file, Promise::VOLATILE);
        for id in 1..100 {
            done(&mut contents, id, WRITE, LbaRange::new(Lba(id * 7 % 200), id % 11 + 1));
        }
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        contents.cut(&mut chance, &Damage { unreadable: 0.0, ..Damage::LEGAL });
        for lba in 0..220 {
            assert_eq!(visible(&contents, lba), in_file(&watched, lba), "block {lba}, seed {seed}");
        }
    }
}

#[test]
fn a_failure_of_the_file_comes_out_and_stays() {
    let named = tempfile::NamedTempFile::new().unwrap();
    let read_only = OpenOptions::new().read(true).open(named.path()).unwrap();
    let mut contents = contents(read_only, Promise::DURABLE);
    let range = LbaRange::new(Lba(0), 1);
    let data = Data::Pattern(Pattern { seed: 1, lba: Lba(0), generation: 1 });
    contents.submit(CommandId(1), WRITE, range, data);
    let error = contents.complete(CommandId(1)).unwrap_err();
    assert_eq!((error.operation, error.errno), ("write", Errno(9)), "EBADF: the file cannot be written");
    contents.submit(CommandId(2), Op::Flush, LbaRange::EMPTY, Data::None);
    assert_eq!(contents.complete(CommandId(2)).unwrap_err(), error, "the first failure stays");
    assert!(contents.sync_backing().is_err());
    assert!(contents.read(range, &mut [0; 512]).is_err());
    assert_eq!(contents.backing_failed(), Some(error));
}
