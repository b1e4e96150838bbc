//! Numbers, sizes and times.

use plumb_block::{Bytes, Nanos};

use super::Vocabulary;

macro_rules! whole_numbers {
    ($($kind:ty, $most:literal, $expected:literal;)+) => {$(
        impl Vocabulary for $kind {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok().filter(|number| (0..=$most).contains(number))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

whole_numbers! {
    u8, 100, "a whole number of percent, 0 to 100";
    u32, 4_294_967_295, "a whole number, 0 to 4294967295";
    u64, 18_446_744_073_709_551_615, "a whole number, 0 to 18446744073709551615";
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

/// Formats a size that always has a unit, for places where a bare number means something else.
pub(super) fn size_with_unit(Bytes(bytes): Bytes) -> String {
    scaled(bytes).unwrap_or_else(|| format!("{bytes}B"))
}

/// Formats a size in the largest power of 1024 that divides it.
fn scaled(bytes: u64) -> Option<String> {
    let units = [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let (shift, unit) = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift)?;
    Some(format!("{}{unit}", bytes >> shift))
}

impl Vocabulary for Nanos {
    const EXPECTED: &'static str = "a time with a unit (ns, us, ms, s, m, h, d) or in seconds, such as 500us, 1m30s, 10, 0.5; at most 213503d";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        let units = [
            ("d", Self::secs(86_400)),
            ("h", Self::secs(3600)),
            ("m", Self::secs(60)),
            ("s", Self::secs(1)),
            ("ms", Self::millis(1)),
            ("us", Self::micros(1)),
        ];
        let unit = units.into_iter().find(|(_, unit)| self.0.is_multiple_of(unit.0) && self.0 > 0);
        let (name, unit) = unit.unwrap_or(if self.0 == 0 { ("s", Self::secs(1)) } else { ("ns", Self(1)) });
        format!("{}{name}", self.0 / unit.0)
    }
}

/// Parses a finite decimal number.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}
