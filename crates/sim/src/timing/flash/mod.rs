//! Flash behind a controller: dies in parallel, a write buffer, a flash translation layer.
//!
//! ```text
//!   command ─► queue ─► controller ─► link ─► write buffer ─► units, gathered ─► die (SLC or not, + collection) ─► Persisted
//!                                  └► die read ─► channel ─► link ─► Completed
//! ```
//!
//! A write is answered once it is in the buffer, if the cache is enabled or protected; otherwise once it is
//! programmed. The buffer is written in units of one page on every plane of a die, which wait for more data
//! before they are programmed. All times and sizes are integers, so a seed gives the same run on every
//! machine.
//!
//! Not modelled: reads from the write buffer, wear, temperature, read disturb, contention between background
//! folding and reads, and the order of dies within a channel (a channel is a rate, shared fairly).

mod buffer;
mod dies;
mod drive;
mod due;
mod ftl;
mod parameters;
#[cfg(test)]
mod tests;
mod units;

pub use drive::{FlashTiming, WriteBuffer};
pub use parameters::{FillState, Parameters, SlcParameters};
