//! Programs that tests run, of the system or made by themselves.
//!
//! A test that wrote a program itself could not be sure that it can be run: a child that another thread of
//! the test program starts meanwhile inherits the open file until it executes its own, and for that time the
//! kernel refuses to run the file (ETXTBSY, execve(2)). Here a child writes it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs a program; its output, or why not.
///
/// # Errors
/// If it cannot be started, or fails: with what it said.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Returns true if fio is installed; says so if not.
pub fn fio_is_here() -> bool {
    run("fio", &["--version"]).inspect_err(|why| crate::skip(why)).is_ok()
}

/// Returns one test at a time: while one starts a program, the child holds a copy of the other's exclusive
/// descriptor for a moment, and opening the device again fails with EBUSY. Every test that runs a program or
/// claims a device holds this.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a shell script that everybody may run: `body` after its first line.
///
/// # Panics
/// If it cannot be written.
pub fn write_script(path: &Path, body: &str) {
    let mut child = Command::new("sh")
        .args(["-ec", "cat > \"$0\"; chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(format!("#!/bin/sh\n{body}\n").as_bytes()).expect("the script is taken");
    drop(input);
    assert!(child.wait().expect("sh ends").success(), "cannot write {}", path.display());
}

/// Copies a program, for everybody to run.
///
/// # Panics
/// If it cannot be copied.
pub fn copy(from: &Path, to: &Path) {
    let status =
        Command::new("install").args(["-m", "755"]).arg(from).arg(to).status().expect("install starts");
    assert!(status.success(), "cannot copy {} to {}", from.display(), to.display());
}
