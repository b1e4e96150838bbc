//! fio's options, as data: `options.txt` has their names, and says of those without a meaning here what
//! becomes of them.

use std::sync::LazyLock;

use plumb_text::nearest;

use super::section::Setting;
use super::value::{self, KbBase};
use crate::{Error, may_be_suggested};

/// An option that fio knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownOption {
    /// Main name of the option; options of the command line begin with two dashes.
    pub(super) name: &'static str,
    /// True if the option is one of a job that may stand without a value and then holds.
    pub(super) stands_alone: bool,
    /// True if the option is one of the command line that takes a value.
    pub(super) takes_value: bool,
    /// Values that an option without an effect takes, where plumb checks them.
    pub(super) check: ValueCheck,
    /// Treatment of the option.
    pub(super) fate: Fate,
}

/// Check of the value of an option that has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueCheck {
    /// Any value is taken.
    None,
    /// The value is 0 or 1.
    Truth,
    /// The value is a whole number.
    Whole,
}

/// Treatment of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The code reads it, or it is not supported.
    Read,
    /// The option has no effect.
    NoEffect {
        /// Why.
        why: &'static str,
    },
    /// The option would change the result and cannot be taken.
    Refused {
        /// Why.
        why: &'static str,
        /// Remedy: what to do instead.
        remedy: &'static str,
        /// Values with which it changes nothing, between blanks.
        harmless: &'static str,
    },
}

/// Each name of each option.
static KNOWN: LazyLock<Vec<(&'static str, KnownOption)>> = LazyLock::new(|| {
    lines().flat_map(|(names, known)| names.into_iter().map(move |name| (name, known))).collect()
});

fn known(name: &str) -> Option<KnownOption> {
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, known)| *known)
}

/// Returns the lines of `options.txt`: all names of each option, and what is known of it.
fn lines() -> impl Iterator<Item = (Vec<&'static str>, KnownOption)> {
    include_str!("options.txt").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split(" | ");
        let (mut names, mut marks) = (Vec::new(), Vec::new());
        for word in columns.next().unwrap_or_default().split(' ') {
            if ["!", "=", "#", "01"].contains(&word) { marks.push(word) } else { names.push(word) }
        }
        let fate = match (columns.next(), columns.next()) {
            (None, _) => Fate::Read,
            (Some(why), None) => Fate::NoEffect { why },
            (Some(why), Some(remedy)) => {
                Fate::Refused { why, remedy, harmless: columns.next().unwrap_or_default() }
            }
        };
        let (stands_alone, takes_value) = (marks.contains(&"!"), marks.contains(&"="));
        let check = match (marks.contains(&"01"), marks.contains(&"#")) {
            (true, _) => ValueCheck::Truth,
            (_, true) => ValueCheck::Whole,
            _ => ValueCheck::None,
        };
        let known = KnownOption { name: names[0], stands_alone, takes_value, check, fate };
        (names, known)
    })
}

/// Returns the option of a job called `typed`; any of its names.
///
/// # Errors
/// If fio knows no such option; says which one is near.
pub(super) fn find(typed: &str, place: &str) -> Result<KnownOption, Error> {
    // fio lets a dash stand for an underscore on the command line.
    let plain = typed.replace('-', "_");
    if let Some(known) = known(typed).or_else(|| known(&plain)) {
        return Ok(known);
    }
    let error = Error::new(place, format!("`{typed}` is not an option of fio"));
    Err(match nearest(&plain, names().filter(|name| !name.starts_with('-') && may_be_suggested(name))) {
        Some(near) => error.remedy(format!("did you mean `{near}`?")),
        None => error.remedy("see fio(1) for its options, and --help"),
    })
}

/// Returns the option of the command line called `name`, with its two dashes.
pub(super) fn of_command_line(name: &str) -> Option<KnownOption> {
    known(name).filter(|known| known.name.starts_with('-'))
}

/// Returns the options of the command line.
pub(super) fn all_of_command_line() -> impl Iterator<Item = &'static str> {
    names().filter(|name| name.starts_with('-'))
}

/// Settles a setting that no code has read, and returns what to tell the user, if anything.
///
/// # Errors
/// If it cannot be taken.
pub(super) fn settle(setting: &Setting) -> Result<Option<String>, Error> {
    let (name, place) = (setting.name, &setting.place);
    let known = find(name, place)?;
    let wrong = match (known.check, setting.value.as_deref()) {
        (ValueCheck::Truth, Some(text)) => value::truth(text).err(),
        (ValueCheck::Whole, Some(text)) => value::whole(text, KbBase::Compatible).err(),
        _ => None,
    };
    if let Some(problem) = wrong {
        return Err(Error::new(place, format!("{name}: {problem}")));
    }
    match known.fate {
        Fate::NoEffect { why } => Ok(Some(format!("{name} has no effect: {why}"))),
        Fate::Refused { why, remedy, harmless } => {
            let is_harmless = |value: &str| harmless.split(' ').any(|harmless| harmless == value);
            if setting.value.as_deref().is_some_and(|value| !value.is_empty() && is_harmless(value)) {
                return Ok(None);
            }
            Err(Error::new(place, format!("{name} cannot be taken: {why}")).remedy(remedy))
        }
        Fate::Read => Err(Error::new(place, format!("{name} is known to fio, but not supported here"))
            .remedy("leave it out, or use fio")),
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

/// Returns the main names of the options of jobs, for tests that go over them.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(_, known)| known.name).filter(|name| !name.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_once() {
        let mut seen = std::collections::BTreeSet::new();
        for name in lines().flat_map(|(names, _)| names) {
            assert!(!name.is_empty() && seen.insert(name), "{name} twice");
        }
        assert!(seen.len() > 300);
    }

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
