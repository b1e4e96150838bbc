//! Reports for other programs, one format a file. That of the JSON document stands with the document.

pub mod annotations;
pub mod baseline;
pub mod csv;
pub mod fio;
pub(crate) mod junit;
pub mod prometheus;
