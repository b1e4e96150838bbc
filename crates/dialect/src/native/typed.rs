//! A value of a word, typed on a command line or written in a file: one text form for both.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeSeq, Serializer};

/// What can be said as the value of a word. `parse(show(x))` is `x`, to the last bit.
pub(crate) trait Vocabulary: Sized {
    /// Completes the sentence "expected ...".
    const EXPECTED: &'static str;
    /// Whether a file holds it as an array; on the command line there are commas between the elements.
    const IS_LIST: bool = false;

    /// What `text` says; `None` if it is not what is expected.
    fn parse(text: &str) -> Option<Self>;

    /// How it is said.
    fn show(&self) -> String;
}

/// A value with few possibilities, each with a name.
pub(crate) trait Choice: Copy + PartialEq + Send + Sync + 'static {
    /// Completes the sentence "expected ...".
    const EXPECTED: &'static str;
    /// All of them.
    const NAMES: &'static [(&'static str, Self)];
}

impl<T: Choice> Vocabulary for T {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(text: &str) -> Option<Self> {
        T::NAMES.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice)
    }

    fn show(&self) -> String {
        T::NAMES.iter().find(|(_, choice)| choice == self).map_or("", |(name, _)| name).to_owned()
    }
}

/// A typed value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Typed<T>(pub(crate) T);

/// The text is not what was expected.
#[derive(Debug)]
pub(crate) struct Unexpected {
    expected: &'static str,
}

/// For clap: one of the names of `T`, which help and completions list.
pub(crate) fn choices<T: Choice>() -> impl TypedValueParser<Value = Typed<T>> {
    PossibleValuesParser::new(T::NAMES.iter().map(|(name, _)| *name)).try_map(|name| name.parse::<Typed<T>>())
}

impl<T: Vocabulary> FromStr for Typed<T> {
    type Err = Unexpected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        T::parse(text).map(Self).ok_or(Unexpected { expected: T::EXPECTED })
    }
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl std::error::Error for Unexpected {}

impl<T: Vocabulary> Serialize for Typed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.show();
        if T::IS_LIST {
            let mut elements = serializer.serialize_seq(None)?;
            for element in text.split(',') {
                elements.serialize_element(&Plain(element))?;
            }
            return elements.end();
        }
        Plain(&text).serialize(serializer)
    }
}

/// Text that is an integer where a file can hold it as one.
struct Plain<'a>(&'a str);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.parse::<i64>() {
            Ok(integer) => serializer.serialize_i64(integer),
            Err(_) => serializer.serialize_str(self.0),
        }
    }
}

impl<'de, T: Vocabulary> Deserialize<'de> for Typed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOf(PhantomData))
    }
}

/// Takes strings, numbers, and arrays of these as their text.
struct TextOf<T>(PhantomData<T>);

impl<'de, T: Vocabulary> Visitor<'de> for TextOf<T> {
    type Value = Typed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(Typed(Element(text))) = elements.next_element()? {
            texts.push(text);
        }
        self.visit_str(&texts.join(","))
    }
}

/// An element of an array, as it stands.
struct Element(String);

impl Vocabulary for Element {
    const EXPECTED: &'static str = "an array of strings and numbers";

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}
