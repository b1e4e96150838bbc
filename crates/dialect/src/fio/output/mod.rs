//! What a fio command line prints: JSON and json+, terse lines, text for people, logs; and the command line itself.

mod command;
mod direction;
mod entry;
mod figure;
mod json;
mod logs;
mod normal;
mod read;
mod steadystate;
mod terse;
mod time;

pub use command::command;
pub use json::{json, json_text};
pub use logs::{LogFile, log_names, logs};
pub use normal::normal;
pub(crate) use read::read_json_result;
pub use steadystate::SteadyRound;
pub(super) use terse::VERSIONS as TERSE_VERSIONS;
pub use terse::terse;
