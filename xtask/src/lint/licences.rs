//! Whole tree of dependencies as cargo resolves it: licences, banned crates, crates in two versions, and
//! sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::offence::Offence;

/// Targets for which plumb is released.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Licences (SPDX) whose conditions a binary release can meet.
const LICENCES: [&str; 9] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that must not occur in the tree, with the reason.
const BANNED: [(&str, &str); 3] = [
    ("openssl-sys", "no C library beneath the binary"),
    ("tokio", "no async runtime without a measured need"),
    ("async-std", "no async runtime without a measured need"),
];

/// Crates that occur in two versions, because two libraries need different ones.
const DOUBLES: [&str; 5] = ["base64", "getrandom", "nom", "signal-hook", "syn"];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Tree of packages, as cargo reports it.
#[derive(Deserialize)]
struct Tree {
    packages: Vec<Package>,
}

#[derive(Clone, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Source; `None` for a crate of the workspace.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

/// Judges the tree of every target.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let mut packages = BTreeSet::new();
    for target in TARGETS {
        let metadata =
            crate::workspace::cargo_metadata(root, &["--all-features", "--filter-platform", target])?;
        packages.extend(Tree::deserialize(metadata).context("reading cargo metadata")?.packages);
    }
    Ok(judge(&packages))
}

fn judge(packages: &BTreeSet<Package>) -> Vec<Offence> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for package in packages {
        *versions.entry(&package.name).or_default() += 1;
        let name = format!("{} {}", package.name, package.version);
        found.extend(offences_of(package).into_iter().map(|what| Offence::new(&name, what)));
    }
    for (name, versions) in versions {
        match DOUBLES.contains(&name) {
            false if versions > 1 => found.push(Offence::new(
                name,
                format!("in {versions} versions: see `cargo tree --duplicates`, then mend it or name it in DOUBLES"),
            )),
            true if versions == 1 => {
                found.push(Offence::new(name, "named in DOUBLES, but there is one version of it"));
            }
            _ => {}
        }
    }
    found
}

/// Returns the offences of one crate.
fn offences_of(package: &Package) -> Vec<String> {
    let mut found = Vec::new();
    if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == package.name) {
        found.push(format!("not wanted: {reason}"));
    }
    match &package.source {
        None => {
            let any = |dependency: &&Dependency| dependency.req == "*" && dependency.path.is_none();
            let wild = package.dependencies.iter().filter(any);
            found.extend(wild.map(|dependency| format!("takes any version of {}", dependency.name)));
            return found;
        }
        Some(source) if source != REGISTRY => found.push(format!("comes from {source}, not from crates.io")),
        Some(_) => {}
    }
    match &package.license {
        None => found.push("states no licence".to_owned()),
        Some(licence) if !is_allowed(licence) => found.push(format!("its licence is {licence}")),
        Some(_) => {}
    }
    found
}

/// Returns true if an SPDX expression can be met with the allowed licences alone. AND binds closer than OR,
/// and the older `/` means OR. Parentheses are evaluated from the inside out.
fn is_allowed(expression: &str) -> bool {
    const YES: &str = "MIT";
    const NO: &str = "none";
    let mut left = expression.replace('/', " OR ");
    while let Some(open) = left.rfind('(') {
        let Some(length) = left[open..].find(')') else { return false };
        let verdict = if meets(&left[open + 1..open + length]) { YES } else { NO };
        left.replace_range(open..=open + length, verdict);
    }
    meets(&left)
}

/// Returns true if an expression without parentheses is allowed.
fn meets(expression: &str) -> bool {
    let allowed = |licence: &str| LICENCES.contains(&licence.trim());
    expression.split(" OR ").any(|choice| choice.split(" AND ").all(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "MIT AND (GPL-3.0 OR (ISC AND Zlib))",
        ] {
            assert!(is_allowed(licence), "{licence}");
        }
        for licence in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT AND GPL-3.0) OR MPL-2.0", "(MIT", ""] {
            assert!(!is_allowed(licence), "{licence}");
        }
    }

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some("MIT".to_owned()),
            source: Some(REGISTRY.to_owned()),
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn what_is_not_wanted_is_found() {
        let elsewhere = Package { source: Some("git+https://x".to_owned()), ..package("a", "1") };
        assert_eq!(offences_of(&elsewhere).len(), 1);
        assert_eq!(offences_of(&package("tokio", "1")).len(), 1);
        assert_eq!(offences_of(&Package { license: None, ..package("a", "1") }).len(), 1);
        let any = Dependency { name: "b".to_owned(), req: "*".to_owned(), path: None };
        assert_eq!(
            offences_of(&Package { source: None, dependencies: vec![any], ..package("a", "1") }).len(),
            1
        );
    }

    #[test]
    fn two_versions_need_to_be_named() {
        let of = |packages: &[Package]| judge(&packages.iter().cloned().collect());
        let named: Vec<Package> =
            DOUBLES.iter().flat_map(|name| [package(name, "1"), package(name, "2")]).collect();
        assert_eq!(of(&named), []);
        assert_eq!(of(&[&named[..], &[package("a", "1"), package("a", "2")]].concat()).len(), 1);
        assert_eq!(of(&named[1..]).len(), 1);
    }
}
