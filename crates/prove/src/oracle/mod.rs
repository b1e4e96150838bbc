//! Check of a state without a checker: the state is compared with what the program itself made visible.
//!
//! ```text
//!   system calls ─► Follower ─► Recording + Layout ─► Moments ─┐
//!   state ─► FoundTree, or the output of a reader ────────────┴─► intact, or what differs
//! ```
//!
//! A *moment* is the tree of files after one system call. After acknowledgement `k` a state may hold what a
//! moment from `k` until the next acknowledgement held, name by name:
//!
//! 1. A name may be absent, a directory or a link if it was so at one of these moments.
//! 2. The time during which a name is of one file is an *epoch*. The bytes that the file had when the epoch
//!    began, or when `k` was acknowledged, must be as at one moment of it. Bytes beyond may hold anything,
//!    and so may all bytes of a name that was absent when `k` was acknowledged.
//! 3. A file that is shorter than it was, or absent, and is longer again later, is lost, unless another name
//!    holds what it held.
//!
//! With a reader there is one rule: it prints what it would print at one of these moments.
//!
//! Limitations: owners, permissions, times and extended attributes are not compared. Whether files that
//! changed since `k` fit together only a reader can tell.

mod compare;
mod found;
mod moments;
mod reading;
mod readings;

pub(crate) use found::FoundTree;
pub use moments::Moments;
pub(crate) use reading::Reading;
