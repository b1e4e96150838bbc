//! The recorder and the explorer, from outside.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agreement;
mod bars;
mod held;
#[path = "../../crash/tests/rules/history.rs"]
mod history;
mod injected;
mod judged;
mod known_roles;
mod mounted;
mod proved;
mod recorded;
mod session;
mod smaller;
mod traced;
mod windows;
mod witnessed;

use plumb_crash::Promise;
use plumb_prove::explore::{Explorer, Limits};
use plumb_prove::recording::Recording;

/// An honest drive with a volatile cache, all of the recording, and the usual limits.
fn explorer(recording: &Recording) -> Explorer<'_> {
    Explorer {
        recording,
        from: 0,
        until: usize::MAX,
        promise: Promise::VOLATILE,
        limits: Limits::default(),
        seed: 1,
    }
}
