//! How a file says that plumb made it, so that it may be written over without being asked.
//!
//! The mark is the extended attribute [`MADE`]. Where the file system has none for users (vfat, older tmpfs, some
//! network file systems), the pattern stamp at the start of the first block stands for it: bytes that only plumb
//! writes. Where there could be a mark and is none, a stamp does not count: it may be a copy that somebody keeps. A
//! copy that took the mark along (`cp --preserve=all`, a backup) is somebody's too: the mark names its inode.
//!
//! Limitation: a file that was made here and that somebody wrote over in place keeps its mark; what is recognised in it
//! (a file system, a partition table) still protects it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use plumb_block::Stamp;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// The extended attribute; its value is the version of plumb that made the file, and the number of its inode.
pub const MADE: &str = "user.plumb.made";

/// Marks an open file as made by plumb. False where the file system keeps no such marks.
///
/// # Errors
/// As fsetxattr(2).
pub fn mark_as_made(file: impl AsFd) -> io::Result<bool> {
    let mark = format!("{} {}", env!("CARGO_PKG_VERSION"), rustix::fs::fstat(&file)?.st_ino);
    match rustix::fs::fsetxattr(file, MADE, mark.as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether plumb made the file. What cannot be found out counts as no.
pub(crate) fn is_made(file: BorrowedFd<'_>) -> bool {
    let mut mark = [0; 64];
    match rustix::fs::fgetxattr(file, MADE, &mut mark) {
        Ok(length) => inode_of(&mark[..length])
            .is_some_and(|inode| rustix::fs::fstat(file).is_ok_and(|stat| stat.st_ino == inode)),
        Err(Errno::OPNOTSUPP) => has_stamp(file),
        Err(_) => false,
    }
}

/// The inode that a mark names.
fn inode_of(mark: &[u8]) -> Option<u64> {
    str::from_utf8(mark).ok()?.split_once(' ')?.1.parse().ok()
}

fn has_stamp(file: BorrowedFd<'_>) -> bool {
    let mut block = [0; 512];
    rustix::io::pread(file, &mut block, 0).is_ok_and(|read| Stamp::read(&block[..read]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_block::{Lba, Pattern};

    #[test]
    fn a_stamp_at_the_start_is_told_from_other_bytes() {
        let mut block = vec![0; 4096];
        Pattern { seed: 3, lba: Lba(0), generation: 1 }.fill(512, &mut block);
        let file = tempfile::tempfile().unwrap();
        assert!(!has_stamp(file.as_fd()));
        rustix::io::pwrite(&file, &block, 512).unwrap();
        assert!(!has_stamp(file.as_fd()), "not at the start");
        rustix::io::pwrite(&file, &block, 0).unwrap();
        assert!(has_stamp(file.as_fd()));
    }

    #[test]
    fn a_marked_file_is_known_and_a_stamp_is_no_mark_where_marks_are_kept() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut block = vec![0; 512];
        Pattern { seed: 3, lba: Lba(0), generation: 1 }.fill(512, &mut block);
        rustix::io::pwrite(&file, &block, 0).unwrap();
        let unmarked = is_made(file.as_fd());
        if !mark_as_made(&file).unwrap() {
            return plumb_testkit::skip("the file system of the sources keeps no extended attributes");
        }
        assert!(!unmarked);
        assert!(is_made(file.as_fd()));
        // A copy takes the mark along, but not the inode.
        let mut mark = [0; 64];
        let length = rustix::fs::fgetxattr(&file, MADE, &mut mark).unwrap();
        let copy = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        rustix::fs::fsetxattr(&copy, MADE, &mark[..length], XattrFlags::empty()).unwrap();
        assert!(!is_made(copy.as_fd()));
        for foreign in ["", "0.1.0", "0.1.0 x", " 18446744073709551616"] {
            rustix::fs::fsetxattr(&file, MADE, foreign.as_bytes(), XattrFlags::empty()).unwrap();
            assert!(!is_made(file.as_fd()), "{foreign}");
        }
    }
}
