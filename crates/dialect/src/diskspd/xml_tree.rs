//! An XML document as a small tree that knows its lines, from text that nobody vouches for.
//!
//! Size and depth are limited, there are no document types, and the only entities are the five of XML itself and
//! characters by number: nothing expands.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::Error;

/// How long a document may be, in bytes.
pub(super) const LENGTH_MAX: usize = 4 << 20;
/// How deep elements may be nested.
const DEPTH_MAX: usize = 16;

/// An element.
#[derive(Debug)]
pub(super) struct Element {
    /// Its name.
    pub(super) name: String,
    /// Where it begins, from 1.
    pub(super) line: usize,
    /// Its attributes, names and values.
    pub(super) attributes: Vec<(String, String)>,
    /// Its text, trimmed.
    pub(super) text: String,
    /// What is in it.
    pub(super) children: Vec<Element>,
}

/// Reads a document; `file` is its name for errors.
///
/// # Errors
/// Where it is not well-formed, too long, too deep, or asks for more than plain elements.
pub(super) fn parse(text: &str, file: &str) -> Result<Element, Error> {
    if text.len() > LENGTH_MAX {
        let problem = format!("{} bytes: a profile has at most {LENGTH_MAX}", text.len());
        return Err(Error::new(file, problem));
    }
    let mut reader = Reader::from_str(text);
    reader.config_mut().enable_all_checks(true);
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    let mut lines = Lines { text, seen: 0, line: 1 };
    loop {
        let line = lines.at(reader.buffer_position());
        let wrong = |problem: String| Error::new(format!("{file}:{line}"), problem);
        let event = reader.read_event().map_err(|error| {
            let line = Lines { text, seen: 0, line: 1 }.at(reader.error_position());
            Error::new(format!("{file}:{line}"), format!("not well-formed XML: {error}"))
        })?;
        match event {
            Event::Start(start) => {
                if open.len() == DEPTH_MAX {
                    return Err(wrong(format!("elements are nested deeper than {DEPTH_MAX}")));
                }
                open.push(element(&start, line).map_err(wrong)?);
            }
            Event::Empty(start) => {
                let element = element(&start, line).map_err(wrong)?;
                close(element, &mut open, &mut root).map_err(wrong)?;
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(|| wrong("an end without a start".to_owned()))?;
                close(element, &mut open, &mut root).map_err(wrong)?;
            }
            Event::Text(text) => add_text(&text.xml10_content(), &mut open).map_err(wrong)?,
            Event::CData(text) => add_text(&text.xml10_content(), &mut open).map_err(wrong)?,
            Event::GeneralRef(reference) => {
                let character = character(&reference).map_err(wrong)?;
                add_text(character.encode_utf8(&mut [0; 4]), &mut open).map_err(wrong)?;
            }
            Event::DocType(_) => return Err(wrong("a document type: expected plain elements".to_owned())),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    if let Some(unclosed) = open.last() {
        return Err(Error::new(
            format!("{file}:{}", unclosed.line),
            format!("<{}> is not closed", unclosed.name),
        ));
    }
    root.ok_or_else(|| Error::new(file, "no element: expected a Profile"))
}

fn element(start: &BytesStart<'_>, line: usize) -> Result<Element, String> {
    let name = start.name().as_ref().to_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| format!("<{name}>: {error}"))?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| format!("<{name}>: {error}"))?;
        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(Element { name, line, attributes, text: String::new(), children: Vec::new() })
}

fn close(mut element: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<(), String> {
    element.text = element.text.trim().to_owned();
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_none() => *root = Some(element),
        None => return Err(format!("<{}> stands beside the first element", element.name)),
    }
    Ok(())
}

fn add_text(text: &str, open: &mut [Element]) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(format!("'{}' stands outside of all elements", text.trim())),
    }
    Ok(())
}

fn character(reference: &BytesRef<'_>) -> Result<char, String> {
    let name: &str = reference;
    match name {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "quot" => Ok('"'),
        _ => match reference.resolve_char_ref() {
            Ok(Some(character)) => Ok(character),
            _ => Err(format!(
                "&{name}; is not known: expected lt, gt, amp, apos, quot or a character's number"
            )),
        },
    }
}

/// Counts lines as a reader goes on.
struct Lines<'a> {
    text: &'a str,
    seen: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of the byte at `position`, from 1.
    fn at(&mut self, position: u64) -> usize {
        let position =
            usize::try_from(position).map_or(self.text.len(), |position| position.min(self.text.len()));
        let passed = self.text.as_bytes().get(self.seen..position).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.seen = self.seen.max(position);
        self.line
    }
}
