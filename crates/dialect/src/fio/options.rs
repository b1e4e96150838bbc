//! The settings of one section as they hold: later ones over earlier ones, and which of them had a use.

use std::cell::RefCell;

use plumb_block::Nanos;

use super::section::{Section, Setting};
use super::value::{self, KbBase, Size, Three};
use crate::Error;

/// The settings of a section.
pub(super) struct Options<'a> {
    pub(super) section: &'a Section,
    /// Settings in the order of typing; the last one of a name wins.
    settings: Vec<&'a Setting>,
    used: RefCell<Vec<&'static str>>,
    notes: RefCell<Vec<String>>,
}

impl<'a> Options<'a> {
    /// Collects the options of `section`.
    ///
    /// # Errors
    /// If `kb_base` is wrong.
    pub(super) fn from_section(section: &'a Section) -> Result<Self, Error> {
        let settings = section.inherited.iter().chain(&section.own).collect();
        let (used, notes) = Default::default();
        let this = Self { section, settings, used, notes };
        this.choice("kb_base", &["1024", "1000"])?;
        Ok(this)
    }

    /// Returns what units mean in the value of `name`: a `kb_base` of the section does not change what the
    /// global sections before it say.
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

    /// Returns the name of the job: that of the section unless the section itself gives another. Files are
    /// called by that of the section in any case, as with fio.
    pub(super) fn name(&self) -> &'a str {
        self.get("name");
        let given = self.section.own.iter().rev().find(|setting| setting.name == "name");
        let given = given.and_then(|setting| setting.value.as_deref());
        given.filter(|name| !name.is_empty()).unwrap_or(&self.section.name)
    }

    /// Says something to the user, once.
    pub(super) fn note(&self, note: impl Into<String>) {
        let note = note.into();
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Says of each of `names` that is given that it has no effect, and why.
    pub(super) fn note_unused(&self, names: &[&'static str], why: &str) {
        for name in names.iter().filter(|name| self.get(name).is_some()) {
            self.note(format!("{name} has no effect: {why}"));
        }
    }

    /// Returns the notes, and the settings that nothing has asked for.
    pub(super) fn finish(self) -> (Vec<String>, Vec<&'a Setting>) {
        let used = self.used.borrow();
        let is_left = |(place, setting): &(usize, &&Setting)| {
            !used.contains(&setting.name) && self.place(setting.name) == Some(*place)
        };
        let left = self.settings.iter().enumerate().filter(is_left).map(|(_, setting)| *setting).collect();
        (self.notes.take(), left)
    }

    /// Returns the place of the last setting of `name` in the order of typing.
    fn place(&self, name: &str) -> Option<usize> {
        self.settings.iter().rposition(|setting| setting.name == name)
    }

    fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.place(name).map(|place| self.settings[place])
    }

    /// Returns the setting of `name`, which counts as used.
    pub(super) fn get(&self, name: &'static str) -> Option<&'a Setting> {
        self.used.borrow_mut().push(name);
        self.setting(name)
    }

    /// Returns true if `first` was typed after `second`; false if it was not typed.
    pub(super) fn is_after(&self, first: &str, second: &str) -> bool {
        self.place(first) > self.place(second)
    }

    /// Returns the error that `name` has this problem.
    pub(super) fn error(&self, name: &str, problem: impl Into<String>) -> Error {
        let place = self.setting(name).map_or(&self.section.place, |setting| &setting.place);
        let problem = problem.into();
        let named = if problem.starts_with(name) { problem } else { format!("{name}: {problem}") };
        Error::new(place.clone(), named)
    }

    /// Returns, as a result, the error that `name` has this problem, with what to do instead.
    ///
    /// # Errors
    /// Always.
    pub(super) fn refuse<T>(&self, name: &str, problem: impl Into<String>, remedy: &str) -> Result<T, Error> {
        Err(self.error(name, problem).remedy(remedy))
    }

    /// Returns the text of `name`.
    ///
    /// # Errors
    /// If it stands without a value.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&'a str>, Error> {
        let Some(setting) = self.get(name) else { return Ok(None) };
        match setting.value.as_deref() {
            Some(value) if !value.is_empty() => Ok(Some(value)),
            _ => Err(self.error(name, "needs a value").remedy(format!("{name}=..."))),
        }
    }

    /// Returns the value of `name` through `parse`.
    ///
    /// # Errors
    /// Fails with the error of `parse`, with name and place.
    pub(super) fn parsed<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        parse(text).map(Some).map_err(|problem| self.error(name, problem))
    }

    /// Returns 0 or 1; 1 where it may stand alone and does; `otherwise` if it was not typed.
    ///
    /// # Errors
    /// If it is neither.
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
    /// If it is none.
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

    /// Returns a whole number in `text`; says what a unit makes of it.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn counted(&self, name: &str, text: &str) -> Result<u64, String> {
        let number = value::whole(text, self.base(name))?;
        if text.ends_with(|letter: char| letter.is_ascii_alphabetic()) && !text.starts_with("0x") {
            self.note(format!(
                "{name}={text} is {number}: units multiply numbers as they do bytes, as in fio"
            ));
        }
        Ok(number)
    }

    /// Returns a number with a fraction.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn decimal(&self, name: &'static str) -> Result<Option<f64>, Error> {
        self.parsed(name, value::decimal)
    }

    /// Returns a time; without a unit, `unit` is meant.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn time(&self, name: &'static str, unit: Nanos) -> Result<Option<Nanos>, Error> {
        self.parsed(name, |text| value::time(text, unit))
    }

    /// Returns an option in bytes.
    ///
    /// # Errors
    /// If they are none.
    pub(super) fn bytes(&self, name: &'static str) -> Result<Option<u64>, Error> {
        self.tell_units(name);
        self.parsed(name, |text| value::bytes(text, self.base(name)))
    }

    /// Returns an option in bytes or percent.
    ///
    /// # Errors
    /// If they are neither.
    pub(super) fn size(&self, name: &'static str) -> Result<Option<Size>, Error> {
        self.tell_units(name);
        // To fio 0 is as if it were not given.
        Ok(self
            .parsed(name, |text| value::size(text, self.base(name)))?
            .filter(|size| *size != Size::Bytes(0)))
    }

    /// Returns an option in bytes for each direction.
    ///
    /// # Errors
    /// If they are none.
    pub(super) fn bytes_three(&self, name: &'static str) -> Result<Option<Three<u64>>, Error> {
        self.tell_units(name);
        self.parsed(name, |text| value::three(text, |part| value::bytes(part, self.base(name))))
    }

    /// Returns one of `choices`.
    ///
    /// # Errors
    /// If it is none of them.
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

    /// Notes that units of this kind multiply a number.
    fn tell_units(&self, name: &'static str) {
        let text = self.setting(name).and_then(|setting| setting.value.as_deref());
        if self.base(name) == KbBase::Compatible
            && text.is_some_and(|text| text.to_ascii_lowercase().contains("ib"))
        {
            self.note("KiB, MiB and so on are powers of 1000 here, as in fio, unless kb_base=1000 is given");
        }
    }
}
