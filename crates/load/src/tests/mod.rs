//! Common parts of the tests of this crate.

pub(crate) mod scripted;
