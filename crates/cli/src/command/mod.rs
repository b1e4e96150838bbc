//! One file for each command.

pub(crate) mod check;
pub(crate) mod generate;
pub(crate) mod report;
pub(crate) mod survey;
