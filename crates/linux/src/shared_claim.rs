//! An exclusive claim on a block device (`O_EXCL`) shared by several processes, each of which uses a part of
//! the device.
//!
//! The kernel grants the claim to one open file description until its last descriptor is closed. A later
//! process copies the descriptor from a holder (pidfd_getfd(2), Linux 5.6). mkfs(8) and mount(8) are refused
//! as long as one holder lives. Each holder also locks the node by flock(2) with its own descriptor, through
//! which /proc/locks reveals the process. A lock on a byte beyond any device marks the claim itself.
//!
//! # Limitations
//! Copying requires CAP_SYS_PTRACE for a process of another user, and also for one of the same user if Yama
//! restricts ptrace(2).

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::inventory::{FileId, Lock};
use crate::range_lock::{self, LockKind};

/// Byte whose lock marks the descriptor of a claim.
const MARK: Range<u64> = i64::MAX as u64 - 1..i64::MAX as u64;

/// Marks `claim`, a descriptor opened with `O_EXCL`, as one that other processes may copy.
///
/// # Errors
/// Fails as fcntl(2) does.
pub fn offer(claim: impl AsFd) -> io::Result<()> {
    range_lock::lock(claim, MARK, LockKind::Shared).map(drop)
}

/// Copies the claim that a process, possibly this one, offers for the node open as `node`; `None` if nobody
/// offers one.
///
/// # Errors
/// Fails as pidfd_getfd(2) does if a claim is offered but cannot be copied.
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
                // The number may belong to another file by now.
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

/// Returns the numbers of the descriptors of `process` that hold a claim on `file`.
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
