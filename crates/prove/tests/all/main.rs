//! The recorder and the explorer, from outside.

mod agreement;
mod held;
#[path = "../../../crash/tests/rules/history.rs"]
mod history;
mod recorded;
mod smaller;
mod traced;
mod windows;
