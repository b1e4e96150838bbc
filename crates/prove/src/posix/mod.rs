//! Model of a file system that promises what POSIX promises and nothing else, as a recording that the
//! [`Explorer`](crate::explore::Explorer) explores.
//!
//! ```text
//!   system calls ─► Follower ─► Model ─► Recording + Layout ─► Explorer ─► State ─► tree of files ─► checker
//! ```
//!
//! Everything that survives or is lost by itself is a block of a drive that does not exist, a [`Spot`]: a
//! block of data of a file, the size of a file, an entry of a directory. A system call is a few commands over
//! such blocks, so that the rules of `plumb-crash` say which states a cut may leave: each spot goes back to
//! any version since its last durable one. The rules of the model:
//!
//! 1. A write changes blocks of data, each by itself, and the size apart from them. Blocks below the size
//!    that are not there read as zeroes, or with [`Unwritten::Garbage`] as other bytes.
//! 2. A truncation changes the size and removes the blocks beyond it together. What it leaves of the last
//!    block is a write.
//! 3. Creating, linking and removing each change one entry of a directory. A rename changes two together, so
//!    that nobody sees both names or neither.
//! 4. Where a change survives, the renames and truncations survive that changed the same spot before it.
//! 5. fsync and fdatasync of a file make its data and its size durable, and none of its names. fsync of a
//!    directory makes its entries durable, and nothing in what they name. A write through a descriptor with
//!    `O_DSYNC` or `O_SYNC` makes its own range durable, and a size that reaches its end. sync and syncfs
//!    make everything durable. What is durable takes with it what rule 4 asks for.
//! 6. A sync covers what had changed when it was called.
//!
//! Limitations: owners, permissions, times and extended attributes are never lost. Special files are not
//! seen.

mod arguments;
mod follow;
mod layout;
mod mapped;
mod mirror;
mod model;
mod tasks;
mod tree;

pub(crate) use follow::{Follower, Promises, Trail, make_fifo};
pub(crate) use layout::number;
pub use layout::{ContentOf, Index, Inode, Layout, Object, Spot};
pub use model::{Model, Name, Unwritten};
pub use tree::{FileContents, Node, Tree};
