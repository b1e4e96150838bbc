//! Ctrl-C, SIGTERM and SIGHUP: ordinary events. The first asks the work to stop and keep what it has; it is the work
//! that looks at the flag.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that becomes true at the first signal. A second signal of the same kind ends the process at once; the test
/// file has no name by then, so nothing is left behind.
pub(crate) fn on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Order matters: the shutdown looks at the flag before this signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("cannot watch for signal {signal}"))?;
    }
    Ok(stop)
}
