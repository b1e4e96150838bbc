//! Models of hosts, to compare a drive with a field report: they know only commands and answers, and not the
//! parts of the drive. The costs and habits of a host are described here.
//!
//! - `one_at_a_time`: programs that write and sync, one after the other.
//! - `flushed`: the load of a desktop of 2002 on its disk, with flushes and with a driver that drops them.
//! - `quantiles`: quantiles of the measured times.

mod flushed;
mod one_at_a_time;
mod quantiles;

pub(crate) use flushed::{Flushes, accounting, copy, log};
pub(crate) use one_at_a_time::{appends, scattered};
pub(crate) use quantiles::Quantiles;
