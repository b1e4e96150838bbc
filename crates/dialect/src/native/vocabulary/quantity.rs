//! Numbers, sizes and times.

use plumb_block::{Bytes, Nanos};

use super::Vocabulary;

/// A percentage.
impl Vocabulary for u8 {
    const EXPECTED: &'static str = "a whole number of percent, 0 to 100";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|percent| *percent <= 100)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Vocabulary for u32 {
    const EXPECTED: &'static str = "a whole number, 0 to 4294967295";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Vocabulary for u64 {
    const EXPECTED: &'static str = "a whole number, 0 to 18446744073709551615";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Vocabulary for Bytes {
    const EXPECTED: &'static str = "a size in bytes or with a unit, such as 512, 4k, 64KiB, 1.5G";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        scaled(self.0).unwrap_or_else(|| self.0.to_string())
    }
}

/// The size with its unit, always: where a bare number would mean something else.
pub(super) fn size_with_unit(Bytes(bytes): Bytes) -> String {
    scaled(bytes).unwrap_or_else(|| format!("{bytes}B"))
}

/// In the largest power of 1024 that leaves a whole number.
fn scaled(bytes: u64) -> Option<String> {
    let units = [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let (shift, unit) = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift)?;
    Some(format!("{}{unit}", bytes >> shift))
}

/// Units of time, longest first.
const TIMES: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Vocabulary for Nanos {
    const EXPECTED: &'static str =
        "a time with a unit (ns, us, ms, s, m, h, d) or in seconds, such as 500us, 1m30s, 10, 0.5";

    fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut sum = 0_u64;
        loop {
            let (number, after) = rest.split_at(rest.find(is_letter).unwrap_or(rest.len()));
            let (unit, after) = after.split_at(after.find(|c| !is_letter(c)).unwrap_or(after.len()));
            // Only a lone number goes without a unit.
            let unit = if unit.is_empty() && number.len() == text.len() { "s" } else { unit };
            let (_, nanos) = TIMES.into_iter().find(|(name, _)| *name == unit)?;
            sum = sum.checked_add(times(number.trim(), nanos)?)?;
            if after.is_empty() {
                return Some(Self(sum));
            }
            rest = after;
        }
    }

    fn show(&self) -> String {
        if self.0 == 0 {
            return "0s".to_owned();
        }
        let unit = TIMES.into_iter().find(|(_, nanos)| self.0.is_multiple_of(*nanos));
        let (name, nanos) = unit.unwrap_or(("ns", 1));
        format!("{}{name}", self.0 / nanos)
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}

/// A decimal number of `unit`s, if that is a whole number.
fn times(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 15 {
        return None;
    }
    let scale = 10_u128.pow(fraction.len() as u32);
    let value = whole.parse::<u64>().ok()?;
    let scaled =
        (u128::from(value) * scale + fraction.parse::<u128>().ok()?).checked_mul(u128::from(unit))?;
    scaled.is_multiple_of(scale).then(|| u64::try_from(scaled / scale).ok())?
}

/// A decimal number; neither infinite nor not a number.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}
