//! XML: elements with line numbers, parsed from untrusted text, and a writer.
//!
//! Document types are refused, so entities do not expand. The length of a document is limited.

use std::fmt::{Display, Write as _};

use roxmltree::{Document, Node};

use super::xml_fields::{Field, Slot};
use crate::error::Error;

/// Maximum length of a document, in bytes.
const LENGTH_MAX: usize = 4 << 20;

/// Parses a document; `file` is its name in errors.
///
/// # Errors
/// The position at which it is not well-formed, or that it is too long.
pub(super) fn parse<'a>(text: &'a str, file: &str) -> Result<Document<'a>, Error> {
    if text.len() > LENGTH_MAX {
        let problem = format!("{} bytes: a profile has at most {LENGTH_MAX}", text.len());
        return Err(Error::new(file, problem));
    }
    Document::parse(text).map_err(|error| {
        Error::new(format!("{file}:{}", error.pos().row), format!("not well-formed XML: {error}"))
    })
}

/// Element of a document, with access to its children by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) file: &'a str,
    pub(super) node: Node<'a, 'a>,
}

impl<'a> Element<'a> {
    /// Returns the name of the element.
    pub(super) fn name(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// Returns the text in the element, without white space around it.
    pub(super) fn text(&self) -> String {
        let texts = self.node.children().filter(Node::is_text).filter_map(|text| text.text());
        texts.collect::<String>().trim().to_owned()
    }

    /// Returns the position: file and line.
    pub(super) fn place(&self) -> String {
        let line = self.node.document().text_pos_at(self.node.range().start).row;
        format!("{}:{line}", self.file)
    }

    /// Creates an error about this element.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::new(self.place(), problem)
    }

    /// Returns all children.
    pub(super) fn children(&self) -> impl Iterator<Item = Self> + use<'a> {
        let file = self.file;
        self.node.children().filter(Node::is_element).map(move |node| Self { file, node })
    }

    /// Refuses text, and children with other names than `names`.
    ///
    /// # Errors
    /// The first such item.
    pub(super) fn known_only(&self, names: &[&str]) -> Result<(), Error> {
        let (name, text) = (self.name(), self.text());
        match self.children().find(|child| !names.contains(&child.name())) {
            Some(child) => {
                let expected = names.join(", ");
                Err(child.wrong(format!("<{}> is not known in <{name}>: expected {expected}", child.name())))
            }
            None if !text.is_empty() => Err(self.wrong(format!("<{name}>: '{text}' is not an element"))),
            None => Ok(()),
        }
    }

    /// Returns the children of the only child `name`: at least one, all named `inner`. `None` without that
    /// child.
    ///
    /// # Errors
    /// The unexpected content.
    pub(super) fn list(&self, name: &str, inner: &str) -> Result<Option<Vec<Self>>, Error> {
        let Some(list) = self.child(name)? else { return Ok(None) };
        list.known_only(&[inner])?;
        let children: Vec<Self> = list.children().collect();
        if children.is_empty() {
            Err(list.wrong(format!("<{name}>: expected <{inner}>")))
        } else {
            Ok(Some(children))
        }
    }

    /// Returns the children of the required child `name`: at least one, all named `inner`.
    ///
    /// # Errors
    /// The unexpected content.
    pub(super) fn needed_list(&self, name: &str, inner: &str) -> Result<Vec<Self>, Error> {
        self.list(name, inner)?.ok_or_else(|| self.wrong(format!("<{}>: expected <{name}>", self.name())))
    }

    /// Returns the only child `name`; `None` if missing.
    ///
    /// # Errors
    /// Fails if there are several.
    pub(super) fn child(&self, name: &str) -> Result<Option<Self>, Error> {
        let mut children = self.children().filter(|child| child.name() == name);
        match (children.next(), children.next()) {
            (child, None) => Ok(child),
            (_, Some(second)) => Err(second.wrong(format!("<{name}> comes a second time"))),
        }
    }

    /// Returns the only child `name` and its text.
    ///
    /// # Errors
    /// Fails if there are several, or if it contains elements.
    pub(super) fn value(&self, name: &str) -> Result<Option<(Self, String)>, Error> {
        let Some(child) = self.child(name)? else { return Ok(None) };
        let text = child.text();
        // The parser replaces references to characters invalid in XML by U+FFFD.
        if text.contains('\u{fffd}') && !self.node.document().input_text().contains('\u{fffd}') {
            return Err(child.wrong(format!("<{name}> refers to a character that XML does not have")));
        }
        match child.children().next() {
            None => Ok(Some((child, text))),
            Some(inner) => Err(child.wrong(format!("<{name}> holds <{}>: expected a value", inner.name()))),
        }
    }

    /// Returns the number in the only child `name`.
    ///
    /// # Errors
    /// Fails unless it is from `least` to `most`.
    pub(super) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Error> {
        let Some((child, text)) = self.value(name)? else { return Ok(None) };
        child.whole(name, &text, least, most).map(Some)
    }

    /// Returns the number in an attribute.
    ///
    /// # Errors
    /// Fails if it is missing or exceeds `most`.
    pub(super) fn attribute(&self, name: &str, most: u64) -> Result<u64, Error> {
        let text = self.node.attribute(name);
        let text =
            text.ok_or_else(|| self.wrong(format!("<{}>: expected the attribute {name}", self.name())))?;
        self.whole(name, text, 0, most)
    }

    /// Parses the number `text` of the element `name`.
    ///
    /// # Errors
    /// Fails unless it is from `least` to `most`.
    pub(super) fn whole(&self, name: &str, text: &str, least: u64, most: u64) -> Result<u64, Error> {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_digits && (least..=most).contains(number));
        number.ok_or_else(|| {
            self.wrong(format!("<{name}>: '{text}': expected a whole number from {least} to {most}"))
        })
    }

    /// Returns the boolean in the child `name`, if present.
    ///
    /// # Errors
    /// Fails if it is invalid.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        self.choice(name, &[("true", true), ("false", false), ("1", true), ("0", false)])
    }

    /// Returns the choice in the child `name`, if present.
    ///
    /// # Errors
    /// Fails if it is not among `choices`.
    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some((child, text)) = self.value(name)? else { return Ok(None) };
        match choices.iter().find(|(choice, _)| *choice == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let expected: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
                Err(child.wrong(format!("<{name}>: '{text}': expected {}", expected.join(", "))))
            }
        }
    }

    /// Sets the fields of `into` from the elements present.
    ///
    /// # Errors
    /// The first invalid element.
    pub(super) fn set<T>(&self, fields: &[Field<T>], into: &mut T) -> Result<(), Error> {
        for field in fields {
            let slot = (field.slot)(into);
            if let Slot::Flag(flag) = slot {
                *flag = self.flag(field.name)?.unwrap_or(*flag);
                continue;
            }
            let Some(number) = self.number(field.name, field.least, field.most)? else { continue };
            match slot {
                Slot::Flag(_) => {}
                Slot::Byte(byte) => *byte = number as u8,
                Slot::Int(int) => *int = number as u32,
                Slot::Long(long) => *long = number,
            }
        }
        Ok(())
    }
}

/// Writer of XML, indented by two spaces for each level.
#[derive(Debug, Default)]
pub(super) struct XmlWriter {
    pub(super) written: String,
    depth: usize,
}

impl XmlWriter {
    /// Opens an element with children.
    pub(super) fn open(&mut self, name: &str) {
        self.open_with(name, "");
    }

    /// Opens an element with children and attributes; `attributes` is not escaped.
    pub(super) fn open_with(&mut self, name: &str, attributes: &str) {
        let blank = if attributes.is_empty() { "" } else { " " };
        self.line(&format!("<{name}{blank}{attributes}>"));
        self.depth += 1;
    }

    /// Closes the element opened last.
    pub(super) fn close(&mut self, name: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(&format!("</{name}>"));
    }

    /// Writes an element with a value.
    pub(super) fn value(&mut self, name: &str, value: impl Display) {
        self.text(name, &value.to_string());
    }

    fn text(&mut self, name: &str, value: &str) {
        self.line(&format!("<{name}>{}</{name}>", escaped(value)));
    }

    /// Writes an element with the name of a choice, if it has one.
    pub(super) fn choice<T: PartialEq>(&mut self, name: &str, choices: &[(&str, T)], value: &T) {
        if let Some((chosen, _)) = choices.iter().find(|(_, choice)| choice == value) {
            self.text(name, chosen);
        }
    }

    /// Writes the fields of `from`.
    pub(super) fn fields<T: Clone>(&mut self, fields: &[Field<T>], from: &T) {
        let mut from = from.clone();
        for field in fields {
            let (number, text) = match (field.slot)(&mut from) {
                Slot::Flag(flag) => (u64::from(*flag), flag.to_string()),
                Slot::Byte(byte) => (u64::from(*byte), byte.to_string()),
                Slot::Int(int) => (u64::from(*int), int.to_string()),
                Slot::Long(long) => (*long, long.to_string()),
            };
            if number > 0 || !field.is_sparse {
                self.text(field.name, &text);
            }
        }
    }

    /// Writes an unescaped line.
    pub(super) fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let written = writeln!(self.written, "{:1$}{line}", "", 2 * self.depth);
        debug_assert!(written.is_ok(), "a string refused to be written to");
    }
}

/// Returns `value` with XML escapes.
pub(super) fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '\'' => escaped += "&apos;",
            '"' => escaped += "&quot;",
            '\r' => escaped += "&#13;",
            _ if is_unrepresentable(letter) => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Returns true for characters that XML 1.0 cannot represent (2.2, Characters). File names may contain them.
const fn is_unrepresentable(letter: char) -> bool {
    matches!(letter, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}
