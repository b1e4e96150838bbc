//! Table of fio's options, from `options.txt`: their names, and the treatment of those without an effect
//! here.

use std::sync::LazyLock;

use plumb_text::nearest;

use super::section::Setting;
use super::value::{self, KbBase};
use crate::{Error, may_be_suggested};

/// An option of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownOption {
    /// Main name; options of the command line begin with two dashes.
    pub(super) name: &'static str,
    /// True for an option of a job that defaults to 1 if it lacks a value.
    pub(super) stands_alone: bool,
    /// True for an option of the command line that takes a value.
    pub(super) takes_value: bool,
    /// Check of the value, for an option without an effect.
    pub(super) check: ValueCheck,
    /// Treatment of the option.
    pub(super) fate: Fate,
}

/// Check of the value of an option without an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueCheck {
    /// Any value.
    None,
    /// 0 or 1.
    Truth,
    /// Whole number.
    Whole,
    /// The value is one of these words, which have commas between them; a parameter may follow after a colon.
    OneOf(&'static str),
}

/// Treatment of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Read by code, or unsupported.
    Read,
    /// Without an effect.
    NoEffect {
        /// Reason.
        why: &'static str,
    },
    /// Refused, as it would change the result.
    Refused {
        /// Reason.
        why: &'static str,
        /// Remedy.
        remedy: &'static str,
        /// Accepted values that change nothing, separated by spaces.
        harmless: &'static str,
    },
}

/// All names of all options.
static KNOWN: LazyLock<Vec<(&'static str, KnownOption)>> = LazyLock::new(|| {
    lines().flat_map(|(names, known)| names.into_iter().map(move |name| (name, known))).collect()
});

fn known(name: &str) -> Option<KnownOption> {
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, known)| *known)
}

/// Parses the lines of `options.txt`: all names of each option, and its treatment.
fn lines() -> impl Iterator<Item = (Vec<&'static str>, KnownOption)> {
    include_str!("options.txt").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split(" | ");
        let (mut names, mut marks, mut words) = (Vec::new(), Vec::new(), None);
        for word in columns.next().unwrap_or_default().split(' ') {
            match word.strip_prefix(':') {
                Some(known) => words = Some(known),
                None if ["!", "=", "#", "01"].contains(&word) => marks.push(word),
                None => names.push(word),
            }
        }
        let fate = match (columns.next(), columns.next()) {
            (None, _) => Fate::Read,
            (Some(why), None) => Fate::NoEffect { why },
            (Some(why), Some(remedy)) => {
                Fate::Refused { why, remedy, harmless: columns.next().unwrap_or_default() }
            }
        };
        let (stands_alone, takes_value) = (marks.contains(&"!"), marks.contains(&"="));
        let check = match (words, marks.contains(&"01"), marks.contains(&"#")) {
            (Some(words), ..) => ValueCheck::OneOf(words),
            (_, true, _) => ValueCheck::Truth,
            (_, _, true) => ValueCheck::Whole,
            _ => ValueCheck::None,
        };
        let known = KnownOption { name: names[0], stands_alone, takes_value, check, fate };
        (names, known)
    })
}

/// Returns the option of a job with the name `typed`, main or alternative.
///
/// # Errors
/// Fails if fio has no such option; suggests a similar one.
pub(super) fn find(typed: &str, place: &str) -> Result<KnownOption, Error> {
    // On the command line fio accepts dashes for underscores.
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

/// Returns the option of the command line `name`, which includes its two dashes.
pub(super) fn of_command_line(name: &str) -> Option<KnownOption> {
    known(name).filter(|known| known.name.starts_with('-'))
}

/// Returns the options of the command line.
pub(super) fn all_of_command_line() -> impl Iterator<Item = &'static str> {
    names().filter(|name| name.starts_with('-'))
}

/// Handles a setting that no code has read, and returns a note for the user, if any.
///
/// # Errors
/// Fails if the setting is refused.
pub(super) fn settle(setting: &Setting) -> Result<Option<String>, Error> {
    let (name, place) = (setting.name, &setting.place);
    let known = find(name, place)?;
    let wrong = match (known.check, setting.value.as_deref()) {
        (ValueCheck::Truth, Some(text)) => value::truth(text).err(),
        (ValueCheck::Whole, Some(text)) => value::whole(text, KbBase::Compatible).err(),
        (ValueCheck::OneOf(words), Some(text)) => {
            let word = text.split(':').next().unwrap_or_default().trim();
            let is_known = words.split(',').any(|known| known == word);
            (!is_known).then(|| format!("`{text}` is not known: expected {}", words.replace(',', ", ")))
        }
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

/// Returns the main names of the options of jobs.
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
