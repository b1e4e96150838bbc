//! Field layout of an event: the file `format` of its directory (Documentation/trace/events.rst, "Event
//! formats").

use plumb_block::{Error, ErrorKind, Result};

/// Field layout of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// Name of the event.
    pub name: String,
    /// Number at the start of the event's records.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

/// Location of an event's field in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub(super) offset: usize,
    pub(super) size: usize,
}

impl EventFormat {
    /// Parses the text of a `format` file. Lines that do not describe fields are skipped.
    ///
    /// # Errors
    /// If the text has no event name.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut name, mut id, mut fields) = (None, None, Vec::new());
        for line in text.lines().map(str::trim) {
            if let Some(of) = line.strip_prefix("name:") {
                name = Some(of.trim().to_owned());
            } else if let Some(of) = line.strip_prefix("ID:") {
                id = of.trim().parse().ok();
            } else if let Some(field) = field(line) {
                fields.push(field);
            }
        }
        match (name, id) {
            (Some(name), Some(id)) => Ok(Self { name, id, fields }),
            _ => Err(Error::new(ErrorKind::Invalid, "read the format of", "an event of tracing")
                .because("expected its name and its ID")),
        }
    }

    /// Returns the field called `name`.
    ///
    /// # Errors
    /// If this kernel's event has no such field.
    pub fn field(&self, name: &str) -> Result<Field> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, field)| *field).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "read the format of", format!("the event {}", self.name))
                .because(format!("it has no field {name} in this kernel"))
        })
    }
}

/// Parses a field, `field:unsigned int nr_sector; offset:24; size:4; signed:0;`, separated by tabs. Lines of
/// a page header, which start with blanks, have the same format.
pub(super) fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    // `char rwbs[10]`: the name without its length.
    let declared =
        declared.split_once('[').filter(|(_, rest)| rest.ends_with(']')).map_or(declared, |(name, _)| name);
    let name = declared.rsplit([' ', '*']).next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
    let field = Field { offset: number("offset:")?, size: number("size:")? };
    Some((name.to_owned(), field))
}

impl Field {
    /// Returns the bytes of the field; empty if the record is too short.
    pub fn bytes(self, record: &[u8]) -> &[u8] {
        self.offset.checked_add(self.size).and_then(|end| record.get(self.offset..end)).unwrap_or_default()
    }

    /// Returns the field as an unsigned number in native byte order; 0 if the record is too short.
    pub fn number(self, record: &[u8]) -> u64 {
        match *self.bytes(record) {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUE: &str = include_str!("samples/block_rq_issue.format");

    #[test]
    fn fields_are_found_by_their_names() {
        let format = EventFormat::parse(ISSUE).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("block_rq_issue", 2104));
        let at = |name: &str| format.field(name).map(|field| (field.offset, field.size)).unwrap();
        assert_eq!(
            (at("dev"), at("sector"), at("rwbs"), at("common_pid")),
            ((8, 4), (16, 8), (34, 10), (4, 4))
        );
        assert_eq!(at("cmd"), (60, 4), "a length behind its type");
        let missing = format.field("bytes_of").unwrap_err().to_string();
        assert!(missing.contains("block_rq_issue") && missing.contains("bytes_of"), "{missing}");
        assert!(EventFormat::parse("field:x").is_err());
    }

    #[test]
    fn a_short_record_has_no_numbers_and_never_panics() {
        let field = Field { offset: 6, size: 4 };
        assert_eq!(field.number(&[1; 10]), 0x0101_0101);
        assert_eq!((field.number(&[1; 9]), field.bytes(&[]).len()), (0, 0));
        assert_eq!(Field { offset: usize::MAX, size: 2 }.number(&[1]), 0);
    }
}
