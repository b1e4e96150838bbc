//! Check for subjects without a checker: a state is compared with the files that the program itself made
//! visible.
//!
//! ```text
//!   system calls ─► Follower ─► Recording + Layout ─► Moments ─┐
//!   state ─► FoundTree, or the output of a reader ────────────┴─► intact, or what differs
//! ```
//!
//! A *moment* is the tree of files after one system call. After acknowledgement `k`, a state may hold the
//! contents of any moment from `k` until the next acknowledgement, name by name:
//!
//! 1. A name may be absent, a directory or a link if it was so at one of these moments.
//! 2. The time during which a name refers to one file is an *epoch*. The bytes that the file had when the
//!    epoch began, or when `k` was acknowledged, must match one moment of the epoch. Later bytes may hold
//!    anything, and so may all bytes of a name that was absent when `k` was acknowledged.
//! 3. A file that is absent, or shorter than it was, and is longer again at the end, is lost, unless another
//!    name holds its contents.
//!
//! With a reader there is one rule: its output must be its output for one of these moments.
//!
//! Limitations: owners, permissions, times and extended attributes are not compared. Only a reader can tell
//! whether files that changed since `k` are consistent with each other.

mod compare;
mod found;
mod moments;
mod reading;
mod readings;

pub(crate) use found::FoundTree;
pub use moments::Moments;
pub(crate) use reading::Reading;
