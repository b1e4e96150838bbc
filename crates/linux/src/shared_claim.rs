//! The exclusive claim on a block device (`O_EXCL`) that several processes hold together, where each uses a
//! part of the device.
//!
//! The kernel grants the claim to one open file description, and it lasts until the last descriptor of that
//! is closed. So whoever comes later takes a copy of the descriptor from one who has it (pidfd_getfd(2),
//! Linux 5.6), and mkfs(8) and mount(8) are refused for as long as one of them lives. Each of them has the
//! node locked by flock(2) with a descriptor of its own, by which /proc/locks names its process; the claim
//! itself is known by a lock on a byte that no device has.
//!
//! # Limitations
//! A process of another user needs CAP_SYS_PTRACE to take the copy, and so does one of the same user where
//! Yama restricts ptrace(2).

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::inventory::{FileId, Lock};
use crate::range_lock::{self, LockKind};

/// Byte whose lock marks the descriptor of a claim.
const MARK: Range<u64> = i64::MAX as u64 - 1..i64::MAX as u64;

/// Marks `claim`, a descriptor that was opened with `O_EXCL`, as one that others may take a copy of.
///
/// # Errors
/// Fails as fcntl(2).
pub fn offer(claim: impl AsFd) -> io::Result<()> {
    range_lock::lock(claim, MARK, LockKind::Shared).map(drop)
}

/// Returns a copy of the claim that another process, or this one, offers for the node that `node` is open
/// on; `None` if nobody does.
///
/// # Errors
/// Fails as pidfd_getfd(2), if somebody does and does not let it be copied.
pub fn copy(node: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let stat = rustix::fs::fstat(node)?;
    let file = FileId { device: stat.st_dev, inode: stat.st_ino };
    let locks = std::fs::read_to_string("/proc/locks")?;
    let holders = locks.lines().filter_map(Lock::parse).filter(|lock| lock.file == file);
    let mut refused = None;
    for process in holders.filter_map(|lock| lock.process?.parse().ok()).filter_map(Pid::from_raw) {
        for number in numbers(process, file) {
            let copied = pidfd_open(process, PidfdFlags::empty())
                .and_then(|pidfd| pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()));
            match copied {
                // The number may be that of something else by now.
                Ok(copy) => {
                    let stat = rustix::fs::fstat(&copy)?;
                    if (FileId { device: stat.st_dev, inode: stat.st_ino }) == file {
                        return Ok(Some(copy));
                    }
                }
                Err(rustix::io::Errno::SRCH | rustix::io::Errno::BADF) => {}
                Err(errno) => refused = Some(errno),
            }
        }
    }
    refused.map_or(Ok(None), |errno| Err(errno.into()))
}

/// Returns the numbers of the descriptors of `process` that are a claim on `file`.
fn numbers(process: Pid, file: FileId) -> Vec<i32> {
    let directory = format!("/proc/{}/fdinfo", process.as_raw_nonzero());
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_claim = |text: &str| {
        let locks = text.lines().filter_map(|line| Lock::parse(line.strip_prefix("lock:")?.trim_start()));
        locks.into_iter().any(|lock| lock.file == file && lock.bytes == MARK)
    };
    let claims =
        entries.filter(|entry| std::fs::read_to_string(entry.path()).is_ok_and(|text| is_claim(&text)));
    claims.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
