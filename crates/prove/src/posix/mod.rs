//! Model of a file system that gives the guarantees of POSIX and no others, as a recording that the
//! [`Explorer`](crate::explore::Explorer) explores.
//!
//! ```text
//!   system calls ─► Follower ─► Model ─► Recording + Layout ─► Explorer ─► State ─► tree of files ─► checker
//! ```
//!
//! Everything that survives or is lost independently is a block of an imaginary drive, a [`Spot`]: a data
//! block of a file, the size of a file, an entry of a directory. A system call becomes a few commands on such
//! blocks, so the rules of `plumb-crash` define the states that a cut may leave: each spot may return to any
//! version since its last durable one. The rules of the model:
//!
//! 1. A write changes data blocks, each independently, and the size independently of them. Missing blocks
//!    below the size read as zeroes, or with [`Unwritten::Garbage`] as other bytes.
//! 2. A truncation changes the size and removes the blocks beyond it atomically. It writes what remains of
//!    the last block.
//! 3. Creating, linking and removing each change one entry of a directory. A rename changes two atomically,
//!    so that no state has both names or neither.
//! 4. If a change survives, so do all earlier renames and truncations that changed the same spot.
//! 5. fsync and fdatasync of a file make its data and its size durable, and none of its names. fsync of a
//!    directory makes its entries durable, but not the files that they name. A write through a descriptor
//!    with `O_DSYNC` or `O_SYNC` makes its own range durable, and a size that reaches its end. sync and
//!    syncfs make everything durable. Rule 4 applies to everything that becomes durable.
//! 6. A sync covers all changes complete when it was called.
//!
//! Limitations: owners, permissions, times and extended attributes are never lost. Special files are ignored.

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
