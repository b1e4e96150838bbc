//! Contents of a drive: data returned by reads (visible), data that a power cut may lose (answered, at risk),
//! and data that it may not (durable).
//!
//! ```text
//!   submit ─► in flight ─complete─► visible, at risk ─persist, flush─► durable: Medium (memory or file)
//!             └────────── plumb_crash::Window ─────┘                     ▲
//!                                 └──── cut: what survives is drawn ─────┘
//! ```
//!
//! The medium holds what remains if everything at risk is lost. The window holds the commands that may change
//! it. A cut applies some of them to the medium. Both use extents, so a command over the whole drive costs
//! the same as one over a single block. A durable version is on the medium, and in the backing file, before
//! the command that made it durable is answered.
//!
//! The fault model: commands at risk survive in any subset that [the rules](plumb_crash) allow, torn between
//! logical blocks; blocks in flight may become unreadable. Broken promises ([`Promise`]) and [`Damage`] go
//! beyond the rules. Of concurrent commands on one block, the visible one is random, and it is the one that
//! later becomes durable. A failed write lands at once, later, in parts, or never.
//!
//! Not modelled: damage to data that has long been durable, wear, retention, read disturb, bad relocation
//! tables. An unreadable block becomes readable when it is written.

mod commands;
mod content;
mod corruption;
mod cut;
mod damage;
mod file;
mod medium;
mod read;
mod shape;
#[cfg(test)]
mod tests;

pub use commands::Contents;
pub use damage::{CutReport, Damage};
pub use plumb_crash::{Atomicity, FlushKept, FuaKept, Promise};
pub use read::ReadError;
pub use shape::{Backing, BackingError, ContentsError, Data, Shape};
