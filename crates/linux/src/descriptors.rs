//! The descriptors of this process: how many it may have (`RLIMIT_NOFILE`, getrlimit(2)), and whether it was
//! given a stdout.

#![expect(unsafe_code, reason = "a look before main, which is before the runtime opens what is closed")]

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

static LACKS_STDOUT: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls the functions of this section before main; this one needs no runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: the call only looks the number up in the table of descriptors.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    LACKS_STDOUT.store(flags < 0, Ordering::Relaxed);
}

/// Returns true if this process was started with stdout closed. The runtime of Rust opens /dev/null in its
/// place, so that no write to it fails.
pub fn lacks_stdout() -> bool {
    LACKS_STDOUT.load(Ordering::Relaxed)
}

/// Raises the limit to `needed`, as far as the hard limit allows. Returns the limit that holds then; `None`
/// if there is none.
pub fn raise(needed: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    let raised = limit.maximum.map_or(needed, |maximum| needed.min(maximum)).max(current);
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => Some(raised),
        Err(_) => Some(current),
    }
}
