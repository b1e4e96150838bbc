//! Changes that prevent a failure: a sync call of the program, or a flush of the device. Each change is
//! verified by exploration, and the two kinds are never combined.
//!
//! - *Sync call*: the program runs again with the call, and the new recording is explored. Preferred, since a
//!   program can be changed that way.
//! - *Device flush*: a flush is inserted into the recording where writes had completed. A cut may then leave
//!   a subset of the earlier states.
//! - *Flushes left out*: if nothing fails, the result without any of the recorded flushes.

mod device_flush;
mod left_out;
mod needless;
mod search;
mod settings;
mod sync_call;
mod trial;

pub(crate) use needless::put_needless;
pub(crate) use search::put_changes;
