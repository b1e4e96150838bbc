//! Programs that tests make and then run.
//!
//! A test that wrote one itself could not be sure that it can be run: a child that another thread of the test
//! program starts meanwhile inherits the open file until it executes its own, and for that time the kernel
//! refuses to run the file (ETXTBSY, execve(2)). Here a child writes it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

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
