//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

mod common;
mod exports;
mod foreign_documents;
mod page;
mod proof;
mod recording;
mod schemas;
mod surveyed_paths;
mod terminal;
