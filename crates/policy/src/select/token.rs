//! Splitting of an expression into words, operators and parentheses, each with its position.

use super::caret::SelectError;

/// Comparison of a property with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Like,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// Returns the operator as typed.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Like => "~",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Returns true if the operator is applicable to text.
    pub(super) const fn is_of_text(self) -> bool {
        matches!(self, Self::Equal | Self::Unequal | Self::Like)
    }
}

/// Kind of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word without quotes: a field, a value, `and`, `or`, `not`.
    Word(String),
    /// A value in quotes.
    Quoted(String),
    /// `=`, `!=`, `~`, `<`, `<=`, `>`, `>=`.
    Operator(Operator),
    /// `(`
    Open,
    /// `)`
    Close,
    /// The end of the expression.
    End,
}

/// A token with its position in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) column: usize,
}

/// Returns all tokens of `typed`; the last is [`Kind::End`].
pub(super) fn cut(typed: &str) -> Result<Vec<Token>, SelectError> {
    let letters: Vec<char> = typed.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        if letter.is_whitespace() || letter.is_control() {
            at += 1;
            continue;
        }
        let (kind, length) = token(&letters[at..]).map_err(|message| SelectError {
            typed: typed.to_owned(),
            column: at,
            message,
        })?;
        tokens.push(Token { kind, column: at });
        at += length;
    }
    tokens.push(Token { kind: Kind::End, column: letters.len() });
    Ok(tokens)
}

/// Returns the token at the start of `rest`, which must not begin with white space, and its length in
/// characters.
fn token(rest: &[char]) -> Result<(Kind, usize), String> {
    let next_is_equals = rest.get(1) == Some(&'=');
    Ok(match rest[0] {
        '(' => (Kind::Open, 1),
        ')' => (Kind::Close, 1),
        '=' => (Kind::Operator(Operator::Equal), if next_is_equals { 2 } else { 1 }),
        '~' => (Kind::Operator(Operator::Like), 1),
        '<' if next_is_equals => (Kind::Operator(Operator::LessOrEqual), 2),
        '<' => (Kind::Operator(Operator::Less), 1),
        '>' if next_is_equals => (Kind::Operator(Operator::GreaterOrEqual), 2),
        '>' => (Kind::Operator(Operator::Greater), 1),
        '!' if next_is_equals => (Kind::Operator(Operator::Unequal), 2),
        '!' => return Err("`!` alone means nothing here: `!=` compares, `not` negates".to_owned()),
        quote @ ('"' | '\'') => {
            let inside: String = rest[1..].iter().take_while(|letter| **letter != quote).collect();
            let length = inside.chars().count() + 2;
            if length > rest.len() {
                return Err(format!("this quote is never closed: expected another {quote}"));
            }
            (Kind::Quoted(inside), length)
        }
        _ => {
            let word: String = rest.iter().take_while(|letter| is_part_of_word(**letter)).collect();
            let length = word.chars().count();
            (Kind::Word(word), length)
        }
    })
}

fn is_part_of_word(letter: char) -> bool {
    !letter.is_whitespace() && !letter.is_control() && !"()=~<>!\"'".contains(letter)
}
