//! Sections of settings as typed, with their positions.

/// An option as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// Main name of the option.
    pub(super) name: &'static str,
    /// Value; `None` if it has none.
    pub(super) value: Option<String>,
    /// Argument, or `file:line`.
    pub(super) place: String,
}

/// Settings of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// Name of the section.
    pub(super) name: String,
    /// Position of its head.
    pub(super) place: String,
    /// Settings of earlier global sections.
    pub(super) inherited: Vec<Setting>,
    /// Settings of the section itself.
    pub(super) own: Vec<Setting>,
}

impl Section {
    /// Returns the effective setting of `name`.
    pub(super) fn last(&self, name: &str) -> Option<&Setting> {
        self.inherited.iter().chain(&self.own).rfind(|setting| setting.name == name)
    }
}

/// Sections under construction. Global settings apply to all sections that begin after them.
#[derive(Debug, Default)]
pub(super) struct Sections {
    global: Vec<Setting>,
    done: Vec<Section>,
    /// True if settings belong to the last section, false for global ones.
    in_section: bool,
    /// True if settings belong to a section that was not selected.
    skipping: bool,
    only: Vec<String>,
    /// Names of sections that were not selected.
    pub(super) left_out: Vec<String>,
}

impl Sections {
    /// Creates an empty list. If `only` is not empty, other sections are skipped.
    pub(super) fn only(only: Vec<String>) -> Self {
        Self { only, ..Self::default() }
    }

    /// Name of global sections.
    pub(super) const GLOBAL: &'static str = "global";

    /// Begins a section.
    pub(super) fn begin(&mut self, name: &str, place: String) {
        self.in_section = name != Self::GLOBAL;
        self.skipping =
            self.in_section && !self.only.is_empty() && !self.only.iter().any(|only| only == name);
        if self.skipping {
            self.left_out.push(name.to_owned());
        } else if self.in_section {
            let inherited = self.global.clone();
            self.done.push(Section { name: name.to_owned(), place, inherited, own: Vec::new() });
        }
    }

    /// Adds a setting to the current section or to the global ones.
    pub(super) fn set(&mut self, setting: Setting) {
        if self.skipping {
            return;
        }
        match self.done.last_mut().filter(|_| self.in_section) {
            Some(section) => section.own.push(setting),
            None => self.global.push(setting),
        }
    }

    /// Makes further settings global, at the start of another file.
    pub(super) fn leave(&mut self) {
        self.in_section = false;
        self.skipping = false;
    }

    /// Returns the global settings, and the sections in order.
    pub(super) fn finish(self) -> (Vec<Setting>, Vec<Section>) {
        (self.global, self.done)
    }
}
