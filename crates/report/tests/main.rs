//! Integration tests of the crate, linked as one program: one scenario per file, and common code.

mod common;
mod exports;
mod foreign_documents;
mod page;
mod proof;
mod recording;
mod schemas;
mod surveyed_paths;
mod terminal;
