//! Reports for other programs, one file per format. The JSON format is next to the documents.

pub mod annotations;
pub mod baseline;
pub mod csv;
pub mod fio;
pub(crate) mod junit;
pub mod prometheus;
