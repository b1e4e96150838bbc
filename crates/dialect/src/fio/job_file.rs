//! Parser of fio's job files.
//!
//! A line is the head of a section in brackets, a setting, or `include FILE`. As with fio, `;` or `#` begins
//! a comment, even in the middle of a line.

use super::option_table;
use super::section::{Sections, Setting};
use super::surroundings::Surroundings;
use crate::{Error, Machine};

/// Maximum depth of includes.
const INCLUDES_MAX: u32 = 16;

/// Parses the job file `name` into `sections`.
///
/// # Errors
/// Names the line.
pub(super) fn read(
    name: &str,
    sections: &mut Sections,
    machine: &Machine,
    surroundings: &Surroundings<'_>,
) -> Result<(), Error> {
    sections.leave();
    let mut reader = Reader { sections, machine, surroundings, begun: false };
    reader.file(name, name, 0)
}

struct Reader<'a, 's> {
    sections: &'a mut Sections,
    machine: &'a Machine,
    surroundings: &'a Surroundings<'s>,
    begun: bool,
}

impl Reader<'_, '_> {
    fn file(&mut self, name: &str, place: &str, depth: u32) -> Result<(), Error> {
        let text = (self.surroundings.read_file)(name).map_err(|error| {
            let what = if name == place { String::new() } else { format!(" {name}") };
            Error::new(place, format!("the job file{what} cannot be read: {error}"))
        })?;
        for (index, line) in text.lines().enumerate() {
            let place = format!("{name}:{}", index + 1);
            let line = line.split([';', '#']).next().unwrap_or_default().trim();
            match line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
                Some(_) if depth >= INCLUDES_MAX => {
                    return Err(Error::new(place, format!("files include each other {INCLUDES_MAX} deep")));
                }
                Some(included) => self.file(included.trim(), &place, depth + 1)?,
                None if line.is_empty() => {}
                None => self.line(line, place)?,
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, place: String) -> Result<(), Error> {
        if let Some(head) = line.strip_prefix('[') {
            let name = head.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let Some(name) = name else {
                return Err(Error::new(place, format!("`{line}` is not a section: expected [name]")));
            };
            self.sections.begin(name, place);
            self.begun = true;
            return Ok(());
        }
        if !self.begun {
            return Err(Error::new(place, format!("`{line}` stands before the first section"))
                .remedy("begin the file with [global] or [name]"));
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        let value = value.map(|value| self.filled_in(value, &place)).transpose()?;
        self.sections.set(setting(name, value, place)?);
        Ok(())
    }

    /// Returns `value` with `${NAME}` and fio's own variables expanded.
    fn filled_in(&self, value: &str, place: &str) -> Result<String, Error> {
        let mut filled = String::with_capacity(value.len());
        let mut rest = value;
        while let Some(start) = rest.find("${") {
            filled.push_str(&rest[..start]);
            let after = &rest[start + 2..];
            let Some(end) = after.find('}') else {
                return Err(Error::new(place, format!("`{value}` has a ${{ without a }}")));
            };
            let name = &after[..end];
            let found = (self.surroundings.environment)(name).ok_or_else(|| {
                Error::new(place, format!("the variable {name} is not set"))
                    .remedy(format!("{name}=... before the command"))
            })?;
            filled.push_str(&found);
            rest = &after[end + 1..];
        }
        filled.push_str(rest);
        let own = [
            ("$pagesize", self.machine.page_bytes),
            ("$mb_memory", self.machine.memory_bytes >> 20),
            ("$ncpus", self.machine.processors.len() as u64),
        ];
        let whole =
            own.iter().fold(filled.clone(), |filled, (name, value)| filled.replace(name, &value.to_string()));
        // fio evaluates arithmetic with its own variables: `$ncpus*2`.
        let calculates = whole != filled && !whole.starts_with('(') && is_arithmetic(&whole);
        Ok(if calculates { format!("({whole})") } else { whole })
    }
}

/// Returns true if `text` consists of numbers with operators between them.
fn is_arithmetic(text: &str) -> bool {
    let of_numbers = |sign: char| sign.is_ascii_digit() || "+-*/^() kKmMgGtT".contains(sign);
    text.chars().all(of_numbers) && text.contains(['+', '-', '*', '/', '^'])
}

/// Creates the setting of `name`.
///
/// # Errors
/// Fails if fio has no such option, or a required value is missing.
pub(super) fn setting(name: &str, value: Option<String>, place: String) -> Result<Setting, Error> {
    let known = option_table::find(name, &place)?;
    if value.is_none() && !known.stands_alone {
        return Err(Error::new(place, format!("{name} needs a value")).remedy(format!("{name}=...")));
    }
    Ok(Setting { name: known.name, value, place })
}
