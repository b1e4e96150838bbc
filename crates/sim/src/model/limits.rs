//! Limits for the values in a model, defined once for each table.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A table of a model with limits for its values. Within these limits nothing built from it panics,
/// overflows, divides by zero or runs forever.
pub trait Limits {
    /// Checks the limits of each field.
    fn limits(&self, check: &mut Check);
}

/// A field outside its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    /// Field relative to its table, `damage.torn`.
    pub(super) field: String,
    /// Description of what was expected of the field.
    pub(super) expected: String,
}

/// Collector of violations; the first one is reported.
#[derive(Debug, Default)]
pub struct Check {
    violation: Option<Violation>,
}

impl Check {
    /// Checks that `value` of `field` is in `range`.
    pub fn within<T: PartialOrd + Display>(&mut self, field: &str, value: &T, range: &RangeInclusive<T>) {
        // NaN is in no range, so it is refused, too.
        if !range.contains(value) {
            self.refuse(field, format!("expected {} to {}", range.start(), range.end()));
        }
    }

    /// Adds a violation of `field` unless `holds`.
    pub fn that(&mut self, field: &str, holds: bool, expected: &str) {
        if !holds {
            self.refuse(field, format!("expected {expected}"));
        }
    }

    /// Checks the limits of the nested table `name`.
    pub fn table(&mut self, name: &str, table: &impl Limits) {
        let mut inner = Self::default();
        table.limits(&mut inner);
        if let Some(Violation { field, expected }) = inner.violation {
            self.refuse(&format!("{name}.{field}"), expected);
        }
    }

    /// Returns the first violation.
    pub(super) fn finish(self) -> Option<Violation> {
        self.violation
    }

    fn refuse(&mut self, field: &str, expected: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { field: field.to_owned(), expected });
        }
    }
}
