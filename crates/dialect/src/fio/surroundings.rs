//! Access to files, variables and targets, passed as functions so that translations stay pure.

use std::io;

use plumb_block::Bytes;

/// Sources of job files, variables and facts about targets.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Returns the text of a job file or an included file; `-` is standard input.
    pub read_file: &'a dyn Fn(&str) -> io::Result<String>,
    /// Returns the value of `${NAME}`; `None` if it is not set.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the present size of a target, for percentages; `None` if missing or unknown.
    pub target_size: &'a dyn Fn(&str) -> Option<Bytes>,
    /// Returns true if a target is a regular file, or a missing one that would be created.
    pub is_file: &'a dyn Fn(&str) -> bool,
    /// Returns true for the scheme of targets other than files: `sim`, `nbd`.
    pub is_scheme: &'a dyn Fn(&str) -> bool,
    /// Returns true if the directory exists.
    pub is_directory: &'a dyn Fn(&str) -> bool,
}
