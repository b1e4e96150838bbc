//! Everything that talks to the kernel.

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
