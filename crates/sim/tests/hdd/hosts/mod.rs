//! What stands for a host when a drive is held against a field report: it knows commands and answers only, and nothing
//! of what the drive is made of; its own costs and habits are told apart here.
//!
//! - `object_store`: a Ceph OSD on one disk, log and data together.
//! - `one_at_a_time`: programs that write and sync, one after the other.
//! - `flushed`: what a desktop of 2002 did to its disk, with flushes and with a driver that drops them.
//! - `quantiles`: of the times that they measured.

mod flushed;
mod object_store;
mod one_at_a_time;
mod quantiles;

pub(crate) use flushed::{Flushes, accounting, copy, log};
pub(crate) use object_store::{ObjectStore, StoreLoad};
pub(crate) use one_at_a_time::{appends, scattered};
pub(crate) use quantiles::Quantiles;
