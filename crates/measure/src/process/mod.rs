//! Environment of a measurement: the scheduler's statistics of a thread (proc(5)), and the results of
//! uname(2).

pub mod schedstat;

use rustix::system::uname;

pub use schedstat::OwnThread;

/// Returns the host name.
pub fn host() -> Option<String> {
    Some(uname().nodename().to_str().ok()?.to_owned()).filter(|name| !name.is_empty())
}

/// Returns the kernel release.
pub fn kernel() -> Option<String> {
    Some(uname().release().to_str().ok()?.to_owned())
}
