//! The Linux kernel interface: files and disks as devices, counters, /proc and /sys, ioctls. It depends on
//! `block` and `state` alone.
//!
//! - `file` opens regular files and block devices as [`Device`](plumb_block::Device)s, with one of three
//!   engines: `uring`, `psync` and `mapped`. [`test_file`] makes files of plumb's own, [`layout`] fills them.
//! - [`file_system`] makes, mounts and checks file systems on block devices.
//! - [`store`] is a directory as a [`FileStore`](plumb_block::FileStore), [`counters`] reads what the block
//!   layer counted.
//! - [`tracing`] is the kernel's event tracing; [`flush_trace`] and [`accounting`] tell what was this
//!   process's own.
//! - [`child`] runs programs to their end, within a time limit and until the user wants an end; [`orphans`]
//!   are the processes that they leave running.
//! - [`thread`] is the calling thread: its processors, its I/O priority, its cost.
//! - [`tree`] reads /proc, /sys and /dev, rooted at a directory; [`probe`] asks drives by ioctl. Both can be
//!   recorded.
//! - [`inventory`] is what stands on what and what uses it: for whoever must not disturb a use.
//! - [`range_lock`] locks parts of files, [`shared_claim`] lets several processes claim a block device
//!   together.
//! - [`open_files`] are the files that processes write, with what of each has not reached its device.
//! - [`ublk`] is the kernel's side of block devices that a process serves, [`fuse_connection`] and
//!   [`fuse_ring`] that of a file system.
//! - [`isolated_thread`] makes system calls that may wait for this very process.
//! - [`command`] sends drives what changes them, [`dm_reload`] loads a dm table again.
//!
//! Nothing here judges. This is the home of unsafe code, each block with the reason why it is sound.

pub mod accounting;
pub mod block_ioctl;
pub mod child;
pub mod command;
mod command_ring;
pub mod counters;
pub mod descriptors;
mod dm_ioctl;
pub mod dm_reload;
pub mod extents;
mod file;
pub mod file_system;
pub mod flush_trace;
pub mod fuse_connection;
pub mod fuse_ring;
pub mod inventory;
pub mod isolated_thread;
pub mod layout;
pub mod local_time;
pub mod loop_device;
mod mapped;
pub mod open_files;
pub mod orphans;
pub mod pagecache;
pub mod probe;
mod psync;
pub mod range_lock;
pub mod recorded;
pub mod shared_claim;
pub mod space;
pub mod store;
pub mod sync_file_range;
pub mod test_file;
pub mod thread;
pub mod tracing;
pub mod tree;
pub mod ublk;
mod uring;

pub use command_ring::Patience;
pub use counters::BlockCounters;
pub use file::{Access, Engine, FileDevice, FileOptions, remedy_if_denied};
pub use layout::Filling;
pub use store::DirectoryStore;
pub use test_file::TestFile;
