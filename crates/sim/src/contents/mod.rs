//! Contents of a drive: what a read returns (visible), what a power cut may take away (answered, at risk),
//! and what it cannot (durable).
//!
//! ```text
//!   submit ─► in flight ─complete─► visible, at risk ─persist, flush─► durable: Medium (memory or file)
//!             └────────── plumb_crash::Window ─────┘                     ▲
//!                                 └──── cut: what survives is drawn ─────┘
//! ```
//!
//! The medium is what would be found if all that is at risk were lost. Beside it stands the window of the
//! commands that may change it. At a cut some of them are laid over it, and that is what is left. Both keep
//! extents, so that a command over the whole drive costs what a command over one block costs. A durable
//! version is on the medium, and in the backing file, before the command that made it durable is answered.
//!
//! The fault model: commands at risk survive in any subset that [the rules](plumb_crash) allow, torn between
//! logical blocks; blocks in flight may become unreadable; what [`Promise`] does not keep and what [`Damage`]
//! adds is beyond the rules. Of commands in flight together on one block, which is visible is drawn, and what
//! is visible of them is what is durable later. A failed write lands at once, later, in parts, or never.
//!
//! Not modelled: damage to what has long been durable, wear, retention, read disturb, bad relocation tables.
//! An unreadable block can be read again once it is written.

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
