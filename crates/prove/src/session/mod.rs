//! A subject recorded: on a blank drive in memory, attached as a block device, with a file system on it.
//!
//! ```text
//!   subject ─► file system ─► /dev/loopN or /dev/ublkbN ─► serve ─► [write-back cache] ─► Recorder ─► drive in memory
//! ```
//! With a cache the drive is two: that which is cached, and behind it that of the log. mkfs and what the
//! subject sets up are recorded, but no cut happens before the subject's work begins, nor after it has ended:
//! what unmounting writes is not judged.
//!
//! Everything that goes through the mount is done by a thread with descriptors of its own
//! ([`plumb_linux::isolated_thread`]): it waits for this very process, which could not be killed otherwise.

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
