//! Value of fio's JSON with its path, for error messages.

use serde_json::Value;

use crate::error::Error;
use crate::imported::{COUNT_MAX, POSSIBLE_TIMES, possible_seconds};

/// A value, possibly missing, with its path.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    /// File, and the path within it: `fio.json: jobs[0].write`.
    place: String,
    value: &'a Value,
}

const NULL: &Value = &Value::Null;

impl<'a> Field<'a> {
    /// Returns the whole document of the file `place`.
    pub(super) fn root(place: &str, value: &'a Value) -> Self {
        Self { place: format!("{place}:"), value }
    }

    /// Returns the member `name`, possibly missing.
    pub(super) fn get(&self, name: &str) -> Self {
        let separator = if self.place.ends_with(':') { ' ' } else { '.' };
        let value = self.value.get(name).unwrap_or(NULL);
        Self { place: format!("{}{separator}{name}", self.place), value }
    }

    /// Returns the elements of a list; empty for other values.
    pub(super) fn list(&self) -> Vec<Self> {
        let elements = self.value.as_array().into_iter().flatten().enumerate();
        elements.map(|(at, value)| Self { place: format!("{}[{at}]", self.place), value }).collect()
    }

    /// Returns the members of an object with their names; empty for other values.
    pub(super) fn members(&self) -> Vec<(&'a str, Self)> {
        let names = self.value.as_object().into_iter().flat_map(|members| members.keys());
        names.map(|name| (name.as_str(), self.get(name))).collect()
    }

    /// Returns true if the value is missing.
    pub(super) fn is_missing(&self) -> bool {
        self.value.is_null()
    }

    /// Returns the text; `None` for other values.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// Returns the whole number; `None` if missing.
    ///
    /// # Errors
    /// Fails for other values, negative ones, and counters that fell below 0.
    pub(super) fn count(&self) -> Result<Option<u64>, Error> {
        if self.is_missing() {
            return Ok(None);
        }
        let whole =
            |number: f64| (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64);
        let number = self.value.as_u64().or_else(|| whole(self.value.as_f64()?));
        let possible = number.filter(|number| *number <= COUNT_MAX);
        let expected = format!("expected a whole number from 0 to {COUNT_MAX}");
        possible.map(Some).ok_or_else(|| self.wrong(&expected))
    }

    /// Returns the number; `None` if missing.
    ///
    /// # Errors
    /// Fails for other and for negative values.
    pub(super) fn number(&self) -> Result<Option<f64>, Error> {
        if self.is_missing() {
            return Ok(None);
        }
        let number = self.value.as_f64().filter(|number| *number >= 0.0 && number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong("expected a number from 0 on"))
    }

    /// Returns the time in seconds; `None` if missing. `per_second` is the number of the value's units in a
    /// second.
    ///
    /// # Errors
    /// Fails for other, negative and implausible values.
    pub(super) fn seconds(&self, per_second: f64) -> Result<Option<f64>, Error> {
        let Some(number) = self.number()? else { return Ok(None) };
        possible_seconds(number, per_second).map(Some).ok_or_else(|| self.wrong(POSSIBLE_TIMES))
    }

    /// Creates an error with the path and the value.
    pub(super) fn wrong(&self, expected: &str) -> Error {
        let value = match self.value {
            Value::Object(_) | Value::Array(_) => "not a number".to_owned(),
            value => value.to_string(),
        };
        Error::new(self.place.as_str(), format!("{value}: {expected}"))
    }
}
