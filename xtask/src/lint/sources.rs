//! Rules on the text of the sources that neither the compiler nor clippy knows.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::offence::Offence;
use crate::workspace::tracked;

/// Where unsafe code may live: the crate that talks to the kernel, the aligned buffers, and exports.
const UNSAFE_HOMES: [&str; 3] = ["crates/linux/", "crates/block/src/buffer.rs", "crates/serve/"];

/// Reads every Rust source of the tree and judges it.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let mut found = Vec::new();
    // This file is full of the words that it looks for.
    let own = |name: &String| name.ends_with("lint/sources.rs");
    for name in tracked(root, &[".rs"])?.into_iter().filter(|name| !own(name)) {
        let text = fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
        found.extend(judge(&name, &text));
    }
    Ok(found)
}

/// The offences of one file.
fn judge(name: &str, text: &str) -> Vec<Offence> {
    let mut found = Vec::new();
    if !text.starts_with("//!") && !text.starts_with("#!") {
        found.push(Offence::new(name, "does not open with `//!`: say what lives here and why"));
    }
    for (index, line) in text.lines().enumerate() {
        if let Some(what) = offence_of_line(name, line) {
            found.push(Offence::new(format!("{name}:{}", index + 1), what));
        }
    }
    found
}

/// What is wrong with one line, if anything.
fn offence_of_line(name: &str, line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or(line);
    let is_test = name.contains("tests/") || name.ends_with("tests.rs");
    if code.contains("unsafe ") && !UNSAFE_HOMES.iter().any(|home| name.starts_with(home)) {
        return Some("unsafe code outside its homes (crates/linux, block's buffers, crates/serve)");
    }
    if drops_a_flush(code) {
        return Some("the result of a flush or sync is dropped");
    }
    if code.contains("#[allow(") || code.contains("#![allow(") {
        return Some("use #[expect(..., reason = ...)]");
    }
    if ["TODO", "FIXME", "XXX:"].iter().any(|word| line.contains(word)) {
        return Some("left undone");
    }
    if is_test && code.contains("thread::sleep") {
        return Some("a sleep in a test: wait for the event itself");
    }
    None
}

/// Whether a line calls a flush or sync and throws its answer away.
fn drops_a_flush(code: &str) -> bool {
    let syncs = ["sync_data(", "sync_all(", "fsync(", "fdatasync(", "syncfs(", ".flush("];
    let Some(call) = syncs.iter().find_map(|call| code.find(call)) else { return false };
    let before = &code[..call];
    let after = &code[call..];
    before.contains("let _ =") || before.contains("drop(") || after.contains(").ok();")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_flush_is_found() {
        for line in ["let _ = file.sync_data();", "file.sync_all().ok();", "drop(store.fsync(id));"] {
            assert!(offence_of_line("crates/load/src/a.rs", line).is_some(), "{line}");
        }
        for line in ["file.sync_data()?;", "let ended = device.fdatasync(id);", "let _ = text.len();"] {
            assert_eq!(offence_of_line("crates/load/src/a.rs", line), None, "{line}");
        }
    }

    #[test]
    fn unsafe_code_stays_at_home() {
        let line = "let x = unsafe { *p };";
        assert!(offence_of_line("crates/load/src/a.rs", line).is_some());
        assert_eq!(offence_of_line("crates/linux/src/uring/ring.rs", line), None);
        assert_eq!(offence_of_line("crates/load/src/a.rs", "//! It has no unsafe code."), None);
    }

    #[test]
    fn a_file_opens_with_what_lives_there() {
        assert_eq!(judge("a.rs", "use std::fs;\n").len(), 1);
        assert!(judge("a.rs", "//! Why.\n").is_empty());
    }
}
