//! Reports for other programs, one format a file.

pub mod csv;
pub mod fio;
pub mod json;
pub mod prometheus;
