//! Statements about a simulated drive by its server, for surveys that see only the kernel's device: a line of
//! JSON in the record of the attachment or ublk device. A later line replaces an earlier one.

use serde::{Deserialize, Serialize};

/// Properties of a simulated drive that the kernel cannot know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveRecord {
    /// Model of the drive.
    pub model: String,
    /// True if the drive discards everything written.
    #[serde(default)]
    pub keeps_nothing: bool,
    /// True if a power cut loses acknowledged data that was not flushed.
    #[serde(default)]
    pub is_volatile: bool,
    /// Description of how the drive mishandles flushes: a phrase that follows `a flush`; `None` if it does
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_lie: Option<String>,
}

impl DriveRecord {
    /// Returns the last drive record in the text of a record file.
    pub fn last_in(text: &str) -> Option<Self> {
        text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
    }

    /// Returns the line of the record.
    pub fn line(&self) -> String {
        // A record of strings and booleans always serializes.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_and_other_lines_do_not() {
        let drive = |is_volatile| DriveRecord {
            model: "a \"model\"\n{".to_owned(),
            keeps_nothing: false,
            is_volatile,
            flush_lie: None,
        };
        let text = format!("c\nplumb-ublk 1\n{{}}\n\n{}{}", drive(true).line(), drive(false).line());
        assert_eq!(DriveRecord::last_in(&text), Some(drive(false)));
        assert_eq!(DriveRecord::last_in("4711\n{}\n"), None);
    }
}
