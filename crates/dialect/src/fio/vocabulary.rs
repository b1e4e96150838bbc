//! The names of fio's options, as data: `vocabulary.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::Error;
use plumb_block::nearest;

/// An option that fio knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// Its main name.
    pub(super) name: &'static str,
    /// It may stand without a value and then holds.
    pub(super) stands_alone: bool,
}

static KNOWN: LazyLock<BTreeMap<&'static str, Known>> = LazyLock::new(|| {
    let lines = include_str!("vocabulary.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(names_of).collect()
});

/// One line: the main name, other names, and `!` if the option may stand alone.
fn names_of(line: &'static str) -> Vec<(&'static str, Known)> {
    let stands_alone = line.ends_with(" !");
    let names: Vec<&str> = line.split_whitespace().filter(|word| *word != "!").collect();
    let main = names.first().copied().unwrap_or_default();
    names.into_iter().map(|name| (name, Known { name: main, stands_alone })).collect()
}

/// The option called `typed`; any of its names.
///
/// # Errors
/// If fio knows no such option; says which one is near.
pub(super) fn find(typed: &str, place: &str) -> Result<Known, Error> {
    // fio lets a dash stand for an underscore on the command line.
    let plain = typed.replace('-', "_");
    if let Some(known) = KNOWN.get(typed).or_else(|| KNOWN.get(plain.as_str())) {
        return Ok(*known);
    }
    let error = Error::new(place, format!("`{typed}` is not an option of fio"));
    Err(match nearest(&plain, KNOWN.keys().copied()) {
        Some(near) => error.remedy(format!("did you mean `{near}`?")),
        None => error.remedy("see fio(1) for its options, and --help"),
    })
}

/// All main names, for tests that go over them.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    KNOWN.values().map(|known| known.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_and_slips_are_known() {
        assert_eq!(find("blocksize", "x").unwrap(), find("bs", "x").unwrap());
        assert!(find("wait_for_previous", "x").unwrap().stands_alone);
        assert!(!find("direct", "x").unwrap().stands_alone);
        let error = find("iodpeth", "job.fio:3").unwrap_err();
        assert_eq!(error.place, "job.fio:3");
        assert!(error.to_string().contains("did you mean `iodepth`?"), "{error}");
    }
}
