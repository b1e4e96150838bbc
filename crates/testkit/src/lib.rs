//! How a test reports that it cannot run on this machine; programs that it runs or makes; loop devices and
//! mounts; hosts that are reached by ssh; pages in a browser.
//!
//! A test that cannot run on this machine calls [`skip`] and returns. It says so on stderr, and
//! `cargo xtask test` counts it as skipped, not as passed.

pub mod browser;
pub mod loop_device;
pub mod program;
pub mod schema;
pub mod sshd;

use std::fs::OpenOptions;
use std::io::Write;

/// The variable that names the file in which `cargo xtask test` collects what was skipped.
pub const SKIPPED: &str = "PLUMB_SKIPPED";

/// Says that the running test cannot run here, and why. The test must return right after.
///
/// # Panics
/// If the collecting file cannot be written: a skip that is not counted would pass for a success.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(file) = std::env::var_os(SKIPPED) {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&file)
            .and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes()))
            .expect("the file of skipped tests must be writable");
    }
}
