//! plumb's own dialect: words, which are the flags of `plumb load` and the keys of its TOML files.
//!
//! [`Words`] holds words from either source; [`Words::meaning`] and [`read()`] translate them to a scenario,
//! and [`write()`] formats any scenario as words, whatever its dialect. [`write()`] omits words with default
//! values. The default is 4 KiB random reads without the page cache, one thread, depth 1, for 30 seconds.
//!
//! A file contains words at top level, which form one job; or `[[job]]` tables, which run at the same time;
//! or `[[span]]` tables, which run one after another, each with words or with `[[span.job]]` tables. Words of
//! a file or span are defaults for the jobs in it; words of a job replace those that they contradict.
//!
//! Invariant: `read(&write(&scenario))` returns the same scenario, to the last bit, for every valid scenario.

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
