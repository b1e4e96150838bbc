//! Waiting for what the kernel has no event for.

use std::time::Duration;

use plumb_block::{Clock as _, Nanos, RealClock};

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Tries `attempt` until it gives something, again and again for as long as `patience`; `None` if it gives
/// nothing until then.
pub(crate) fn retry<T>(patience: Nanos, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let clock = RealClock::start();
    loop {
        let found = attempt();
        if found.is_some() || clock.now() >= patience {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}
