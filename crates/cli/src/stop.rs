//! Ctrl-C, SIGTERM and SIGHUP: ordinary events. The first asks the work to stop and keep what it has; it is the work
//! that looks at the flag.
//!
//! One wish to stop may come as several signals at once: timeout(1) tells its child and then its group, a terminal that closes
//! sends SIGHUP beside what the shell sends. So a signal soon after the first is the same one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How soon after the first a signal is no other.
const SAME_WITHIN: Duration = Duration::from_secs(1);

/// A flag that becomes true at the first signal. One that comes more than a second later ends the process at once, for
/// when a device hangs; where the test file has a name (not on ext4, xfs, tmpfs) it then stays.
pub(crate) fn on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
    let flag = Arc::clone(&stop);
    let watch = move || {
        let mut heard = Heard::default();
        for signal in signals.forever() {
            if heard.is_another(Instant::now()) {
                signal_hook::low_level::exit(128 + signal);
            }
            flag.store(true, Ordering::Release);
        }
    };
    Builder::new().name("signals".to_owned()).spawn(watch).context("cannot watch for signals")?;
    // A file size limit (ulimit -f) shall be an error of the write that meets it, not the end of the process.
    signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::new(AtomicBool::new(false)))
        .context("cannot watch for SIGXFSZ")?;
    Ok(stop)
}

/// When the first signal came.
#[derive(Debug, Default)]
struct Heard {
    first: Option<Instant>,
}

impl Heard {
    /// Whether a signal that comes `now` is another than the first, for which the first was not enough.
    fn is_another(&mut self, now: Instant) -> bool {
        let first = *self.first.get_or_insert(now);
        now.duration_since(first) > SAME_WITHIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_soon_after_the_first_are_the_same_and_a_later_one_is_another() {
        let mut heard = Heard::default();
        let first = Instant::now();
        for after in [0, 1, 400, 1000] {
            assert!(!heard.is_another(first + Duration::from_millis(after)), "{after} ms");
        }
        // Counted from the first: whoever holds Ctrl-C down is heard.
        assert!(heard.is_another(first + Duration::from_millis(1001)));
    }
}
