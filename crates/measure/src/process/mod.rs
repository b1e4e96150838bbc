//! Surroundings of a measurement: the scheduler's account of a thread (proc(5)), and what uname(2) says.

pub mod schedstat;

use rustix::system::uname;

pub use schedstat::OwnThread;

/// Returns the host's name.
pub fn host() -> Option<String> {
    Some(uname().nodename().to_str().ok()?.to_owned()).filter(|name| !name.is_empty())
}

/// Returns the kernel's release.
pub fn kernel() -> Option<String> {
    Some(uname().release().to_str().ok()?.to_owned())
}
