//! Effective settings of a section: later ones override earlier ones, and unused ones are tracked.

use std::cell::RefCell;

use plumb_block::Nanos;

use super::section::{Section, Setting};
use super::value::{self, KbBase, Size, Three};
use crate::Error;

/// Settings of a section.
pub(super) struct Options<'a> {
    pub(super) section: &'a Section,
    /// Settings in order of input; the last one with a name applies.
    settings: Vec<&'a Setting>,
    used: RefCell<Vec<&'static str>>,
    notes: RefCell<Vec<String>>,
}

impl<'a> Options<'a> {
    /// Collects the settings of `section`.
    ///
    /// # Errors
    /// Fails for an invalid `kb_base`.
    pub(super) fn from_section(section: &'a Section) -> Result<Self, Error> {
        let settings = section.inherited.iter().chain(&section.own).collect();
        let (used, notes) = Default::default();
        let this = Self { section, settings, used, notes };
        this.choice("kb_base", &["1024", "1000"])?;
        Ok(this)
    }

    /// Returns the meaning of units in the value of `name`. `kb_base` of the section does not affect values
    /// of earlier global sections.
    pub(super) fn base(&self, name: &str) -> KbBase {
        let inherited = self.section.inherited.len();
        let is_inherited = self.place(name).is_some_and(|place| place < inherited);
        let settings = if is_inherited { &self.settings[..inherited] } else { &self.settings[..] };
        let base = settings.iter().rfind(|setting| setting.name == "kb_base");
        match base.and_then(|setting| setting.value.as_deref()) {
            Some("1000") => KbBase::Standard,
            _ => KbBase::Compatible,
        }
    }

    /// Returns the name of the job: that of the section unless the section sets another. As with fio, file
    /// names always derive from the name of the section.
    pub(super) fn name(&self) -> &'a str {
        self.get("name");
        let given = self.section.own.iter().rev().find(|setting| setting.name == "name");
        let given = given.and_then(|setting| setting.value.as_deref());
        given.filter(|name| !name.is_empty()).unwrap_or(&self.section.name)
    }

    /// Adds a note for the user, once.
    pub(super) fn note(&self, note: impl Into<String>) {
        let note = note.into();
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Adds a note for each given option of `names` that it has no effect, with the reason.
    pub(super) fn note_unused(&self, names: &[&'static str], why: &str) {
        for name in names.iter().filter(|name| self.get(name).is_some()) {
            self.note(format!("{name} has no effect: {why}"));
        }
    }

    /// Returns the notes, and the settings that were not used.
    pub(super) fn finish(self) -> (Vec<String>, Vec<&'a Setting>) {
        let used = self.used.borrow();
        let is_left = |(place, setting): &(usize, &&Setting)| {
            !used.contains(&setting.name) && self.place(setting.name) == Some(*place)
        };
        let left = self.settings.iter().enumerate().filter(is_left).map(|(_, setting)| *setting).collect();
        (self.notes.take(), left)
    }

    /// Returns the position of the last setting of `name` in order of input.
    fn place(&self, name: &str) -> Option<usize> {
        self.settings.iter().rposition(|setting| setting.name == name)
    }

    fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.place(name).map(|place| self.settings[place])
    }

    /// Returns the setting of `name` and marks it as used.
    pub(super) fn get(&self, name: &'static str) -> Option<&'a Setting> {
        self.used.borrow_mut().push(name);
        self.setting(name)
    }

    /// Returns true if `first` comes after `second`; false if it is missing.
    pub(super) fn is_after(&self, first: &str, second: &str) -> bool {
        self.place(first) > self.place(second)
    }

    /// Creates an error about `name`.
    pub(super) fn error(&self, name: &str, problem: impl Into<String>) -> Error {
        let place = self.setting(name).map_or(&self.section.place, |setting| &setting.place);
        let problem = problem.into();
        let named = if problem.starts_with(name) { problem } else { format!("{name}: {problem}") };
        Error::new(place.clone(), named)
    }

    /// Returns an error about `name`, with a remedy.
    ///
    /// # Errors
    /// Always.
    pub(super) fn refuse<T>(&self, name: &str, problem: impl Into<String>, remedy: &str) -> Result<T, Error> {
        Err(self.error(name, problem).remedy(remedy))
    }

    /// Returns the text of `name`.
    ///
    /// # Errors
    /// Fails if the value is missing.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&'a str>, Error> {
        let Some(setting) = self.get(name) else { return Ok(None) };
        match setting.value.as_deref() {
            Some(value) if !value.is_empty() => Ok(Some(value)),
            _ => Err(self.error(name, "needs a value").remedy(format!("{name}=..."))),
        }
    }

    /// Returns the value of `name`, parsed by `parse`.
    ///
    /// # Errors
    /// The error of `parse`, with name and position.
    pub(super) fn parsed<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        parse(text).map(Some).map_err(|problem| self.error(name, problem))
    }

    /// Returns the boolean `name`: 1 if it may lack a value and does; `otherwise` if not given.
    ///
    /// # Errors
    /// Fails unless the value is 0 or 1.
    pub(super) fn truth(&self, name: &'static str, otherwise: bool) -> Result<bool, Error> {
        match self.get(name) {
            None => Ok(otherwise),
            Some(Setting { value: None, .. }) => Ok(true),
            Some(_) => Ok(self.parsed(name, value::truth)?.unwrap_or(otherwise)),
        }
    }

    /// Returns a whole number within `range`.
    ///
    /// # Errors
    /// Fails for any other value.
    pub(super) fn whole(
        &self,
        name: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Error> {
        let Some(number) = self.parsed(name, |text| self.counted(name, text))? else { return Ok(None) };
        if range.contains(&number) {
            return Ok(Some(number));
        }
        let expected = match *range.end() {
            u64::MAX => format!("at least {}", range.start()),
            end => format!("{} to {end}", range.start()),
        };
        Err(self.error(name, format!("is {number}: expected {expected}")))
    }

    /// Parses a whole number; adds a note if it has a unit.
    ///
    /// # Errors
    /// Fails for other text.
    pub(super) fn counted(&self, name: &str, text: &str) -> Result<u64, String> {
        let number = value::whole(text, self.base(name))?;
        if text.ends_with(|letter: char| letter.is_ascii_alphabetic()) && !text.starts_with("0x") {
            self.note(format!(
                "{name}={text} is {number}: units multiply numbers as they do bytes, as in fio"
            ));
        }
        Ok(number)
    }

    /// Returns a decimal number.
    ///
    /// # Errors
    /// Fails for any other value.
    pub(super) fn decimal(&self, name: &'static str) -> Result<Option<f64>, Error> {
        self.parsed(name, value::decimal)
    }

    /// Returns a time, in `unit` unless the value has a unit.
    ///
    /// # Errors
    /// Fails for any other value.
    pub(super) fn time(&self, name: &'static str, unit: Nanos) -> Result<Option<Nanos>, Error> {
        self.parsed(name, |text| value::time(text, unit))
    }

    /// Returns a number of bytes.
    ///
    /// # Errors
    /// Fails for any other value.
    pub(super) fn bytes(&self, name: &'static str) -> Result<Option<u64>, Error> {
        self.tell_units(name);
        self.parsed(name, |text| value::bytes(text, self.base(name)))
    }

    /// Returns a number of bytes or a percentage.
    ///
    /// # Errors
    /// Fails for any other value.
    pub(super) fn size(&self, name: &'static str) -> Result<Option<Size>, Error> {
        self.tell_units(name);
        // fio treats 0 as not given.
        Ok(self
            .parsed(name, |text| value::size(text, self.base(name)))?
            .filter(|size| *size != Size::Bytes(0)))
    }

    /// Returns a number of bytes for each direction.
    ///
    /// # Errors
    /// Fails for any other value.
    pub(super) fn bytes_three(&self, name: &'static str) -> Result<Option<Three<u64>>, Error> {
        self.tell_units(name);
        self.parsed(name, |text| value::three(text, |part| value::bytes(part, self.base(name))))
    }

    /// Returns one of `choices`.
    ///
    /// # Errors
    /// Fails for any other value.
    pub(super) fn choice<'c>(
        &self,
        name: &'static str,
        choices: &[&'c str],
    ) -> Result<Option<&'c str>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match choices.iter().find(|choice| **choice == text) {
            Some(choice) => Ok(Some(choice)),
            None => Err(self.error(name, format!("is `{text}`: expected {}", choices.join(", ")))),
        }
    }

    /// Adds a note that such units multiply a number.
    fn tell_units(&self, name: &'static str) {
        let text = self.setting(name).and_then(|setting| setting.value.as_deref());
        if self.base(name) == KbBase::Compatible
            && text.is_some_and(|text| text.to_ascii_lowercase().contains("ib"))
        {
            self.note("KiB, MiB and so on are powers of 1000 here, as in fio, unless kb_base=1000 is given");
        }
    }
}
