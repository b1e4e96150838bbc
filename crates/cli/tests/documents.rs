//! Tests of the README and the guides: every command is run, in order, and its output is compared.
//!
//! A block marked `sh` has commands. A block marked `console` has commands after `$ ` with their output: all
//! of it, or parts separated by lines of `...`. Line breaks may differ, and so may numbers, except those of
//! `plumb study`, which come from simulated drives and a fixed seed. A comment `<!-- of one machine -->`
//! before a block means that only the words before the first colon of each line are the same everywhere.
//! Commands run with smaller sizes and times, unless `PLUMB_DOCUMENTS` is `whole` (`cargo xtask docs`).

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{plumb, said, scratch};

/// Prefixes of commands that are not run: they build, change disks or boot parameters, or need other
/// machines.
const NOT_RUN: [&str; 8] = [
    "cargo run ",
    "cargo install ",
    "cargo xtask ",
    "plumb policy apply ",
    "plumb policy rollback ",
    "sudo ",
    "mount ",
    "umount ",
];

/// Names of drives and caches in the documents, which are replaced because servers are found by name and
/// other tests run simultaneously.
const NAMES: [&str; 2] = ["db", "old"];

/// Line that names the rules that apply to a run.
const RULES: &str = "Worth knowing:";

/// Command of a document.
struct TypedCommand {
    line: String,
    /// Lines of its output; empty where the document shows none.
    expected: Vec<String>,
    /// True if figures, names and layers depend on the machine.
    is_of_one_machine: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the commands of a document, without comments.
fn commands(document: &str) -> Vec<TypedCommand> {
    let mut found: Vec<TypedCommand> = Vec::new();
    let (mut block, mut is_of_one_machine) = ("", false);
    for line in document.lines() {
        let command = match block {
            "" => {
                block =
                    line.strip_prefix("```").map_or("", |kind| if kind.is_empty() { "text" } else { kind });
                is_of_one_machine |= line == "<!-- of one machine -->";
                continue;
            }
            _ if line == "```" => {
                (block, is_of_one_machine) = ("", false);
                continue;
            }
            "sh" => Some(line),
            "console" => line.strip_prefix("$ "),
            _ => continue,
        };
        match (command, found.last_mut()) {
            (Some(command), _) => {
                let line = command.split("  #").next().unwrap_or_default().trim().to_owned();
                found.push(TypedCommand { line, expected: Vec::new(), is_of_one_machine });
            }
            // More rules may apply on a busy machine.
            (None, Some(typed)) if line.starts_with(RULES) => {
                typed.expected.extend([RULES, "..."].map(str::to_owned));
            }
            (None, Some(typed)) => typed.expected.push(line.to_owned()),
            (None, None) => panic!("output before any command: {line}"),
        }
    }
    found.retain(|typed| !typed.line.is_empty());
    found
}

/// Returns a shorter version of a command.
fn smaller(line: &str) -> String {
    // Simulated drives run in virtual time, which is short, except for seven runs of whole clusters.
    if line.contains("sim:") {
        return match line.starts_with("plumb fleet load") {
            true => line.replace("--duration 10s", "--duration 2s"),
            false => line.to_owned(),
        };
    }
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for at in 0..words.len() {
        let word = words[at].clone();
        let before = at.checked_sub(1).map(|before| words[before].clone());
        words[at] = match (before.as_deref(), word.as_str()) {
            (Some("--budget"), _) => "15s".to_owned(),
            (Some("--duration"), _) => "200ms".to_owned(),
            (Some("--size"), size) if size.ends_with('G') => "16M".to_owned(),
            (_, "--size=1g") => "--size=16m".to_owned(),
            (_, "--runtime=10") => "--runtime=1".to_owned(),
            (_, "-c1G") => "-c16M".to_owned(),
            (_, "-d10") => "-d1".to_owned(),
            (_, "-s10") => "-s1".to_owned(),
            _ => word,
        };
    }
    if line.starts_with("plumb check") {
        words.push("--seconds 1 --size 16M".to_owned());
    }
    if line.contains("plumb prove app") {
        words.push("--recordings 1".to_owned());
        // A busy machine takes too long to explore everything that is shown.
        let is_short = line.contains("plumb prove app --subject");
        words.push(if is_short { "--budget 2s" } else { "--budget 20m --recovery-depth 1" }.to_owned());
    }
    if line.starts_with("plumb load load.toml") {
        words.push("--duration 200ms".to_owned());
    }
    if line.starts_with("plumb compare") && line.contains("--factor") && !line.contains("--duration") {
        words.push("--duration 100ms".to_owned());
    }
    words.join(" ")
}

/// Returns the words of a text independent of machine and width: numbers become `N`, and their units are
/// removed.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 14] =
        ["ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "KiB/s", "MiB/s", "GiB/s", "IOPS", "–"];
    let is_number = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_matches(|c: char| ",;.()".contains(c));
        match is_number(word) || word == "–" {
            true => words.push("N".to_owned()),
            false if words.last().is_some_and(|last| last == "N") && UNITS.contains(&unit) => {}
            false => words.push(word.to_owned()),
        }
    }
    // A file system may discard blocks of removed files at any time.
    let discards = ["N", "discards/s", "of", "N"];
    while let Some(at) = words.windows(discards.len()).position(|window| window == discards) {
        words.drain(at..at + discards.len());
    }
    words
}

/// Returns the words of a text independent of its width.
fn exact_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Finds the parts of `expected`, separated by lines of `...`, in order in `printed`, comparing their
/// `words`.
///
/// # Errors
/// Returns the first missing part.
fn compare(expected: &[String], printed: &str, words: fn(&str) -> Vec<String>) -> Result<(), String> {
    let printed = words(printed);
    let mut rest = &printed[..];
    for part in expected.split(|line| line.trim() == "...") {
        let sought = words(&part.join("\n"));
        if sought.is_empty() {
            continue;
        }
        let at = rest.windows(sought.len()).position(|window| window == sought);
        let Some(at) = at else { return Err(part.join("\n")) };
        rest = &rest[at + sought.len()..];
    }
    Ok(())
}

/// Finds the text before the first colon of each line of `expected`, in order.
fn compare_labels(expected: &[String], printed: &str) -> Result<(), String> {
    let labels = expected.iter().filter_map(|line| Some(line.split_once(": ")?.0));
    let lines: Vec<_> = labels.flat_map(|label| [label.to_owned(), "...".to_owned()]).collect();
    compare(&lines, &printed.replace(':', " "), words)
}

/// Server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Runs the commands of a document in a new directory, and compares their output.
fn run(document: &str) -> tempfile::TempDir {
    let (place, home) = (scratch(), scratch());
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let path = format!(
        "{}:{}",
        Path::new(env!("CARGO_BIN_EXE_plumb")).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let suffix = format!("-{}-{}", std::process::id(), document.len());
    let is_whole = std::env::var("PLUMB_DOCUMENTS").is_ok_and(|how| how == "whole");
    let mut servers = Vec::new();
    for typed in commands(&text) {
        let line = typed.line.strip_prefix("sudo ").filter(|_| can_prove(&typed.line)).unwrap_or(&typed.line);
        if NOT_RUN.iter().any(|prefix| line.starts_with(prefix)) {
            continue;
        }
        let line = if is_whole { line.to_owned() } else { smaller(line) };
        let own =
            |word: &str| if NAMES.contains(&word) { format!("{word}{suffix}") } else { word.to_owned() };
        let line = line.split(' ').map(own).collect::<Vec<_>>().join(" ");
        let mut shell = Command::new("sh");
        shell.current_dir(place.path()).env("PATH", &path).env("HOME", home.path());
        shell.env("STATE_DIRECTORY", home.path()).env("COLUMNS", "100");
        if let Some(foreground) = line.strip_suffix(" &") {
            let mut child =
                shell.args(["-c", &format!("exec {foreground}")]).stdout(Stdio::piped()).spawn().unwrap();
            let mut first = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
            assert!(!first.is_empty(), "{document}: {line} says nothing");
            servers.push(Server(child));
            continue;
        }
        let output = shell.args(["-c", &line]).output().unwrap();
        // Findings are valid results, the disks depend on the machine, and a short proof may end before it
        // has judged every state.
        let expected: &[i32] = match line.split(' ').nth(1) {
            Some("policy") => &[0, 1, 3, 4],
            Some("prove") => &[0, 1, 3],
            _ => &[0, 1],
        };
        let code = output.status.code().unwrap_or(-1);
        assert!(expected.contains(&code), "{document}: {line}: {}", said(&output));
        let printed = String::from_utf8_lossy(&output.stdout).replace(&suffix, "");
        let compared = match typed.is_of_one_machine {
            true => compare_labels(&typed.expected, &printed),
            false if is_simulated(&line) => compare(&typed.expected, &printed, exact_words),
            false => compare(&typed.expected, &printed, words),
        };
        if let Err(missing) = compared {
            panic!("{document}: {line}\ndoes not print\n{missing}\nbut\n{printed}");
        }
    }
    place
}

/// Returns true if the command measures only simulated drives in virtual time.
fn is_simulated(line: &str) -> bool {
    line.starts_with("plumb study ") && !line.contains(" --on ")
}

/// Returns true if this is a proof that this machine can make.
fn can_prove(line: &str) -> bool {
    let may = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if line.contains("prove app") && !may {
        plumb_testkit::skip(&format!("{line}: takes root and /dev/fuse"));
    }
    line.contains("prove app") && may
}

macro_rules! documents {
    ($($name:ident: $path:literal,)*) => {
        $(#[test] fn $name() { run($path); })*
        const GUIDES: &[&str] = &[$($path),*];
    };
}

documents! {
    guide_check: "docs/guide/check.md",
    guide_load: "docs/guide/load.md",
    guide_compare: "docs/guide/compare.md",
    guide_observe: "docs/guide/observe.md",
    guide_drives: "docs/guide/drives.md",
    guide_prove: "docs/guide/prove.md",
    guide_policy: "docs/guide/policy.md",
    guide_cache: "docs/guide/cache.md",
    guide_fleet: "docs/guide/fleet.md",
    guide_studies: "docs/guide/studies.md",
    questions: "docs/QUESTIONS.md",
}

#[test]
fn readme() {
    let place = run("README.md");
    assert!(place.path().join("plumb-runs").is_dir());
}

#[test]
fn every_guide_is_run_and_short() {
    let guides = std::fs::read_dir(root().join("docs/guide")).unwrap();
    for guide in guides.map(|guide| guide.unwrap().file_name().into_string().unwrap()) {
        let path = format!("docs/guide/{guide}");
        assert!(GUIDES.contains(&path.as_str()), "{path} is not run");
        let lines = std::fs::read_to_string(root().join(&path)).unwrap().lines().count();
        assert!(lines < 150, "{path} has {lines} lines");
    }
    let lines = std::fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!((90..=120).contains(&lines), "README.md has {lines} lines");
}

#[test]
fn outputs_are_compared_word_by_word() {
    let printed = "  fdatasync   1.5 ms  12\n  is\n  slow\nthe end";
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(compare(&lines("fdatasync 22 µs 7 is slow\n...\nend"), printed, words), Ok(()));
    assert_eq!(
        compare(&lines("fdatasync 22 µs 7 is fast"), printed, words),
        Err("fdatasync 22 µs 7 is fast".to_owned())
    );
    assert!(compare(&lines("the end\n...\nslow"), printed, words).is_err(), "in another order");
    assert_eq!(compare(&lines("fdatasync 1.5 ms 12 is"), printed, exact_words), Ok(()));
    assert!(compare(&lines("fdatasync 22 ms 12 is"), printed, exact_words).is_err(), "another number");
}

#[test]
fn the_commands_it_lists_are_those_that_there_are() {
    let help = plumb().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(readme.contains(&format!("plumb {name}")) || readme.contains(&format!("`{name}")), "{name}");
    }
}

#[test]
fn the_program_and_its_documents_name_one_version() {
    let output = plumb().arg("--version").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.trim().strip_prefix("plumb ").unwrap().split_whitespace().next().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let changes = read("CHANGELOG.md");
    let heading = changes.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert!(heading.starts_with(version), "CHANGELOG.md begins with {heading}, the program is {version}");
    let collection = read("integrations/ansible/galaxy.yml");
    assert!(collection.lines().any(|line| line == format!("version: {version}")), "{collection}");
}
