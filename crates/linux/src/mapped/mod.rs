//! The engine of a shared mapping: mmap(2), copies, msync(2).
//!
//! - A read or write is a copy from or to the mapping.
//! - A flush is msync(MS_SYNC) of the whole mapping and nothing else. mm/msync.c calls vfs_fsync_range with
//!   `datasync` on the mapped file, so it does the same as fdatasync: write-back, metadata to find the bytes,
//!   a flush of the device.
//! - A FUA write is a copy and msync of its pages.
//! - Discards and write-zeroes use the calls of the other engines; the kernel unmaps the changed pages.
//!
//! **An I/O error under a mapping is a SIGBUS** for whoever touches the page: a bad sector, a full disk under
//! a sparse file, a truncated file. So this process never touches the mapping. The kernel copies instead, and
//! reports a bad page as EFAULT. process_vm_readv(2) and process_vm_writev(2) on this process itself do it in
//! one call: the payload is the "remote" side, whose pages the kernel pins. The mapping is the "local" side,
//! which is copied by address with ordinary page faults (mm/process_vm_access.c). The reverse would write to
//! pages of a file without the knowledge of its file system. EFAULT becomes EIO, even if the cause was
//! ENOSPC, since a page fault has no error number.
//!
//! Cost compared with a program's memcpy: a system call and pinning of the payload's pages for each request.
//! 4 KiB in the page cache take as long as with pwrite, and up to half longer than with pread. Page faults
//! cost the same as in any program. Seccomp filters that forbid the two calls are detected when the file is
//! opened.
//!
//! Each queue maps the file through its own description, since a failed write-back is reported once to each.

mod copy;
mod mapping;

pub(crate) use mapping::{Mapping, try_mapping};
