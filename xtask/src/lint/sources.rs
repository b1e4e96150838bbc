//! Rules on the text of the sources that neither the compiler nor clippy checks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::offence::Offence;
use crate::workspace::tracked;

/// Places where unsafe code is permitted: the crate that talks to the kernel, the aligned buffers, and
/// exports.
const UNSAFE_HOMES: [&str; 3] = ["crates/linux/", "crates/block/src/buffer.rs", "crates/serve/"];

/// Places where the clocks of the machine may be read: the clocks that are passed in, and the time written
/// into an inode.
const CLOCK_HOMES: [&str; 2] = ["crates/block/src/clock.rs", "crates/prove/src/trace/writeback.rs"];

/// Reads every Rust source of the tree and judges it.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let mut found = Vec::new();
    // This file contains all the words that it searches for.
    let own = |name: &String| name.ends_with("lint/sources.rs");
    for name in tracked(root, &[".rs"])?.into_iter().filter(|name| !own(name)) {
        let text = fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
        found.extend(judge(&name, &text));
        let tuples = if is_test(&name) { 0 } else { tuple_parameters(&text) };
        if tuples > 0 {
            let what = format!(
                "{tuples} parameters are tuples: name the parts in a struct, or give each a parameter"
            );
            found.push(Offence::new(name, what));
        }
    }
    Ok(found)
}

/// Returns the offences of one file.
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

/// Returns the offence of one line, if there is one.
fn offence_of_line(name: &str, line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or(line);
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
    let reads_clock = ["Instant::now", "SystemTime::now"].iter().any(|call| code.contains(call));
    if reads_clock && is_production(name) && !CLOCK_HOMES.contains(&name) {
        return Some("reads the clock of the machine: take a `Clock`, a time or `unix_time` of block");
    }
    if is_test(name) && code.contains("thread::sleep") {
        return Some("a sleep in a test: wait for the event itself");
    }
    None
}

/// Returns true if a source contains only tests.
fn is_test(name: &str) -> bool {
    name.contains("tests/") || name.ends_with("tests.rs")
}

/// Returns true if a source is part of a crate, outside its tests and benchmarks.
fn is_production(name: &str) -> bool {
    name.starts_with("crates/") && name.contains("/src/") && !is_test(name)
}

/// Counts the parameters of functions in `text`, before its tests, that are tuples:
/// `(a, b): (A, B)` or `a: (A, B)`.
fn tuple_parameters(text: &str) -> usize {
    let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines: Vec<&str> = before_tests.lines().map(|line| line.split("//").next().unwrap_or(line)).collect();
    // An arrow is not a closing bracket.
    let code = lines.join("\n").replace("->", "  ");
    let functions = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(char::is_alphanumeric));
    functions.map(|(at, _)| parameters(&code[at..]).iter().filter(|one| is_tuple(one)).count()).sum()
}

/// Returns true if a parameter is a tuple, or a reference to one.
fn is_tuple(parameter: &str) -> bool {
    let Some((_, kind)) = parameter.rsplit_once(": ") else { return false };
    let kind = kind.trim_start_matches('&').trim_start_matches("mut ");
    kind.starts_with('(') && kind.contains(',') && !kind.starts_with("(impl ") && !kind.starts_with("(dyn ")
}

/// Returns the parameters of the function at the start of `code`, which may have generic parameters.
fn parameters(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // Start of the current parameter, within the list.
    let mut begins = None;
    let mut depth = 0;
    for (at, letter) in code.char_indices() {
        match letter {
            '(' if depth == 0 && begins.is_none() => begins = Some(at + 1),
            '(' | '[' | '<' => depth += 1,
            ')' if depth == 0 => {
                found.extend(begins.map(|begins| &code[begins..at]));
                break;
            }
            ')' | ']' | '>' => depth -= 1,
            ',' if depth == 0 => {
                found.extend(begins.map(|begins| &code[begins..at]));
                begins = begins.map(|_| at + 1);
            }
            '{' | ';' if depth == 0 => break,
            _ => {}
        }
    }
    found
}

/// Returns true if a line calls a flush or sync and ignores the result.
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
    fn tuples_in_place_of_parameters_are_counted() {
        let text = "fn a(x: u8, (b, c): (u8, u8)) {}\n    pub fn d<F: Fn(u8) -> u8>(&self, &(e, f): &(u8, u8), g: F) {}\n\
            fn h(x: (u8, u8), y: &[(u8, u8)]) -> (u8, u8) {}\n// fn i((j, k): (u8, u8))\nlet of = |(l, m): (u8, u8)| l;\n\
            #[cfg(test)]\nmod tests {\n    fn n((o, p): (u8, u8)) {}\n}\n";
        assert_eq!(tuple_parameters(text), 3);
    }

    #[test]
    fn unsafe_code_stays_at_home() {
        let line = "let x = unsafe { *p };";
        assert!(offence_of_line("crates/load/src/a.rs", line).is_some());
        assert_eq!(offence_of_line("crates/linux/src/uring/ring.rs", line), None);
        assert_eq!(offence_of_line("crates/load/src/a.rs", "//! It has no unsafe code."), None);
    }

    #[test]
    fn the_clock_of_the_machine_is_read_in_one_place() {
        let offence = |name| offence_of_line(name, "let began = Instant::now();");
        assert!(offence("crates/prove/src/proof/prover.rs").is_some());
        for name in [
            "crates/block/src/clock.rs",
            "crates/prove/benches/rates.rs",
            "crates/a/src/tests.rs",
            "xtask/src/a.rs",
        ] {
            assert_eq!(offence(name), None, "{name}");
        }
    }

    #[test]
    fn a_file_opens_with_what_lives_there() {
        assert_eq!(judge("a.rs", "use std::fs;\n").len(), 1);
        assert!(judge("a.rs", "//! Why.\n").is_empty());
    }
}
