//! What is on a drive: what a read returns (visible), what a power cut may take away (answered, at risk), and what it
//! cannot (durable).
//!
//! ```text
//!   submit ─► in flight ─complete─► visible, at risk ─persist, flush─► durable: Medium (memory or file)
//!                 │                        │
//!                 └──── cut: what survives is chosen by crate::rules ────► Medium
//! ```
//!
//! [`Contents`] keeps the medium as it would be found if all that is at risk were lost, and beside it the window of
//! commands that may change it. At a cut some of them are laid over it, and that is what is left.
//!
//! The fault model: commands at risk survive in any subset that [`rules`](crate::rules) allow, torn between logical
//! blocks; blocks in flight may become unreadable; what [`Promise`] does not keep and what [`Damage`] adds is beyond the
//! rules. Of commands in flight together on one block, which is visible is drawn, and what is visible of them is what
//! is durable later. A failed write lands at once, later, in parts, or never.
//!
//! Not modelled: damage to what has long been durable, wear, retention, read disturb, bad relocation tables. An
//! unreadable block can be read again once it is written.
//!
//! Invariants:
//! - a page without a chain and without a wide command over it is on the medium, visible and durable alike;
//! - a durable command leaves the window only when all that remains over its blocks is newer than it.

mod cut;
mod damage;
mod drive_side;
mod few;
mod file;
mod geometry;
mod ids;
mod in_file;
mod lay;
mod leaves;
mod lose;
mod medium;
mod page_map;
mod promise;
mod read;
mod recent;
mod settle;
mod slab;
mod slots;
mod spill;
mod table;
#[cfg(test)]
mod tests;
mod wide;
mod wide_settle;
mod window;

pub use damage::{CutReport, Damage};
pub use drive_side::Contents;
pub use promise::{Backing, BackingError, ContentsError, Data, FlushKept, FuaKept, Promise, Shape};
pub use read::{Piece, PieceContent, ReadError};
