//! Check that every external dependency has its line in docs/DEPENDENCIES.md, and every line its dependency.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::offence::Offence;

const DOCUMENT: &str = "docs/DEPENDENCIES.md";

/// Compares the workspace's manifest with the document.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let document = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    Ok(judge(&manifest, &document))
}

fn judge(manifest: &str, document: &str) -> Vec<Offence> {
    let used = declared(manifest);
    let justified: BTreeSet<&str> =
        document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let missing = used.difference(&justified).map(|name| {
        Offence::new("Cargo.toml", format!("{name} has no line in {DOCUMENT}: say why it is here"))
    });
    let stale = justified
        .difference(&used)
        .map(|name| Offence::new(DOCUMENT, format!("{name} is justified but not used")));
    missing.chain(stale).collect()
}

/// Returns the names under `[workspace.dependencies]` that are not our own crates.
fn declared(manifest: &str) -> BTreeSet<&str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once('=')?.0.trim()))
        .filter(|name| !name.starts_with("plumb") && !name.starts_with('#'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unjustified_and_stale_are_both_found() {
        let manifest = "[workspace.dependencies]\nplumb-block = { path = \"x\" }\nserde = \"1\"\nlibc = \"0\"\n\n[x]\na = 1\n";
        let found = judge(manifest, "| `serde` | words |\n| `rand` | words |\n");
        let places: Vec<_> = found.iter().map(|offence| offence.what.split(' ').next().unwrap()).collect();
        assert_eq!(places, ["libc", "rand"]);
    }
}
