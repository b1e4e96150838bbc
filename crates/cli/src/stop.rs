//! Ctrl-C, SIGTERM and SIGHUP: ordinary events. The first asks the work to stop and keep what it has; it is
//! the work that looks at the flag.
//!
//! One wish to stop may come as several signals at once: timeout(1) tells its child and then its group, a
//! terminal that closes sends SIGHUP beside what the shell sends. So a signal soon after the first is the
//! same one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

use anyhow::Context;
use plumb_block::{Clock as _, Nanos, RealClock};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::terminal;

/// How soon after another a signal is no other.
const SAME_WITHIN: Nanos = Nanos::secs(1);

/// Line that is said when a signal ends the process at once.
static LAST_WORDS: OnceLock<String> = OnceLock::new();

/// Has a signal that ends the process at once say first what `leaves` this machine changed. The first call
/// counts.
pub(crate) fn say_at_once(leaves: &str) {
    LAST_WORDS.get_or_init(|| format!("plumb: ended at once: {leaves}"));
}

/// Returns a flag that becomes true at the first signal. One that comes more than a second later ends the
/// process at once, for when a device hangs; where the test file has a name (not on ext4, xfs, tmpfs) it then
/// stays.
pub(crate) fn on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    watch(vec![Arc::clone(&stop)])?;
    Ok(stop)
}

/// Returns two flags, for whoever waits for others before it stops: the first becomes true at the first
/// signal, the second at the second signal, which asks not to wait, and the third ends the process.
pub(crate) fn on_signals_twice() -> anyhow::Result<[Arc<AtomicBool>; 2]> {
    let flags = [false, false].map(|flag| Arc::new(AtomicBool::new(flag)));
    watch(flags.to_vec())?;
    Ok(flags)
}

/// Has each signal that is another than the one before set the next of the flags, and the one after the last
/// end the process.
fn watch(flags: Vec<Arc<AtomicBool>>) -> anyhow::Result<()> {
    let all = [SIGINT, SIGTERM, SIGHUP];
    let mut signals = Signals::new(all).context("cannot watch for signals")?;
    // The kernel may give a signal to a thread that has descriptors of its own and cannot tell the one below.
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

/// Makes a file size limit (`ulimit -f`) an error of the write that meets it, not the end of the process.
/// Programs that this one starts are not affected.
pub(crate) fn outlive_size_limit() -> anyhow::Result<()> {
    signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::new(AtomicBool::new(false)))
        .context("cannot watch for SIGXFSZ")?;
    Ok(())
}

/// When the last signal came that was another than the one before.
#[derive(Debug, Default)]
struct LastSignal {
    last: Option<Nanos>,
}

impl LastSignal {
    /// Returns true if a signal that comes `now` is the first, or another than the last, for which that was
    /// not enough.
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
            // Counted from the first of them: whoever holds Ctrl-C down is heard.
            for after in [0, 1, 400, 1000] {
                assert!(!heard.is_another(at(after)), "second {second}, {after} ms");
            }
        }
    }
}
