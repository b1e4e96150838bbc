//! Parser for expressions that select disks.
//!
//! ```text
//!   or    := and ("or" and)*          not     := "not" not | "(" or ")" | comparison
//!   and   := not ("and" not)*         comparison := FIELD OPERATOR VALUE
//! ```

use super::caret::SelectError;
use super::expression::Expression;
use super::field::{Field, Shape};
use super::token::{Kind, Operator, Token, cut};
use crate::state::State;
use plumb_block::{Bytes, SizeBase};
use plumb_text::nearest;

/// Maximum nesting depth, which bounds the stack.
const DEPTH_MAX: usize = 64;

pub(super) fn parse(typed: &str) -> Result<Expression, SelectError> {
    let mut parser = Parser { typed, tokens: cut(typed)?, at: 0, depth: 0 };
    let expression = parser.any_of()?;
    match parser.peek() {
        Kind::End => Ok(expression),
        Kind::Close => Err(parser.wrong("this parenthesis was never opened")),
        Kind::Word(word) => Err(parser.wrong(joining(word))),
        _ => Err(parser.wrong(joining(""))),
    }
}

struct Parser<'a> {
    typed: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    /// Returns the current token and advances, but never past the end.
    fn take(&mut self) -> Kind {
        let kind = self.tokens[self.at].kind.clone();
        if kind != Kind::End {
            self.at += 1;
        }
        kind
    }

    fn takes_word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Kind::Word(word) if word.eq_ignore_ascii_case(wanted));
        if found {
            self.at += 1;
        }
        found
    }

    fn wrong(&self, message: impl Into<String>) -> SelectError {
        self.wrong_at(self.at, message)
    }

    fn wrong_at(&self, token: usize, message: impl Into<String>) -> SelectError {
        SelectError {
            typed: self.typed.to_owned(),
            column: self.tokens[token].column,
            message: message.into(),
        }
    }

    fn any_of(&mut self) -> Result<Expression, SelectError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong(format!("more than {DEPTH_MAX} parentheses inside one another")));
        }
        let mut left = self.all_of()?;
        while self.takes_word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.all_of()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn all_of(&mut self) -> Result<Expression, SelectError> {
        let mut left = self.negated()?;
        while self.takes_word("and") {
            left = Expression::And(Box::new(left), Box::new(self.negated()?));
        }
        Ok(left)
    }

    fn negated(&mut self) -> Result<Expression, SelectError> {
        let mut turned = false;
        while self.takes_word("not") {
            turned = !turned;
        }
        let inner = match self.peek() {
            Kind::Open => {
                self.at += 1;
                let inner = self.any_of()?;
                match self.peek() {
                    Kind::Close => self.at += 1,
                    _ => return Err(self.wrong("expected `)`, `and` or `or` here")),
                }
                inner
            }
            _ => self.comparison()?,
        };
        Ok(if turned { Expression::Not(Box::new(inner)) } else { inner })
    }

    fn comparison(&mut self) -> Result<Expression, SelectError> {
        let field_at = self.at;
        let field = match self.take() {
            Kind::Word(word) => Field::named(&word).map_err(|message| self.wrong_at(field_at, message))?,
            _ => return Err(self.wrong_at(field_at, "expected a property of a disk here, such as `model`")),
        };
        let operator_at = self.at;
        let operator = match self.take() {
            Kind::Operator(operator) => operator,
            Kind::Word(word) => return Err(self.wrong_at(operator_at, comparing(field, &word))),
            _ => return Err(self.wrong_at(operator_at, comparing(field, ""))),
        };
        let value_at = self.at;
        let value = match self.take() {
            Kind::Word(value) | Kind::Quoted(value) => value,
            Kind::Operator(second) => {
                let both = format!("{}{}", operator.sign(), second.sign());
                let meant = if both == "<>" { "!=" } else { "~" };
                let message =
                    format!("expected a value here, for `{both}` is not a comparison: use `{meant}`");
                return Err(self.wrong_at(value_at, message));
            }
            _ => {
                return Err(
                    self.wrong_at(value_at, format!("expected a value here, such as {}", field.example()))
                );
            }
        };
        if field.shape() == Shape::Size {
            if operator == Operator::Like {
                return Err(self.wrong_at(operator_at, "a size has no pattern: use = != < <= > or >="));
            }
            let bytes = Bytes::parse_in(&value, SizeBase::Decimal)
                .map_err(|error| self.wrong_at(value_at, error.to_string()))?;
            return Ok(Expression::Size { operator, bytes: bytes.0 });
        }
        if !operator.is_of_text() {
            return Err(self.wrong_at(operator_at, "only sizes have an order: use = != or ~ here"));
        }
        let value = one_of(field, value).map_err(|message| self.wrong_at(value_at, message))?;
        Ok(Expression::Text { field, operator, value })
    }
}

/// Returns the error message for `word` where `and`, `or` or the end is expected.
fn joining(word: &str) -> String {
    let meant = match word {
        "&&" | "&" | "+" | "," => " Did you mean `and`?",
        "||" | "|" => " Did you mean `or`?",
        _ => match nearest(&word.to_lowercase(), ["and", "or"]) {
            Some("and") => " Did you mean `and`?",
            Some(_) => " Did you mean `or`?",
            None => "",
        },
    };
    format!("expected `and`, `or` or the end here; a value with spaces needs quotes.{meant}")
}

/// Returns the error message for `word` where a comparison is expected.
fn comparing(field: Field, word: &str) -> String {
    let operators = match field.shape() {
        Shape::Size => "= != < <= > or >=",
        _ => "= != or ~",
    };
    let meant = match word.to_lowercase().as_str() {
        "is" | "eq" | "equals" | "-eq" | ":" => " Did you mean `=`?",
        "like" | "matches" | "contains" => " Did you mean `~`, with * for any letters?",
        "isnot" | "ne" | "not" | "-ne" => " Did you mean `!=`?",
        _ => "",
    };
    format!("expected {operators} here.{meant}")
}

/// Checks that the value of a word field is one of its words, unless it is a pattern.
fn one_of(field: Field, value: String) -> Result<String, String> {
    let Shape::Words(words) = field.shape() else { return Ok(value) };
    let plain = value.to_lowercase();
    let plain = match (field, plain.as_str()) {
        (Field::Rotational, "true" | "1") => "yes".to_owned(),
        (Field::Rotational, "false" | "0") => "no".to_owned(),
        // States may also be written in the words of Windows.
        (Field::State, _) => plain.parse::<State>().map_or(plain, |state| state.word().to_owned()),
        _ => plain,
    };
    if words.contains(&plain.as_str()) || plain.contains(['*', '?']) {
        return Ok(plain);
    }
    let meant = nearest(&plain, words.iter().copied())
        .map_or_else(String::new, |word| format!(" Did you mean `{word}`?"));
    Err(format!("`{value}` is not known here.{meant} Expected {}", words.join(", ")))
}
