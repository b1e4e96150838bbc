//! Traces of caches on devices and on this machine: configurations by name, the marker on the backing device
//! that names the cache that the device needs, and the record of the last stop.

pub mod config;
pub mod device_place;
pub mod known;
pub mod marker;
pub mod marker_search;
pub mod stop_record;
pub mod tuning;

pub(crate) use known::{is_backing, log_parts};
pub(crate) use marker::{forget_marker, has_marker};
