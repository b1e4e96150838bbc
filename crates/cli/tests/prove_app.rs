//! `plumb prove app` and `replay`: what makes no sense is told, and nothing is left behind.

use std::process::{Command, Output};

use tempfile::TempDir;

use crate::common::{entries, plumb, said, scratch};
use crate::load_support::stderr;

/// `plumb prove` in `place`, which is the directory for temporary files too: nothing may stay in it.
fn prove(place: &TempDir, arguments: &[&str]) -> Output {
    let temporary = place.path().join("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command: Command = plumb();
    command.arg("prove").args(arguments).current_dir(place.path()).env("TMPDIR", &temporary);
    let output = command.output().unwrap();
    assert_eq!(entries(&temporary), Vec::<String>::new(), "left behind by {arguments:?}: {}", said(&output));
    output
}

#[test]
fn what_makes_no_sense_is_told_before_anything_is_done() {
    let place = scratch();
    for (typed, code, why) in [
        ("app", 2, "--subject"),
        ("app --subject sqlit", 2, "sqlite"),
        ("app --subject sqlite:journal=wel", 2, "journal"),
        ("app --subject sqlite --drive volatil", 2, "write-through"),
        ("app --subject sqlite --drive volatile,volatile", 2, "twice"),
        ("app --subject sqlite --fs zfs", 2, "ext4"),
        ("app --subject sqlite --run true --check true", 2, "cannot be used with"),
        ("app --run true", 2, "--check"),
        ("app --run true --check true --ack fd:1", 2, "fd:N"),
        ("app --subject sqlite --size 1M", 2, "at least"),
        ("app --subject sqlite --target ack:1", 2, "EVENT..EVENT"),
        ("app --subject sqlite --drive lying:8", 4, "--mount-here"),
        ("app --recording /dev/null", 2, "first line"),
        ("app --recording nothing", 2, "nothing"),
        ("app --recording /dev/null --subject sqlite", 2, "cannot be used with"),
        ("app --resume nothing", 2, "nothing"),
        ("replay nothing", 2, "expected the directory of a proof"),
    ] {
        let output = prove(&place, &typed.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{typed}: {}", said(&output));
        assert!(stderr(&output).contains(why), "{typed}: {}", said(&output));
    }
    assert_eq!(entries(place.path()), ["temporary"]);
}
