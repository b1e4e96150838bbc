//! Block devices for anyone: any [`Device`](plumb_block::Device) served to other programs, and what others serve opened
//! as one.

pub mod attach;
pub mod bay;
mod eagerness;
mod latch;
mod lock;
pub mod nbd;
#[cfg(feature = "ublk")]
pub mod ublk;
