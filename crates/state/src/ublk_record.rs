//! The record of an exported ublk device, which its server keeps locked. It holds what a later process must
//! know about the device.
//!
//! ```text
//! c | d | f          state: clean, dirty, a flush failed; one byte, overwritten in place
//! plumb-ublk 1       format
//! NAME               export name of the device
//! IDENTITY           identity of the contents
//! DriveRecord        of a simulated drive, one line for each change
//! ```

/// Contents of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UblkRecord {
    /// Letter that tells whether acknowledged data is at risk: `c`, `d` or `f`.
    pub state: char,
    /// Export name of the device.
    pub name: String,
    /// Identity of the contents; `cache UUID` for a cache.
    pub identity: String,
}

const FORMAT: &str = "plumb-ublk 1";

impl UblkRecord {
    /// Parses the text of a record. Returns `None` if it is incomplete, because the device was never started,
    /// or has another format.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (state, format) = (lines.next()?, lines.next()?);
        let (name, identity) = (lines.next()?.to_owned(), lines.next()?.to_owned());
        let state: char = state.parse().ok()?;
        (format == FORMAT).then_some(Self { state, name, identity })
    }

    /// Encodes the record as text. Line feeds in the name and the identity become spaces.
    pub fn text(&self) -> String {
        let [name, identity] = [&self.name, &self.identity].map(|text| text.replace('\n', " "));
        format!("{}\n{FORMAT}\n{name}\n{identity}\n", self.state)
    }
}
