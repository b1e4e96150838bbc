//! Mark of a file created by plumb. As long as the contents are plumb's own, the file may be overwritten
//! without `--overwrite`.
//!
//! The mark is the extended attribute [`MADE`]: the version of plumb, the inode number of the file, and,
//! after the end of a run that wrote to it, its length and modification time. A marked file is plumb's own if
//!
//! 1. the inode number in the mark is that of the file. A copy with the attribute (`cp --preserve=all`, a
//!    backup) belongs to the user; and
//! 2. its length and modification time are those in the mark, and its inode has not changed since it was
//!    marked; otherwise (the run was killed, the file was written or moved), if every block is all zero or
//!    contains plumb's stamp and the noise derived from it, to the last byte.
//!
//! Rule 2 may read the file: it skips holes and stops at the first foreign block; a file of more than
//! [`READ_MAX`] of data counts as foreign. The guard looks twice, the second time mostly from the page cache.
//! The first look takes up to 3 s at 1.5 GB/s, and 30 s at the 150 MB/s of a hard disk. If a run with
//! unstamped blocks (repeated or compressible data, or data from a file; not `--zero`) is killed, its file
//! needs `--overwrite`.
//!
//! Marking sets the modification time to the nanosecond of the real-time clock. The kernel stamps writes with
//! the time of its last tick, some milliseconds earlier, or with a fine-grained clock that has advanced by
//! then. So even a foreign write within the same tick has a different time. If the file system stores times
//! coarser than 1 us, this does not hold; the mark then omits length and time, and rule 2 always reads. The
//! change time of the inode (ctime), which programs cannot set, is within [`MARKING_NS`] of the modification
//! time, or plumb marks again. A later ctime means a write whose modification time was set back (a program
//! that preserves times, `touch -r`), a rename or new permissions.
//!
//! On file systems without user attributes (vfat, older tmpfs, some network file systems) the stamp at the
//! start of the first block takes the place of the mark, and rule 2 reads the rest. On file systems with
//! attributes a stamp without a mark does not count: the file may be a copy that the user keeps.
//!
//! # Limitations
//! - Setting length and modification time back (`touch -d`) within [`MARKING_NS`] is not detected.
//! - A write through a mapping that was already dirty when plumb marked the file does not change its time. A
//!   foreign write during a run cannot be distinguished from the run's own.
//! - Other blocks written by plumb and copied over the file count as plumb's own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use plumb_block::{Bytes, Stamp};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

use crate::signature::{FileSource, Source as _};

/// Extended attribute of a file created by plumb. Value, separated by spaces: version of plumb, inode number,
/// and if known the length in bytes and the modification time in seconds and nanoseconds.
pub const MADE: &str = "user.plumb.made";

/// Maximum amount of data read to check that a file is plumb's own.
const READ_MAX: Bytes = Bytes::gib(4);
/// Length of one read, in bytes.
const PIECE: usize = 1 << 20;
/// Recognised block lengths in bytes, the larger first: the logical blocks of files and disks.
const BLOCKS: [usize; 2] = [4096, 512];
/// Maximum difference between the modification time in a mark and the ctime, in nanoseconds: a tick of the
/// kernel and two system calls.
const MARKING_NS: i128 = 20_000_000;
/// Maximum attempts to mark a file within [`MARKING_NS`].
const MARKINGS: u32 = 5;
/// Coarsest resolution of times that distinguishes foreign writes from plumb's, in nanoseconds.
const GRAIN_NS: i128 = 1_000;

/// Marks an open file as created by plumb, without length and time, so that its contents are checked until
/// [`mark_as_left`] marks it. Returns false if the file system has no user attributes.
///
/// # Errors
/// Fails as fsetxattr(2).
pub fn mark_as_made(file: impl AsFd) -> io::Result<bool> {
    let file = file.as_fd();
    set(file, &Mark { inode: rustix::fs::fstat(file)?.st_ino, left: None })
}

/// Marks an open file, which must hold plumb's own data, with its present length and time, and sets its
/// modification time to that time. Returns false if the file system has no user attributes.
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

/// Marks the file at `path` as left by plumb, if plumb created it. For a file whose user data is no longer
/// needed, such as the log of a detached cache. Ignores other files; if the mark cannot be set, the old one
/// stays.
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

/// Contents of the attribute [`MADE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    left: Option<Left>,
}

/// State of a file at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    /// Length in bytes.
    size: i64,
    /// Modification time, in nanoseconds since 1970.
    changed_ns: i128,
}

impl Left {
    fn from_stat(stat: &Stat) -> Self {
        Self { size: stat.st_size, changed_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64) }
    }

    /// Returns true if a file is unchanged since it was marked.
    fn is_still(self, stat: &Stat) -> bool {
        let inode_changed_ns = nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64);
        self == Self::from_stat(stat) && (inode_changed_ns - self.changed_ns).abs() < MARKING_NS
    }
}

/// Returns a time in seconds and nanoseconds as nanoseconds.
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

/// Owner of a file's contents, by its mark and its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// Created by plumb, with plumb's own contents.
    Plumb,
    /// Created by plumb, and since written by others, as far as known.
    PlumbThenOthers,
    /// Created by others, or unknown.
    Others,
}

/// Determines the owner of a file. Reads the contents if the mark does not decide.
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

/// Returns true if every block of a file of `size` bytes is a hole, all zero, or written by plumb. False if
/// the file cannot be read or has more than [`READ_MAX`] of data.
fn is_all_own(file: BorrowedFd<'_>, size: u64) -> bool {
    let (source, mut piece) = (FileSource { file, size }, vec![0; PIECE]);
    let (mut at, mut left) = (0, READ_MAX.0);
    while at < size {
        // Round down to whole pieces, so that blocks keep the alignment with which they were written.
        at = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data - data % PIECE as u64,
            Err(Errno::NXIO) => return true,
            // The file system does not report holes.
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

/// Returns true if `bytes`, which start at a multiple of [`BLOCKS`], consist of plumb's own blocks.
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

    /// Returns a marked file with these contents. `None`, with a message, if the file system has no user
    /// attributes.
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
        // Likely within the same tick of the kernel's clock.
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
        // Written at once with the time set back: the ctime reveals the write.
        assert!(mark_as_left(&file).unwrap());
        let left = file.metadata().unwrap();
        while file.metadata().unwrap().ctime_nsec() == left.ctime_nsec()
            || maker(file.as_fd()) == Maker::Plumb
        {
            file.write_all_at(&[8; 512], 0).unwrap();
            file.set_times(FileTimes::new().set_modified(left.modified().unwrap())).unwrap();
        }
        // Marked an hour ago and changed now.
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
        // Behind a hole, and across pieces.
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
