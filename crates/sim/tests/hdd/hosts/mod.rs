//! Stand-ins for a host when a drive is held against a field report: each knows commands and answers only,
//! and nothing of what the drive is made of; its own costs and habits are described here separately.
//!
//! - `one_at_a_time`: programs that write and sync, one after the other.
//! - `flushed`: what a desktop of 2002 did to its disk, with flushes and with a driver that drops them.
//! - `quantiles`: of the times that they measured.

mod flushed;
mod one_at_a_time;
mod quantiles;

pub(crate) use flushed::{Flushes, accounting, copy, log};
pub(crate) use one_at_a_time::{appends, scattered};
pub(crate) use quantiles::Quantiles;
