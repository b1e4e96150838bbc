//! Sections of settings as typed, each with its place.

/// One option as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// fio's main name of the option.
    pub(super) name: &'static str,
    /// Value of the option; `None` where it stands alone.
    pub(super) value: Option<String>,
    /// The argument, or `file:line`.
    pub(super) place: String,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// Name of the section.
    pub(super) name: String,
    /// Where it begins.
    pub(super) place: String,
    /// Settings that the section has from the global sections before it.
    pub(super) inherited: Vec<Setting>,
    /// Settings of the section's own.
    pub(super) own: Vec<Setting>,
}

impl Section {
    /// Returns the setting of `name` that holds.
    pub(super) fn last(&self, name: &str) -> Option<&Setting> {
        self.inherited.iter().chain(&self.own).rfind(|setting| setting.name == name)
    }
}

/// Sections in the making: global settings hold for all sections that begin after them.
#[derive(Debug, Default)]
pub(super) struct Sections {
    global: Vec<Setting>,
    done: Vec<Section>,
    /// True if settings go to the last section rather than to the global ones.
    in_section: bool,
    /// True if settings are skipped: the section was not asked for.
    skipping: bool,
    only: Vec<String>,
    /// Names of the sections that were left out.
    pub(super) left_out: Vec<String>,
}

impl Sections {
    /// Empty; with `only`, sections of other names are left out.
    pub(super) fn only(only: Vec<String>) -> Self {
        Self { only, ..Self::default() }
    }

    /// The name that stands for all sections.
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

    /// Adds a setting of the section that began last, or of all.
    pub(super) fn set(&mut self, setting: Setting) {
        if self.skipping {
            return;
        }
        match self.done.last_mut().filter(|_| self.in_section) {
            Some(section) => section.own.push(setting),
            None => self.global.push(setting),
        }
    }

    /// Makes the next settings global again: another file begins.
    pub(super) fn leave(&mut self) {
        self.in_section = false;
        self.skipping = false;
    }

    /// Returns the global settings and the sections, in order.
    pub(super) fn finish(self) -> (Vec<Setting>, Vec<Section>) {
        (self.global, self.done)
    }
}
