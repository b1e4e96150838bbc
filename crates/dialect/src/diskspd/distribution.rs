//! Distribution of random I/Os: shares of the I/Os for consecutive parts of the target.
//!
//! `-rdpct90/10:0/10:5/20` means 90 % of the I/Os to the first 10 % of the target, none to the next 10 %, 5 %
//! to the next 20 %, and the remaining 5 % to the rest. As in DiskSpd the rest is filled in here, so that a
//! profile shows it.

use super::size::{number, size_before};

/// Shares of the I/Os for parts of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Unit of the lengths.
    pub unit: Unit,
    /// Consecutive parts from the start.
    pub parts: Vec<Share>,
}

/// Unit of the lengths of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Percent of the target.
    Percent,
    /// Bytes.
    Absolute,
}

/// A part of the target and its share of the I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Percentage of the I/Os that go to the part; 0 for a hole.
    pub io_percent: u8,
    /// Length of the part. 0 bytes for the last part means the rest of the target.
    pub length: u64,
}

impl Distribution {
    /// Creates a distribution, with the remaining I/Os on the rest of the target.
    ///
    /// # Errors
    /// Fails if shares or parts exceed the total, or I/Os or parts remain without a counterpart.
    pub(super) fn new(unit: Unit, mut parts: Vec<Share>) -> Result<Self, String> {
        let (mut io, mut covered) = (0_u64, 0_u64);
        let open = |part: &Share| unit == Unit::Absolute && part.length == 0;
        for (place, part) in parts.iter().enumerate() {
            let last = place + 1 == parts.len();
            if u64::from(part.io_percent) > 100 - io {
                let left = 100 - io;
                return Err(format!("IO% {}: at most {left} is left of 100", part.io_percent));
            }
            if part.length == 0 && !(open(part) && last) {
                return Err(format!("part {} of the target has no length", place + 1));
            }
            io += u64::from(part.io_percent);
            covered = add_part(unit, covered, part.length)?;
            if unit == Unit::Percent && covered == 100 && io < 100 {
                return Err(format!("the target is covered with {} % of the I/Os left to place", 100 - io));
            }
        }
        let left = Share { io_percent: (100 - io) as u8, length: 100_u64.saturating_sub(covered) };
        match unit {
            Unit::Percent if covered < 100 && io == 100 => {
                return Err(format!(
                    "Target% adds up to {covered}: expected 100, or some of the I/Os left for the rest"
                ));
            }
            Unit::Percent if covered < 100 => parts.push(left),
            Unit::Absolute if left.io_percent > 0 && !parts.last().is_some_and(open) => {
                parts.push(Share { length: 0, ..left });
            }
            Unit::Absolute if left.io_percent > 0 => {
                return Err(format!("{} % of the I/Os have no part of the target", left.io_percent));
            }
            _ => {}
        }
        Ok(Self { unit, parts })
    }

    /// Parses the text after `-rd`: `pct` or `abs`, and colon-separated pairs `IO%/part`; `block` is the
    /// value of the unit `b`.
    ///
    /// # Errors
    /// The problem, with the text.
    pub(super) fn parse(text: &str, block: u64) -> Result<Self, String> {
        let (unit, pairs) = match (text.strip_prefix("pct"), text.strip_prefix("abs")) {
            (Some(pairs), _) => (Unit::Percent, pairs),
            (_, Some(pairs)) => (Unit::Absolute, pairs),
            _ => {
                return Err(format!(
                    "'{text}' is not a distribution: expected pct or abs and pairs IO%/part"
                ));
            }
        };
        let parts = pairs.split(':').map(|pair| parse_pair(unit, pair, block)).collect::<Result<_, _>>()?;
        Self::new(unit, parts)
    }

    /// Returns the length of the first part that is shorter than a block.
    pub(super) fn shorter_than(&self, block: u32) -> Option<u64> {
        let lengths = self.parts.iter().map(|part| part.length);
        match self.unit {
            Unit::Percent => None,
            Unit::Absolute => lengths.into_iter().find(|length| *length > 0 && *length < u64::from(block)),
        }
    }
}

/// Returns the length of `covered` parts with one more.
fn add_part(unit: Unit, covered: u64, length: u64) -> Result<u64, String> {
    let sum = covered.checked_add(length);
    match unit {
        Unit::Percent => sum.filter(|sum| *sum <= 100).ok_or_else(|| {
            format!("Target% {length}: at most {} is left of 100", 100_u64.saturating_sub(covered))
        }),
        Unit::Absolute => sum.ok_or_else(|| format!("the parts up to that of {length} exceed 16 EiB")),
    }
}

fn parse_pair(unit: Unit, pair: &str, block: u64) -> Result<Share, String> {
    let expected = match unit {
        Unit::Percent => "IO%/Target%",
        Unit::Absolute => "IO%/size",
    };
    let (io, part) = pair.split_once('/').ok_or_else(|| format!("'{pair}': expected {expected}"))?;
    let io_percent = number(io).ok().filter(|io| *io <= 100);
    let io_percent = io_percent.ok_or_else(|| format!("IO% '{io}' of '{pair}': expected 0 to 100"))? as u8;
    let length = match unit {
        Unit::Percent => number(part)
            .ok()
            .filter(|part| (1..=100).contains(part))
            .ok_or_else(|| format!("Target% '{part}' of '{pair}': expected 1 to 100"))?,
        Unit::Absolute => match size_before(part, block)? {
            (length, "") if length > 0 => length,
            _ => return Err(format!("size '{part}' of '{pair}': expected a size above 0, and ':' after it")),
        },
    };
    Ok(Share { io_percent, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(text: &str) -> Vec<(u8, u64)> {
        let parts = Distribution::parse(text, 4096).unwrap().parts;
        parts.iter().map(|part| (part.io_percent, part.length)).collect()
    }

    #[test]
    fn the_rest_is_appended() {
        assert_eq!(shares("pct90/10:0/10:5/20"), [(90, 10), (0, 10), (5, 20), (5, 60)]);
        assert_eq!(shares("pct100/100"), [(100, 100)]);
        assert_eq!(shares("pct10/10:90/90"), [(10, 10), (90, 90)]);
        assert_eq!(shares("abs90/10g:0/10g:5/20G"), [(90, 10 << 30), (0, 10 << 30), (5, 20 << 30), (5, 0)]);
        assert_eq!(shares("abs100/2b"), [(100, 8192)]);
    }

    #[test]
    fn nonsense_is_named() {
        for (text, named) in [
            ("pct101/10", "101"),
            ("pct90/0", "'0'"),
            ("pct90/101", "101"),
            ("pct90", "'90'"),
            ("pct60/50:50/50", "IO% 50"),
            ("pct10/60:10/60", "Target% 60"),
            ("pct10/100", "90 %"),
            ("pct100/10", "adds up to 10"),
            ("pct10/10:80/10:10/10", "adds up to 30"),
            ("pct10/10:", "''"),
            ("abs10/0", "'0'"),
            ("abs10/1Gx", "1Gx"),
            ("abs10/", "no size"),
            ("uni10/10", "uni"),
            ("", "pct or abs"),
        ] {
            let problem = Distribution::parse(text, 4096).unwrap_err();
            assert!(problem.contains(named), "{text}: {problem}");
        }
    }
}
