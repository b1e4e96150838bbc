//! The engine of a shared mapping: mmap(2), copies, msync(2).
//!
//! - A read or write is a copy from or to the mapping.
//! - A flush is msync(MS_SYNC) of the whole mapping and nothing else. mm/msync.c calls vfs_fsync_range with
//!   `datasync` on the mapped file, so it does what fdatasync does: write-back, metadata to find the bytes, a
//!   flush of the device.
//! - A FUA write is a copy and msync of its pages.
//! - Discards and write-zeroes are the calls of the other engines; the kernel unmaps what they change.
//!
//! **An I/O error under a mapping is a SIGBUS**, for whoever touches the page: a bad sector, a full disk
//! under a sparse file, a file that has shrunk. So this process never touches the mapping; the kernel copies,
//! in whose copies a bad page is EFAULT. process_vm_readv(2) and process_vm_writev(2) on this very process do
//! it in one call: the payload is the "remote" side, whose pages the kernel takes hold of, and the mapping is
//! the "local" side, from or to which it copies by address, with page faults like those of any program
//! (mm/process_vm_access.c). The other way round would write to pages of a file behind the back of its file
//! system. EFAULT becomes EIO, also where the cause was ENOSPC: a page fault has no error number.
//!
//! The cost beside a memcpy of a program: for each request one system call and taking hold of the payload's
//! pages. 4 KiB in the page cache take as long as with pwrite, and up to half longer than with pread. Page
//! faults cost what they cost any program. Seccomp filters that forbid the two calls are found out on
//! opening.
//!
//! Each queue maps the file through a description of its own, since a failed write-back is reported once for
//! each.

mod copy;
mod mapping;

pub(crate) use mapping::{Mapping, try_mapping};
