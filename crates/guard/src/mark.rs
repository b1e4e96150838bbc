//! The mark of a file that plumb made: while what the file holds is still plumb's, it is written over without
//! `--overwrite`.
//!
//! The mark is the extended attribute [`MADE`]: the version of plumb, the number of the file's inode, and,
//! once a run that wrote to the file has ended, its length and the time of its last change. A marked file is
//! plumb's if
//!
//! 1. the mark names its inode: a copy that took the attribute along (`cp --preserve=all`, a backup) is
//!    somebody's; and
//! 2. its length and the time of its last change are those in the mark, and its inode has not changed later
//!    than the mark itself changed it: nobody has written to it since; or, where that is not so (the run
//!    was killed, somebody wrote, or moved it), every block is all zero or carries plumb's stamp and the
//!    noise that follows from it, to the last byte.
//!
//! Rule 2 reads the file: holes are skipped, the first block that is not plumb's ends the reading, and a file
//! of more than [`READ_MAX`] of data counts as somebody's. The guard looks twice, the second time mostly from
//! the page cache; the first takes some 3 s where 1.5 GB/s are read, and 30 s at the 150 MB/s of a hard disk.
//! A killed run whose blocks carry no stamp (zeroes excepted: `--zero`, repeated or compressible data, data
//! from a file) leaves a file that needs `--overwrite`.
//!
//! The time of the last change is set by plumb when it marks, to the nanosecond of the real-time clock. The
//! kernel stamps a write with the clock of its last tick, some milliseconds apart, or with a finer one that
//! has gone on by then: so a write by somebody within the tick in which plumb marks has another time. Where
//! the file system keeps times coarser than 1 us, that does not hold, and the mark is left without length and
//! time: rule 2 then always reads. The time of the last change of the inode (ctime), which nobody can set, is
//! within [`MARKING_NS`] of it, or plumb marks again; a later one is a write after which somebody set the
//! time of the last change back (a volume whose program keeps its times, `touch -r`), a new name or new
//! permissions.
//!
//! Where the file system has no extended attributes for users (vfat, older tmpfs, some network file systems),
//! the stamp at the start of the first block stands for the mark, and rule 2 reads the rest. Where there
//! could be a mark and is none, a stamp does not count: it may be a copy that somebody keeps.
//!
//! # Limitations
//! - Whoever sets the length and the time of the last change back to what they were (`touch -d`) within
//!   [`MARKING_NS`] is not seen.
//! - A write through a mapping that was already dirty when plumb marked does not change the time; nor is a
//!   write by somebody else during a run told from the run's own.
//! - Another file of plumb's own blocks copied over the file counts as plumb's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use plumb_block::{Bytes, Stamp};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

use crate::signature::{FileSource, Source as _};

/// The extended attribute. Its value, with a space between each: the version of plumb that marked the file,
/// the number of its inode, and if known its length in bytes and the time of its last change in seconds and
/// nanoseconds.
pub const MADE: &str = "user.plumb.made";

/// The most data that is read of a file to find out whether it is all plumb's.
const READ_MAX: Bytes = Bytes::gib(4);
/// The length of one read.
const PIECE: usize = 1 << 20;
/// The block lengths that are recognised: the logical blocks of files and disks, the larger one first.
const BLOCKS: [usize; 2] = [4096, 512];
/// Longest time from the one in a mark to the one at which the kernel wrote it, in nanoseconds: a tick of the
/// kernel's clock and what two system calls take.
const MARKING_NS: i128 = 20_000_000;
/// Number of times that a file is marked, until the kernel is fast enough once.
const MARKINGS: u32 = 5;
/// The coarsest times that tell a write by somebody else from plumb's own, in nanoseconds.
const GRAIN_NS: i128 = 1_000;

/// Marks an open file as made by plumb. Its contents say whether they are plumb's until [`mark_as_left`]
/// does. Returns false where the file system keeps no such marks.
///
/// # Errors
/// Fails as fsetxattr(2).
pub fn mark_as_made(file: impl AsFd) -> io::Result<bool> {
    let file = file.as_fd();
    set(file, &Mark { inode: rustix::fs::fstat(file)?.st_ino, left: None })
}

/// Marks an open file, which the caller knows to hold plumb's own data, as left by plumb with its present
/// length and at the present time, which becomes the time of its last change. Returns false where the file
/// system keeps no such marks.
///
/// # Errors
/// Fails as futimens(2) and fsetxattr(2).
pub fn mark_as_left(file: impl AsFd) -> io::Result<bool> {
    let file = file.as_fd();
    for _ in 0..MARKINGS {
        let now = rustix::time::clock_gettime(ClockId::Realtime);
        let unchanged = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        rustix::fs::futimens(file, &Timestamps { last_access: unchanged, last_modification: now })?;
        let stat = rustix::fs::fstat(file)?;
        let left = Left::from_stat(&stat);
        let is_fine = (left.changed_ns - nanoseconds(now.tv_sec, now.tv_nsec)).abs() < GRAIN_NS;
        let is_kept = set(file, &Mark { inode: stat.st_ino, left: is_fine.then_some(left) })?;
        if !is_kept || !is_fine || left.is_still(&rustix::fs::fstat(file)?) {
            return Ok(is_kept);
        }
    }
    mark_as_made(file)
}

/// Marks the file at `path` as left by plumb, if plumb made it: for a file that held somebody's data with
/// plumb's knowledge and does not any more, such as the log of a cache that was detached. Does nothing to
/// anything else; a mark that cannot be set stays as it was.
pub fn mark_as_free(path: &str) {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let is_file = rustix::fs::lstat(path)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    let opened = is_file.then(|| rustix::fs::open(path, flags, Mode::empty()));
    if let Some(Ok(file)) = opened
        && is_marked(file.as_fd())
    {
        drop(mark_as_left(file));
    }
}

fn is_marked(file: BorrowedFd<'_>) -> bool {
    let mut text = [0; 128];
    let mark =
        rustix::fs::fgetxattr(file, MADE, &mut text).ok().and_then(|length| Mark::parse(&text[..length]));
    mark.is_some_and(|mark| rustix::fs::fstat(file).is_ok_and(|stat| stat.st_ino == mark.inode))
}

/// The contents of the attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    left: Option<Left>,
}

/// The state in which plumb left a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    /// Length in bytes.
    size: i64,
    /// The time of its last change, in nanoseconds since 1970.
    changed_ns: i128,
}

impl Left {
    fn from_stat(stat: &Stat) -> Self {
        Self { size: stat.st_size, changed_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64) }
    }

    /// Returns whether a file is as it was left, and its inode has not changed since it was marked.
    fn is_still(self, stat: &Stat) -> bool {
        let inode_changed_ns = nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64);
        self == Self::from_stat(stat) && (inode_changed_ns - self.changed_ns).abs() < MARKING_NS
    }
}

/// Returns a time of two parts in nanoseconds.
pub(crate) fn nanoseconds(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

impl Mark {
    fn to_text(self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match self.left {
            None => format!("{version} {}", self.inode),
            Some(left) => format!("{version} {} {} {}", self.inode, left.size, left.changed_ns),
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(text).ok()?.split(' ');
        let _version = words.next()?;
        let inode = words.next()?.parse().ok()?;
        let left = match (words.next(), words.next()) {
            (None, _) => None,
            (Some(size), changed) => {
                Some(Left { size: size.parse().ok()?, changed_ns: changed?.parse().ok()? })
            }
        };
        words.next().is_none().then_some(Self { inode, left })
    }
}

fn set(file: BorrowedFd<'_>, mark: &Mark) -> io::Result<bool> {
    match rustix::fs::fsetxattr(file, MADE, mark.to_text().as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// The owner of a file, by its mark and its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// plumb made it, and what it holds is plumb's.
    Plumb,
    /// plumb made it, and somebody has written to it since, or that cannot be excluded.
    PlumbThenOthers,
    /// Somebody else, or that cannot be found out.
    Others,
}

/// Finds out who a file belongs to. Reads the file where its mark does not say.
pub fn maker(file: BorrowedFd<'_>) -> Maker {
    let Ok(stat) = rustix::fs::fstat(file) else { return Maker::Others };
    let mut text = [0; 128];
    let mark = match rustix::fs::fgetxattr(file, MADE, &mut text) {
        Ok(length) => Mark::parse(&text[..length]).filter(|mark| mark.inode == stat.st_ino),
        Err(Errno::OPNOTSUPP) if has_stamp(file) => Some(Mark { inode: stat.st_ino, left: None }),
        Err(_) => None,
    };
    match mark {
        None => Maker::Others,
        Some(mark) if mark.left.is_some_and(|left| left.is_still(&stat)) => Maker::Plumb,
        Some(_) if is_all_own(file, stat.st_size.unsigned_abs()) => Maker::Plumb,
        Some(_) => Maker::PlumbThenOthers,
    }
}

fn has_stamp(file: BorrowedFd<'_>) -> bool {
    let mut block = [0; 512];
    rustix::io::pread(file, &mut block, 0).is_ok_and(|read| Stamp::read(&block[..read]).is_some())
}

/// Returns whether every block of a file of `size` bytes is a hole, all zero, or one that plumb wrote. A file
/// that cannot be read, or has too much data, is not.
fn is_all_own(file: BorrowedFd<'_>, size: u64) -> bool {
    let (source, mut piece) = (FileSource { file, size }, vec![0; PIECE]);
    let (mut at, mut left) = (0, READ_MAX.0);
    while at < size {
        // Whole pieces, so that blocks begin where they began when they were written.
        at = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data - data % PIECE as u64,
            Err(Errno::NXIO) => return true,
            // The file system does not tell holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(_) => return false,
        };
        let Ok(read) = source.read_at(at, &mut piece) else { return false };
        left = match left.checked_sub(read as u64) {
            Some(left) if read > 0 && is_own(&piece[..read]) => left,
            _ => return false,
        };
        at += read as u64;
    }
    true
}

/// Returns whether bytes that begin at a multiple of [`BLOCKS`] are blocks of plumb's own.
fn is_own(bytes: &[u8]) -> bool {
    let [large, small] = BLOCKS;
    bytes.chunks(large).all(|block| is_own_block(block) || block.chunks(small).all(is_own_block))
}

fn is_own_block(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0) || Stamp::read(block).is_some_and(|stamp| stamp.is_whole(block))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::io::{Seek as _, Write as _};
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;
    use plumb_block::{Lba, Pattern};

    fn blocks(length: usize, count: usize) -> Vec<u8> {
        let mut blocks = vec![0; length * count];
        Pattern { seed: 3, lba: Lba(0), generation: 1 }.fill(length, &mut blocks);
        blocks
    }

    /// Returns a marked file of these contents; `None`, said aloud, where marks are not kept.
    fn marked(contents: &[u8]) -> Option<File> {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(contents).unwrap();
        if mark_as_made(&file).unwrap() {
            return Some(file);
        }
        plumb_testkit::skip("the file system of the sources keeps no extended attributes");
        None
    }

    #[test]
    fn a_stamp_at_the_start_is_told_from_other_bytes() {
        let block = blocks(512, 8);
        let file = tempfile::tempfile().unwrap();
        assert!(!has_stamp(file.as_fd()));
        file.write_all_at(&block, 512).unwrap();
        assert!(!has_stamp(file.as_fd()), "not at the start");
        file.write_all_at(&block, 0).unwrap();
        assert!(has_stamp(file.as_fd()));
    }

    #[test]
    fn a_stamp_is_no_mark_where_marks_are_kept_nor_is_a_mark_of_another_inode() {
        let Some(file) = marked(&blocks(512, 1)) else { return };
        assert_eq!(maker(file.as_fd()), Maker::Plumb);
        let copy = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        copy.write_all_at(&blocks(512, 1), 0).unwrap();
        assert_eq!(maker(copy.as_fd()), Maker::Others);
        let mut mark = [0; 64];
        let length = rustix::fs::fgetxattr(&file, MADE, &mut mark).unwrap();
        rustix::fs::fsetxattr(&copy, MADE, &mark[..length], XattrFlags::empty()).unwrap();
        assert_eq!(maker(copy.as_fd()), Maker::Others);
        let inode = rustix::fs::fstat(&file).unwrap().st_ino;
        for foreign in ["", "0.1.0", "0.1.0 x", " 18446744073709551615", &format!("0.1.0 {inode} 512")] {
            rustix::fs::fsetxattr(&file, MADE, foreign.as_bytes(), XattrFlags::empty()).unwrap();
            assert_eq!(maker(file.as_fd()), Maker::Others, "{foreign}");
        }
    }

    #[test]
    fn length_and_time_vouch_for_contents_until_somebody_writes() {
        let theirs = vec![7; 8192];
        let Some(file) = marked(&theirs) else { return };
        assert_eq!(maker(file.as_fd()), Maker::PlumbThenOthers, "neither stamped nor vouched for");
        assert!(mark_as_left(&file).unwrap());
        assert_eq!(maker(file.as_fd()), Maker::Plumb);
        // Within the same tick of the kernel's clock, as like as not.
        file.write_all_at(&[8; 512], 0).unwrap();
        assert_eq!(maker(file.as_fd()), Maker::PlumbThenOthers, "written in place");
        assert!(mark_as_left(&file).unwrap());
        let left = file.metadata().unwrap().modified().unwrap();
        file.set_len(16384).unwrap();
        file.set_times(FileTimes::new().set_modified(left)).unwrap();
        assert_eq!(maker(file.as_fd()), Maker::PlumbThenOthers, "another length with the old time");
    }

    #[test]
    fn a_time_that_somebody_set_back_vouches_for_nothing() {
        let theirs = vec![7; 8192];
        let Some(file) = marked(&theirs) else { return };
        // Written at once, and set back: the time of the last change of the inode cannot be set.
        assert!(mark_as_left(&file).unwrap());
        let left = file.metadata().unwrap();
        while file.metadata().unwrap().ctime_nsec() == left.ctime_nsec()
            || maker(file.as_fd()) == Maker::Plumb
        {
            file.write_all_at(&[8; 512], 0).unwrap();
            file.set_times(FileTimes::new().set_modified(left.modified().unwrap())).unwrap();
        }
        // Marked an hour ago, and changed now.
        let hour_ago = left.modified().unwrap() - std::time::Duration::from_secs(3600);
        file.set_times(FileTimes::new().set_modified(hour_ago)).unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        set(file.as_fd(), &Mark { inode: stat.st_ino, left: Some(Left::from_stat(&stat)) }).unwrap();
        assert_eq!(maker(file.as_fd()), Maker::PlumbThenOthers);
        file.write_all_at(&blocks(4096, 2), 0).unwrap();
        file.set_times(FileTimes::new().set_modified(hour_ago)).unwrap();
        assert_eq!(maker(file.as_fd()), Maker::Plumb, "its own blocks vouch for a file that was moved");
    }

    #[test]
    fn a_file_that_a_killed_run_left_is_known_by_each_of_its_blocks() {
        let zeroes_and_blocks = [blocks(512, 9), vec![0; 4096], blocks(4096, 2), vec![0; 100]];
        let mut contents = zeroes_and_blocks[0].clone();
        contents.resize(8192, 0);
        zeroes_and_blocks[1..].iter().for_each(|more| contents.extend(more));
        let Some(mut file) = marked(&contents) else { return };
        assert_eq!(maker(file.as_fd()), Maker::Plumb);
        // Behind a hole, and across the pieces that are read.
        let far = 3 * PIECE as u64 + 8192;
        file.write_all_at(&blocks(4096, 600), far).unwrap();
        assert_eq!(maker(file.as_fd()), Maker::Plumb);
        let length = file.seek(io::SeekFrom::End(0)).unwrap();
        for (at, what) in
            [(4000, "in a stamped block"), (length - 1, "the last byte"), (far - 1, "in a hole")]
        {
            let mut before = [0];
            file.read_exact_at(&mut before, at).unwrap();
            file.write_all_at(&[before[0] ^ 1], at).unwrap();
            assert_eq!(maker(file.as_fd()), Maker::PlumbThenOthers, "{what}");
            file.write_all_at(&before, at).unwrap();
        }
        assert_eq!(maker(file.as_fd()), Maker::Plumb);
    }
}
