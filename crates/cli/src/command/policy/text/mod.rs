//! Output of `plumb policy`, as plain functions from documents to text.

pub(super) mod detail;
mod layout;
pub(super) mod plan;
pub(super) mod raid;
pub(super) mod report;
pub(super) mod table;
pub(super) mod wire;
mod words;
