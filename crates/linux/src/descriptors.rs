//! The descriptors of this process: how many it may have (`RLIMIT_NOFILE`, getrlimit(2)), and which of stdin,
//! stdout and stderr it was started without.

#![expect(unsafe_code, reason = "a look before main, which is before the runtime opens what is closed")]

use std::sync::atomic::{AtomicU8, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Standard descriptors that were closed at the start, a bit each.
static LACKING: AtomicU8 = AtomicU8::new(0);

// SAFETY: the loader calls the functions of this section before main; this one needs no runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for number in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: the call only looks the number up in the table of descriptors.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        LACKING.fetch_or(u8::from(flags < 0) << number, Ordering::Relaxed);
    }
}

/// Returns true if this process was started with the standard descriptor of this number closed. The runtime
/// of Rust opens /dev/null in its place, so that no write to it fails.
pub fn lacks(number: u32) -> bool {
    number < 3 && LACKING.load(Ordering::Relaxed) & (1 << number) != 0
}

/// Returns true if this process was started with stdout closed: see [`lacks`].
pub fn lacks_stdout() -> bool {
    lacks(libc::STDOUT_FILENO as u32)
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
