//! Handling of Ctrl-C, SIGTERM and SIGHUP. The first signal sets a flag; the work polls the flag, stops, and
//! keeps its results.
//!
//! One request to stop may arrive as several signals: timeout(1) signals its child and then its process
//! group, and a closing terminal sends SIGHUP beside the shell. So a signal shortly after the first counts as
//! the same request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

use anyhow::Context;
use plumb_block::{Clock as _, Nanos, RealClock};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::terminal;

/// Time within which further signals count as the same request.
const SAME_WITHIN: Nanos = Nanos::secs(1);

/// Message for a signal that ends the process at once.
static LAST_WORDS: OnceLock<String> = OnceLock::new();

/// Sets the message for a signal that ends the process at once; `leaves` names what stays changed on the
/// machine. Only the first call has an effect.
pub(crate) fn say_at_once(leaves: &str) {
    LAST_WORDS.get_or_init(|| format!("plumb: ended at once: {leaves}"));
}

/// Returns a flag that becomes true at the first signal. A signal more than a second later ends the process
/// at once, in case a device hangs. A test file with a name (on file systems other than ext4, xfs and tmpfs)
/// then stays.
pub(crate) fn on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    watch(vec![Arc::clone(&stop)])?;
    Ok(stop)
}

/// Returns two flags for work that waits for its clients before it stops. The first signal sets the first
/// flag; the second signal, which requests not to wait, sets the second flag; the third ends the process.
pub(crate) fn on_signals_twice() -> anyhow::Result<[Arc<AtomicBool>; 2]> {
    let flags = [false, false].map(|flag| Arc::new(AtomicBool::new(flag)));
    watch(flags.to_vec())?;
    Ok(flags)
}

/// Sets the next of the flags at each distinct signal, and ends the process at the one after the last.
fn watch(flags: Vec<Arc<AtomicBool>>) -> anyhow::Result<()> {
    let all = [SIGINT, SIGTERM, SIGHUP];
    let mut signals = Signals::new(all).context("cannot watch for signals")?;
    // The kernel may deliver a signal to a thread with a file descriptor table of its own, from which the
    // pipe of `signals` cannot be written.
    let first = flags.first().into_iter().flat_map(|flag| all.map(|signal| (signal, Arc::clone(flag))));
    for (signal, flag) in first {
        signal_hook::flag::register(signal, flag).context("cannot watch for signals")?;
    }
    let watch = move || {
        let (clock, mut heard, mut flags) = (RealClock::start(), LastSignal::default(), flags.into_iter());
        for signal in signals.forever() {
            if !heard.is_another(clock.now()) {
                continue;
            }
            match flags.next() {
                Some(flag) => flag.store(true, Ordering::Release),
                None => {
                    LAST_WORDS.get().into_iter().for_each(|words| terminal::say(words));
                    signal_hook::low_level::exit(128 + signal)
                }
            }
        }
    };
    Builder::new().name("signals".to_owned()).spawn(watch).context("cannot watch for signals")?;
    Ok(())
}

/// Makes a file size limit (`ulimit -f`) fail the write that exceeds it, rather than end the process.
/// Programs that this one starts are not affected.
pub(crate) fn outlive_size_limit() -> anyhow::Result<()> {
    signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::new(AtomicBool::new(false)))
        .context("cannot watch for SIGXFSZ")?;
    Ok(())
}

/// Time of the last distinct signal.
#[derive(Debug, Default)]
struct LastSignal {
    last: Option<Nanos>,
}

impl LastSignal {
    /// Returns true if a signal at `now` is a distinct request: the first, or late enough after the last
    /// distinct one.
    fn is_another(&mut self, now: Nanos) -> bool {
        let is_another = self.last.is_none_or(|last| now.since(last) > SAME_WITHIN);
        if is_another {
            self.last = Some(now);
        }
        is_another
    }
}

#[cfg(test)]
mod tests {
    use plumb_linux::isolated_thread;

    use super::*;

    #[test]
    fn a_signal_is_heard_whichever_thread_takes_it() {
        let stop = on_signals().unwrap();
        isolated_thread::run(|| signal_hook::low_level::raise(SIGHUP)).unwrap().unwrap();
        assert!(stop.load(Ordering::Acquire));
    }

    #[test]
    fn signals_soon_after_another_are_the_same_and_a_later_one_is_another() {
        let mut heard = LastSignal::default();
        for second in 0..3_u64 {
            let at = |millis| Nanos::millis(second * 1001 + millis);
            assert!(heard.is_another(at(0)), "second {second}");
            // The time counts from the first signal of a request, so holding Ctrl-C down is a new request
            // each second.
            for after in [0, 1, 400, 1000] {
                assert!(!heard.is_another(at(after)), "second {second}, {after} ms");
            }
        }
    }
}
