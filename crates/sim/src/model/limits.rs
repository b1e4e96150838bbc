//! Limits that the values of a model must lie within, stated once per table by the table itself.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A table of a model that knows what its values may be. Within these limits nothing that is built from it
/// panics, overflows, divides by zero or runs for ever.
pub trait Limits {
    /// Says of each field what it may be.
    fn limits(&self, check: &mut Check);
}

/// A field outside its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    /// The field, relative to its table, `damage.torn`.
    pub(super) field: String,
    /// Description of what was expected of the field.
    pub(super) expected: String,
}

/// Collects what is outside its limits; the first violation is reported.
#[derive(Debug, Default)]
pub struct Check {
    violation: Option<Violation>,
}

impl Check {
    /// Checks that `value` of `field` lies in `range`.
    pub fn within<T: PartialOrd + Display>(&mut self, field: &str, value: &T, range: &RangeInclusive<T>) {
        // Not-a-number is in no range, so it is refused here as well.
        if !range.contains(value) {
            self.refuse(field, format!("expected {} to {}", range.start(), range.end()));
        }
    }

    /// Checks that `field` is as `expected` only if `holds`.
    pub fn that(&mut self, field: &str, holds: bool, expected: &str) {
        if !holds {
            self.refuse(field, format!("expected {expected}"));
        }
    }

    /// Checks that the table `name` within this one is within its own limits.
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
