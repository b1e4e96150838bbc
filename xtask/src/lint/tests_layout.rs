//! Check that every test runs: the integration tests of a crate are one program, whose `tests/main.rs` names
//! each file next to it.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::offence::Offence;
use crate::workspace::tracked;

/// Checks the tests directory of every crate.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let mut found = Vec::new();
    for name in tracked(root, &[".rs"])? {
        if let Some((crate_tests, module)) = module_of(&name) {
            // Without main.rs each file is a program of its own, which cargo finds.
            let main = fs::read_to_string(root.join(format!("{crate_tests}/main.rs")));
            let is_named = |main: String| names(&main, module) || is_in_library(root, crate_tests, module);
            if main.is_ok_and(|main| !is_named(main)) {
                found.push(Offence::new(
                    &name,
                    format!("{crate_tests}/main.rs does not name it, so it is not run"),
                ));
            }
        }
    }
    Ok(found)
}

/// Returns the tests directory and the module of a file directly in it: `crates/X/tests/NAME.rs` or
/// `.../NAME/mod.rs`.
fn module_of(name: &str) -> Option<(&str, &str)> {
    let at = name.find("/tests/")? + "/tests".len();
    let (directory, file) = (&name[..at], &name[at + 1..]);
    let module = file.strip_suffix("/mod.rs").or_else(|| file.strip_suffix(".rs"))?;
    (directory.matches('/').count() == 2 && module != "main" && !module.contains('/'))
        .then_some((directory, module))
}

/// Returns true if the crate's library includes a module of its tests, to share it with other tests.
fn is_in_library(root: &Path, crate_tests: &str, module: &str) -> bool {
    let library = crate_tests.strip_suffix("tests").map(|of| root.join(of).join("src/lib.rs"));
    let text = library.and_then(|library| fs::read_to_string(library).ok()).unwrap_or_default();
    text.contains(&format!("#[path = \"../tests/{module}/mod.rs\"]"))
}

/// Returns true if the root of a program declares the module.
fn names(main: &str, module: &str) -> bool {
    main.lines().any(|line| line.strip_suffix(';').and_then(|line| line.strip_prefix("mod ")) == Some(module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_the_modules_that_they_stand_for() {
        assert_eq!(module_of("crates/x/tests/a.rs"), Some(("crates/x/tests", "a")));
        assert_eq!(module_of("crates/x/tests/a/mod.rs"), Some(("crates/x/tests", "a")));
        for name in [
            "crates/x/tests/main.rs",
            "crates/x/tests/a/b.rs",
            "crates/x/src/a.rs",
            "crates/x/src/y/tests/a.rs",
        ] {
            assert_eq!(module_of(name), None, "{name}");
        }
        assert!(names("//! x\n\nmod a;\nmod b;\n", "b"));
        assert!(!names("mod ab;\n// mod b;\n", "b"));
    }
}
