//! Changes that prevent a failure: a sync call of the program, or a flush of the device. Each change is
//! verified by exploring, and the two kinds are never mixed.
//!
//! - *Sync call*: the program runs again and makes that call; what is recorded then is explored. Preferred,
//!   since it is what a program can do.
//! - *Device flush*: a flush is put into the recording where the writes had completed; what a cut may leave
//!   is then a part of what it might leave before.
//! - *Flushes left out*: where nothing fails, what becomes of it without any of the recorded flushes.

mod device_flush;
mod left_out;
mod needless;
mod search;
mod settings;
mod sync_call;
mod trial;

pub(crate) use needless::put_needless;
pub(crate) use search::put_changes;
