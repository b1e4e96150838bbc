//! Ctrl-C, SIGTERM and SIGHUP: ordinary events. The first asks the work to stop and keep what it has; it is the work
//! that looks at the flag.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that becomes true at the first signal. A second signal ends the process at once, for when a device hangs;
/// where the test file has a name (not on ext4, xfs, tmpfs) it then stays.
pub(crate) fn on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Order matters: the shutdown looks at the flag before this signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("cannot watch for signal {signal}"))?;
    }
    // A file size limit (ulimit -f) shall be an error of the write that meets it, not the end of the process.
    signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::new(AtomicBool::new(false)))
        .context("cannot watch for SIGXFSZ")?;
    Ok(stop)
}
