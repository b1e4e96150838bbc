//! plumb's own words: what is typed, what is written, and that both are the same.

mod arbitrary;
mod command_line;
mod file;
mod hostile;
mod round_trip;
