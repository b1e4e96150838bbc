//! plumb's own dialect: command line, files, and their equivalence.

mod arbitrary;
mod command_line;
mod file;
mod hostile;
mod round_trip;
