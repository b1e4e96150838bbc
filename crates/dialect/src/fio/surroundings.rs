//! Surroundings that translations ask for: passed in, so that they stay pure.

use std::io;

use plumb_block::Bytes;

/// Where job files, variables and the sizes of targets come from.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The text of a job file or of an included one; a name of `-` is standard input.
    pub read_file: &'a dyn Fn(&str) -> io::Result<String>,
    /// Lookup of what `${NAME}` stands for; `None` if it is not set.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// How large a target is now; `None` if it is missing or of no known size. Percents of a size need it.
    pub target_size: &'a dyn Fn(&str) -> Option<Bytes>,
    /// Returns true if a target is a regular file, or is missing and would be made as one.
    pub is_file: &'a dyn Fn(&str) -> bool,
    /// Returns true if names of other targets than files begin with this word and a colon: `sim`, `nbd`.
    pub is_scheme: &'a dyn Fn(&str) -> bool,
    /// Returns true if there is a directory of this name.
    pub is_directory: &'a dyn Fn(&str) -> bool,
}
