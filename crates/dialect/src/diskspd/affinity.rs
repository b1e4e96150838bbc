//! `-a`: processors to which threads are assigned in turn.
//!
//! Windows counts processors in groups of at most 64. Processor P of group G is the kernel's processor 64 G +
//! P.

use super::profile::Processor;
use super::size::number;

/// Number of processors in a group.
pub(super) const GROUP: u32 = 64;

/// Parses the text after `-a`: nothing, `g`, or comma-separated numbers, where `gN` sets the group of the
/// numbers after it. An empty result means all processors, the default.
///
/// # Errors
/// The invalid part.
pub(super) fn parse(text: &str) -> Result<Vec<Processor>, String> {
    if text.is_empty() || text == "g" {
        return Ok(Vec::new());
    }
    let mut processors = Vec::new();
    let mut group = 0;
    let mut complete = false;
    for part in text.split(',') {
        complete = match part.strip_prefix('g') {
            Some(digits) => {
                group = within(digits, u32::from(u16::MAX), "group")?;
                false
            }
            None => {
                let number = within(part, u32::from(u8::MAX), "processor")?;
                processors.push(Processor { group, number });
                true
            }
        };
    }
    if complete { Ok(processors) } else { Err(format!("'{text}' ends without a processor")) }
}

fn within(digits: &str, most: u32, what: &str) -> Result<u32, String> {
    let value = number(digits).ok().and_then(|value| u32::try_from(value).ok());
    let fits = value.filter(|value| *value <= most);
    fits.ok_or_else(|| format!("'{digits}' is not a {what}: expected a whole number up to {most}"))
}

impl Processor {
    /// Returns the kernel's number of the processor.
    pub(super) const fn number(self) -> u32 {
        self.group * GROUP + self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(u32, u32)> {
        parse(text).unwrap().iter().map(|processor| (processor.group, processor.number)).collect()
    }

    #[test]
    fn groups_hold_for_what_follows() {
        assert_eq!(pairs("0,1,2"), [(0, 0), (0, 1), (0, 2)]);
        assert_eq!(pairs("g0,0,1,g1,0"), [(0, 0), (0, 1), (1, 0)]);
        assert_eq!(pairs("3,g2,3"), [(0, 3), (2, 3)]);
        assert!(pairs("").is_empty() && pairs("g").is_empty());
    }

    #[test]
    fn incomplete_lists_are_refused() {
        for text in ["0,", ",0", "g0", "gg0,1", "0,g1", "x", "256", "g65536,0", "0;1", "-1", "g,1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
