//! Check of the table of crates in docs/ARCHITECTURE.md: each crate uses exactly the crates named there, and
//! all of those are above it in the table. The additional crates of its tests have their own column.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::offence::Offence;

const DOCUMENT: &str = "docs/ARCHITECTURE.md";

/// The first line of the table.
const HEAD: &str = "| Crate | Its room | Uses | Its tests use too |";

/// Maximum number of crates, not counting the crate that only tests use; more are too many to keep in mind.
const CRATES_MAX: usize = 26;

/// The crate that only tests use.
const TESTKIT: &str = "testkit";

/// Crate of the workspace, and the workspace crates that it uses.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    name: String,
    uses: BTreeSet<String>,
    tests_use: BTreeSet<String>,
}

/// Reads the workspace's own dependencies from cargo and compares them with the table.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let document = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    judge(&document, &crate::workspace::cargo_metadata(root, &["--no-deps"])?)
}

fn judge(document: &str, metadata: &Value) -> Result<Vec<Offence>> {
    let (told, built) = (table(document), rows_of(metadata)?);
    let mut found = Vec::new();
    let mut offence = |what: String| found.push(Offence::new(DOCUMENT, what));
    let crates = told.iter().filter(|row| row.name != TESTKIT).count();
    if crates > CRATES_MAX {
        offence(format!("{crates} crates, over {CRATES_MAX}"));
    }
    for (index, row) in told.iter().enumerate() {
        for used in &row.uses {
            if !told[..index].iter().any(|above| above.name == *used) {
                offence(format!("`{}` uses `{used}`, which does not stand above it", row.name));
            }
        }
        if !built.iter().any(|built| built.name == row.name) {
            offence(format!("`{}` is not a crate of the workspace", row.name));
        }
    }
    for row in built {
        match told.iter().find(|told| told.name == row.name) {
            None => offence(format!("`{}` has no line that begins below {HEAD:?}", row.name)),
            Some(told) if *told != row => {
                offence(format!(
                    "`{0}` {1}, but the table says that it {2}",
                    row.name,
                    said(&row),
                    said(told)
                ));
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

/// Returns the content of a row.
fn said(row: &Row) -> String {
    let list = |names: &BTreeSet<String>| match names.len() {
        0 => "nothing".to_owned(),
        _ => names.iter().cloned().collect::<Vec<_>>().join(", "),
    };
    format!("uses {}; in its tests also {}", list(&row.uses), list(&row.tests_use))
}

/// Returns the rows of the table of crates; none if there is no such table.
fn table(document: &str) -> Vec<Row> {
    let rows = document.lines().skip_while(|line| *line != HEAD).skip(2);
    rows.take_while(|line| line.starts_with('|')).map(row).collect()
}

fn row(line: &str) -> Row {
    let mut cells = line.split('|').skip(1).map(quoted);
    let mut next = || cells.next().unwrap_or_default();
    let name = next().pop_first().unwrap_or_default();
    next();
    Row { name, uses: next(), tests_use: next() }
}

/// Returns the words of a cell between backquotes.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the crates under crates/, according to cargo.
fn rows_of(metadata: &Value) -> Result<Vec<Row>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let is_crate = |name: &Value| name != "xtask" && name != "plumb-examples";
    let ours = packages.iter().filter(|package| is_crate(&package["name"]));
    Ok(ours.map(row_of).collect())
}

fn row_of(package: &Value) -> Row {
    let name = short(package["name"].as_str().unwrap_or_default());
    let mut row = Row { name: name.to_owned(), ..Row::default() };
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let used = dependency["name"].as_str().unwrap_or_default();
        if !used.starts_with("plumb") || short(used) == name {
            continue;
        }
        let column = if dependency["kind"] == "dev" { &mut row.tests_use } else { &mut row.uses };
        column.insert(short(used).to_owned());
    }
    // A crate that is used anyway is listed again for tests only because of a feature.
    let uses = &row.uses;
    row.tests_use.retain(|used| !uses.contains(used));
    row
}

/// Returns the name of a crate's directory.
fn short(name: &str) -> &str {
    if name == "plumb" { "cli" } else { name.strip_prefix("plumb-").unwrap_or(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "| Crate | Its room | Uses | Its tests use too |\n|---|---|---|---|\n\
        | `testkit` | x | nothing | nothing |\n\
        | `block` | `Device` | nothing | `testkit` |\n\
        | `cli` | x | `block` | nothing |\n\nand so on\n";

    fn metadata(cli_uses: &str) -> Value {
        serde_json::json!({"packages": [
            {"name": "plumb-testkit", "dependencies": []},
            {"name": "plumb-block", "dependencies": [
                {"name": "plumb-block", "kind": "dev"}, {"name": "plumb-testkit", "kind": "dev"}]},
            {"name": "plumb", "dependencies": [
                {"name": "libc", "kind": null}, {"name": cli_uses, "kind": null}, {"name": cli_uses, "kind": "dev"}]},
            {"name": "xtask", "dependencies": []},
        ]})
    }

    #[test]
    fn a_true_table_has_no_offence() {
        assert_eq!(judge(TABLE, &metadata("plumb-block")).unwrap(), []);
    }

    #[test]
    fn an_untold_use_and_an_upward_one_are_found() {
        let found = judge(TABLE, &metadata("plumb-testkit")).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("`cli` uses testkit; in its tests also nothing"), "{found:?}");
        let upward = TABLE.replace("`Device` | nothing", "`Device` | `cli`");
        let found = judge(&upward, &metadata("plumb-block")).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].what.contains("does not stand above it"), "{found:?}");
    }

    #[test]
    fn a_crate_without_a_line_and_a_line_without_a_crate_are_found() {
        let found = judge(&TABLE.replace("`cli`", "`attic`"), &metadata("plumb-block")).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(judge("no table", &metadata("plumb-block")).unwrap().len() == 3);
    }
}
