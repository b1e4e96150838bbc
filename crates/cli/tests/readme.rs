//! Every command of the README is one that plumb takes: those that change nothing of the machine are run, in their order
//! and with smaller figures.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::common::{plumb, said, scratch};

/// What is not run here: it builds, changes disks, or needs root.
const NOT_RUN: [&str; 6] = [
    "cargo run ",
    "cargo install ",
    "cargo xtask ",
    "plumb policy apply ",
    "plumb policy rollback ",
    "sudo ",
];

/// The lines of the blocks that are commands, without their remarks.
fn commands() -> Vec<String> {
    let mut is_commands = false;
    let mut found = Vec::new();
    for line in include_str!("../../../README.md").lines() {
        if line.starts_with("```") {
            is_commands = line == "```sh";
        } else if is_commands {
            found.push(line.split("  #").next().unwrap().trim().to_owned());
        }
    }
    found.retain(|line| !line.is_empty());
    found
}

/// The same command with little to do, and a drive of a name that no other test has.
fn smaller(line: &str, drive: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let is_simulated = line.contains("sim:");
    for at in 0..words.len() {
        let word = words[at].clone();
        let before = at.checked_sub(1).map(|before| words[before].clone());
        words[at] = match (before.as_deref(), word.as_str()) {
            // Both are of a drive's own time, and fit to each other.
            (Some("--budget" | "--duration"), _) if is_simulated && line.starts_with("plumb compare") => word,
            (Some("--budget"), _) => "30s".to_owned(),
            (Some("--duration"), _) if is_simulated => "1s".to_owned(),
            (Some("--duration"), _) => "200ms".to_owned(),
            (Some("--size"), _) => "16M".to_owned(),
            (_, "--size=1g") => "--size=16m".to_owned(),
            (_, "--runtime=10") => "--runtime=1".to_owned(),
            (_, "-c1G") => "-c16M".to_owned(),
            (_, "-d10") => "-d1".to_owned(),
            (_, "-s10") => "-s1".to_owned(),
            (_, "old") => drive.to_owned(),
            _ => word,
        };
    }
    if line.starts_with("plumb check") {
        words.push("--seconds 1 --size 16M".to_owned());
    }
    if line.starts_with("plumb load load.toml") {
        words.push("--duration 200ms".to_owned());
    }
    if line.starts_with("plumb compare") && !line.contains("--duration") {
        words.push("--duration 100ms".to_owned());
    }
    words.join(" ")
}

/// A server that is ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn its_commands_run() {
    let (place, home) = (scratch(), scratch());
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_plumb"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let drive = format!("readme-{}", std::process::id());
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(place.path()).env("PATH", &path).env("HOME", home.path());
        shell
    };
    let mut server = None;
    let commands = commands();
    assert!(commands.len() > 30, "{commands:#?}");
    for line in commands.iter().filter(|line| !NOT_RUN.iter().any(|prefix| line.starts_with(prefix))) {
        let typed = smaller(line, &drive);
        if let Some(foreground) = typed.strip_suffix(" &") {
            let mut child = shell(&format!("exec {foreground}")).stdout(Stdio::piped()).spawn().unwrap();
            let mut first = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
            assert!(!first.is_empty(), "{typed} says nothing");
            server = Some(Server(child));
            continue;
        }
        let output = shell(&typed).output().unwrap();
        // What a machine's disks are is for the machine to say.
        let expected: &[i32] = if line.starts_with("plumb policy") { &[0, 1, 3, 4] } else { &[0, 1] };
        let code = output.status.code().unwrap_or(-1);
        assert!(expected.contains(&code), "{typed}: {}", said(&output));
        let is_silent = line.contains(" > ")
            || line.starts_with("mkdir")
            || line.contains("manual")
            || line.contains("-o ");
        assert!(is_silent || !output.stdout.is_empty() || code > 1, "{typed}: {}", said(&output));
    }
    drop(server);
    assert!(place.path().join("plumb-runs").is_dir() && place.path().join("page.html").is_file());
    assert!(home.path().join(".local/share/man/man1/plumb-check.1").is_file());
}

#[test]
fn the_commands_it_lists_are_those_that_there_are() {
    let help = plumb().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let readme = include_str!("../../../README.md");
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(readme.contains(&format!("plumb {name}")) || readme.contains(&format!("`{name}")), "{name}");
    }
}
