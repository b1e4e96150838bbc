//! plumb's own words: the flags of `plumb load`, and the same words in a TOML file.
//!
//! [`Words`] is what was typed, in either form; [`Words::meaning`] and [`read()`] say what it means, and
//! [`write()`] says any scenario in these words, whatever language it was typed in. A word that is not said
//! has its default, which is what [`write()`] leaves out: 4 KiB random reads past the page cache, one thread,
//! depth 1, for 30 seconds.
//!
//! A file holds words at its top, which is one job; or `[[job]]` tables, which run at the same time; or
//! `[[span]]` tables, which follow one another, each with words or with `[[span.job]]` tables. Words of a
//! file or of a span are defaults for the jobs in it, and give way to words of a job that contradict them.
//!
//! Invariant: `read(&write(&scenario))` gives the same scenario, to the last bit, for every valid scenario.

mod defaults;
mod describe;
mod foreign;
mod invalid_field;
mod layer;
mod lines;
mod meaning;
mod own_words;
mod read;
mod rules;
mod table;
mod vocabulary;
mod word_error;
mod words;
mod write;

pub use foreign::translate;
pub(crate) use invalid_field::{InvalidField, check};
pub use own_words::in_own_words;
pub use read::{read, read_under};
pub use words::{Words, split};
pub use write::write;
