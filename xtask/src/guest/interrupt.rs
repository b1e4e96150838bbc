//! Ctrl-C and SIGTERM: every boot in progress is notified and ends its QEMU.
//!
//! Each boot waits for events on a channel, and an interrupt is one of these events. A second interrupt ends
//! this process at once, and QEMU with it, since it is started to die with its parent.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Callback for each interrupt.
type Listener = Box<dyn Fn() + Send>;

/// Notifies listeners of interrupts.
#[derive(Clone)]
pub(crate) struct Interrupts {
    seen: Arc<AtomicBool>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

impl Interrupts {
    /// Takes over SIGINT and SIGTERM for the rest of the process.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub(crate) fn install() -> Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        let (mut woken, wake) = UnixStream::pair().context("making a pair of sockets")?;
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal finds `seen` false and continues, the second one ends the
            // process.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&seen))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&seen)))
                .and_then(|_| signal_hook::low_level::pipe::register(signal, wake.try_clone()?))
                .context("handling interrupts")?;
        }
        let listeners: Arc<Mutex<Vec<Listener>>> = Arc::default();
        let told = Arc::clone(&listeners);
        std::thread::spawn(move || {
            let mut byte = [0];
            while woken.read_exact(&mut byte).is_ok() {
                for listener in told.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    listener();
                }
            }
        });
        Ok(Self { seen, listeners })
    }

    /// Returns true after an interrupt.
    pub(crate) fn seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }

    /// Calls `listener` at every later interrupt.
    pub(crate) fn listen(&self, listener: impl Fn() + Send + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }
}
