//! Block devices for anyone: any [`Device`](plumb_block::Device) served to other programs, and what others serve opened
//! as one.

pub mod attach;
mod busy_poll;
mod lock;
pub mod named;
pub mod nbd;
mod requests;
mod served_device;
#[cfg(feature = "ublk")]
pub mod ublk;
