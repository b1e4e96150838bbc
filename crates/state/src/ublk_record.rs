//! The record of an exported ublk device, which its server keeps locked: what a later process must know of
//! it.
//!
//! ```text
//! c | d | f          what is at risk; one byte that is overwritten
//! plumb-ublk 1       the format
//! NAME               what the device was exported as
//! IDENTITY           what the contents are
//! DriveRecord        of a simulated drive, as often as it changes
//! ```

/// The text of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UblkRecord {
    /// Letter of what is at risk.
    pub state: char,
    /// Name that the device was exported as.
    pub name: String,
    /// Identity of the contents; `cache UUID` of a cache.
    pub identity: String,
}

const FORMAT: &str = "plumb-ublk 1";

impl UblkRecord {
    /// Parses the text of a record. Returns `None` for what is not whole, which belongs to a device that was
    /// never started, or has another format.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (state, format) = (lines.next()?, lines.next()?);
        let (name, identity) = (lines.next()?.to_owned(), lines.next()?.to_owned());
        let state: char = state.parse().ok()?;
        (format == FORMAT).then_some(Self { state, name, identity })
    }

    /// Returns the text of the record. Line feeds in the name and the identity become spaces.
    pub fn text(&self) -> String {
        let [name, identity] = [&self.name, &self.identity].map(|text| text.replace('\n', " "));
        format!("{}\n{FORMAT}\n{name}\n{identity}\n", self.state)
    }
}
