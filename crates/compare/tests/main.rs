//! The tests of this crate. One program, so that it is linked once.

mod agreement;
mod series;
