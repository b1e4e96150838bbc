//! An expression, and its evaluation for a disk.

use super::caret::SelectError;
use super::field::Field;
use super::token::Operator;
use super::{glob, parse, size};
use crate::view::DeviceView;

/// Truth value of an expression for a disk. In the order of three-valued logic (Kleene): `and` is the
/// minimum, `or` the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// The expression is false.
    No,
    /// Unknown, because the disk does not report the property.
    Unknown,
    /// The expression is true.
    Yes,
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(pub(super) Expression);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Or(Box<Expression>, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Text { field: Field, operator: Operator, value: String },
    Size { operator: Operator, bytes: u64 },
}

impl Selection {
    /// Parses an expression.
    ///
    /// # Errors
    /// With the position of the error, and a suggestion.
    pub fn parse(typed: &str) -> Result<Self, SelectError> {
        parse::parse(typed).map(Self)
    }

    /// Evaluates the expression for a disk.
    pub fn judge(&self, view: &DeviceView) -> Truth {
        self.0.judge(view)
    }

    /// Returns true if the disk is selected, which requires that the result is known.
    pub fn chooses(&self, view: &DeviceView) -> bool {
        self.judge(view) == Truth::Yes
    }
}

impl Truth {
    const fn from_bool(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    const fn turned(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
            Self::Yes => Self::No,
        }
    }
}

impl Expression {
    fn judge(&self, view: &DeviceView) -> Truth {
        match self {
            Self::Or(left, right) => left.judge(view).max(right.judge(view)),
            Self::And(left, right) => left.judge(view).min(right.judge(view)),
            Self::Not(inner) => inner.judge(view).turned(),
            Self::Text { field, operator, value } => compare_text(&field.words(view), *operator, value),
            Self::Size { operator, bytes } => view
                .size
                .map_or(Truth::Unknown, |size| Truth::from_bool(compare_size(size, *operator, *bytes))),
        }
    }
}

/// Compares text. A field with several words (the roles) equals a word if one of them does.
fn compare_text(words: &[String], operator: Operator, value: &str) -> Truth {
    if words.is_empty() {
        return Truth::Unknown;
    }
    let equal = |word: &String| word.trim().to_lowercase() == value.to_lowercase();
    Truth::from_bool(match operator {
        Operator::Equal => words.iter().any(equal),
        Operator::Unequal => !words.iter().any(equal),
        _ => words.iter().any(|word| glob::matches(value, word.trim())),
    })
}

fn compare_size(size: u64, operator: Operator, bytes: u64) -> bool {
    match operator {
        Operator::Less => size < bytes,
        Operator::LessOrEqual => size <= bytes,
        Operator::Greater => size > bytes,
        Operator::GreaterOrEqual => size >= bytes,
        Operator::Unequal => !size::called(size, bytes),
        Operator::Equal | Operator::Like => size::called(size, bytes),
    }
}
