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
