//! The Linux kernel interface: files and disks as devices, counters, /proc and /sys, ioctls. The crate
//! depends only on `block`, `text` and `state`.
//!
//! - `file` opens regular files and block devices as [`Device`](plumb_block::Device)s, with one of three
//!   engines: `uring`, `psync` and `mapped`. [`test_file`] creates plumb's test files, [`layout`] fills them.
//! - [`file_system`] creates, mounts and checks file systems on block devices.
//! - [`store`] is a directory as a [`FileStore`](plumb_block::FileStore), [`counters`] reads the block
//!   layer's counters.
//! - [`tracing`] uses the kernel's event tracing; [`flush_trace`] and [`accounting`] attribute flushes and
//!   writes to this process.
//! - [`child`] runs programs to completion, with a time limit and until the user asks to stop; [`orphans`]
//!   tracks the processes that they leave running.
//! - [`thread`] controls the calling thread: its processors, its I/O priority, its cost.
//! - [`tree`] reads /proc, /sys and /dev below a root directory; [`probe`] queries drives by ioctl. Both can
//!   be recorded.
//! - [`inventory`] lists how devices are stacked and what uses them, so that no use is disturbed.
//! - [`range_lock`] locks ranges of files, [`shared_claim`] lets several processes claim a block device
//!   together.
//! - [`open_files`] lists the files that processes write, with the data of each that has not reached its
//!   device.
//! - [`ublk`] is the kernel side of block devices served by a process; [`fuse_connection`] and [`fuse_ring`]
//!   are that of a file system.
//! - [`isolated_thread`] makes system calls that may wait for this process itself.
//! - [`command`] sends commands that change drives, [`dm_reload`] reloads a dm table.
//!
//! Nothing here makes policy decisions. Most of the unsafe code is in this crate; each block explains why it
//! is sound.

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
