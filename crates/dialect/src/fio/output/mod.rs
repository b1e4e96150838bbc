//! Output in fio's formats: JSON, json+, text and logs; and the command line equivalent to job files.

mod command;
mod direction;
mod entry;
mod figure;
mod json;
mod logs;
mod normal;
mod steadystate;
mod time;

pub use command::command;
pub use json::{json, json_text};
pub use logs::{LogFile, log_names, logs};
pub use normal::normal;
pub use steadystate::SteadyRound;
