//! Recording of a subject: on a blank drive in memory, attached as a block device, with a file system on it.
//!
//! ```text
//!   subject ─► file system ─► /dev/loopN or /dev/ublkbN ─► serve ─► [write-back cache] ─► Recorder ─► drive in memory
//! ```
//! With a cache there are two drives: the backing device, and behind it that of the log. mkfs and the set-up
//! of the subject are recorded, but cuts happen only between the beginning and the end of the subject's work:
//! writes of the unmount are not judged.
//!
//! All access through the mount is from a thread with separate descriptors
//! ([`plumb_linux::isolated_thread`]), since it waits for this very process, which otherwise could not be
//! killed.

mod acknowledged;
mod drive;
mod here;
mod logged;
mod posix;
mod power;
mod reachable_file;
mod recorded;
mod recording_run;
mod self_test;
mod strace;
mod traced;
mod window;

pub(crate) use acknowledged::Numbers;
pub(crate) use drive::{IN_FLIGHT_MIN, attach};
pub use here::private_mounts;
pub use logged::{logged, read_log};
pub(crate) use posix::{follow, followed};
pub(crate) use power::CUT;
pub use power::{NamedRecording, PowerSwitch, ProofOrder};
pub use recorded::{RecordOptions, RecordedWork};
pub use recording_run::record;
pub(crate) use strace::Trace;
pub(crate) use traced::record_traced;
pub use traced::record_with_calls;
pub use window::Window;
