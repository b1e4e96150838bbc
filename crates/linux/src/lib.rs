//! Everything that talks to the kernel; it may use `block` alone.
//!
//! - `file` opens regular files and block devices as [`Device`](plumb_block::Device)s, with one of two engines: `uring`
//!   and `psync`. [`test_file`] and [`append_file`] make files of plumb's own.
//! - [`store`] is a directory as a [`FileStore`](plumb_block::FileStore), [`counters`] reads what the block layer counted.
//! - [`tree`] reads /proc, /sys and /dev, rooted at a directory; [`probe`] asks drives by ioctl. Both can be recorded.
//!
//! Nothing here judges. This is the home of unsafe code, each block with the reason why it is sound.

pub mod append_file;
pub mod block_ioctl;
pub mod counters;
pub mod extents;
mod file;
mod hex;
pub mod pagecache;
pub mod probe;
mod psync;
pub mod space;
pub mod store;
pub mod test_file;
pub mod tree;
mod uring;

pub use append_file::AppendFile;
pub use counters::BlockCounters;
pub use file::{Access, Caching, Engine, EngineChoice, FileDevice, FileOptions};
pub use store::DirectoryStore;
pub use test_file::{Filling, TestFile};
