//! Types for units, so that a block number is never added to a byte count and no duration lacks its unit.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A logical block address: the number of a logical block from the start of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lba(pub u64);

/// A number of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A duration, or a point on a [`Clock`](crate::Clock), in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Bytes {
    /// One kibibyte.
    pub const KIB: u64 = 1 << 10;
    /// One mebibyte.
    pub const MIB: u64 = 1 << 20;
    /// One gibibyte.
    pub const GIB: u64 = 1 << 30;

    /// Returns `n` kibibytes.
    pub const fn kib(n: u64) -> Self {
        Self(n * Self::KIB)
    }

    /// Returns `n` mebibytes.
    pub const fn mib(n: u64) -> Self {
        Self(n * Self::MIB)
    }

    /// Returns `n` gibibytes.
    pub const fn gib(n: u64) -> Self {
        Self(n * Self::GIB)
    }

    /// Returns the largest multiple of `unit` that is not above this value; `unit` must not be zero.
    pub const fn round_down(self, unit: Self) -> Self {
        Self(self.0 - self.0 % unit.0)
    }
}

impl Nanos {
    /// Zero duration, and the start of every clock.
    pub const ZERO: Self = Self(0);

    /// Returns `n` microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// Returns `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// Returns `n` whole seconds.
    pub const fn secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// Returns `seconds` rounded to the nanosecond; negative and not-a-number become zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates, and maps NaN and negatives to zero, as the contract says.
        Self((seconds * 1e9).round() as u64)
    }

    /// Returns this duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later than this.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Adds without overflow: a sum that is too large becomes the largest time.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Multiplies without overflow: a product that is too large becomes the largest time.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

macro_rules! arithmetic {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $unit {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Mul<u64> for $unit {
            type Output = Self;
            fn mul(self, factor: u64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl std::iter::Sum for $unit {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                Self(items.map(|item| item.0).sum())
            }
        }
    )*};
}
arithmetic!(Bytes, Nanos);

impl Add<u64> for Lba {
    type Output = Self;
    fn add(self, blocks: u64) -> Self {
        Self(self.0 + blocks)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {}", self.0)
    }
}

/// Powers of 1024 with their unit, to three significant digits: `8 KiB`, `1.46 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < Self::KIB {
            return f.pad(&format!("{} B", self.0));
        }
        let mut scaled = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while scaled >= 1023.5 && unit + 1 < UNITS.len() {
            scaled /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{} {}", three_digits(scaled), UNITS[unit]))
    }
}

/// Shortest duration shown in hours, in nanoseconds: two hours.
const HOURS_FROM: u64 = 7_200_000_000_000;
/// Shortest duration shown in days, in nanoseconds: two days.
const DAYS_FROM: u64 = 172_800_000_000_000;

/// The most readable unit, to three significant digits: `412 ns`, `8.33 ms`, `1.5 s`, `6.5 h`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (scaled, unit) = match self.0 {
            0..=999 => return f.pad(&format!("{} ns", self.0)),
            1_000..=999_499 => (ns / 1e3, "µs"),
            999_500..=999_499_999 => (ns / 1e6, "ms"),
            999_500_000..HOURS_FROM => (ns / 1e9, "s"),
            HOURS_FROM..DAYS_FROM => (ns / 3.6e12, "h"),
            _ => (ns / 86.4e12, "d"),
        };
        f.pad(&format!("{} {unit}", three_digits(scaled)))
    }
}

/// Returns three significant digits without a trailing `.0`, for values from 0 to 1023.
fn three_digits(value: f64) -> String {
    let text = match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Meaning of the units `k`, `KB`, `M`, `MB` and so on in a size. `KiB`, `MiB` and so on are always powers of
/// 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBase {
    /// `k`, `KB` and `KiB` are 1024, as in fio and DiskSpd: for sizes of requests, files and caches.
    Binary,
    /// `KB` is 1000, as on the label of a drive: for sizes of disks and rates of drives. `k` and `M` without
    /// `B` are refused because they are ambiguous. Fractions of a byte are dropped, since labels are rounded
    /// too.
    Decimal,
}

/// Error for text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not a size (examples: {})", examples(*.base))]
pub struct ParseBytesError {
    /// Text that could not be parsed.
    pub typed: String,
    /// Expected meaning of the units.
    pub base: SizeBase,
}

const fn examples(base: SizeBase) -> &'static str {
    match base {
        SizeBase::Binary => "4096, 8k, 64KiB, 1.5G; k, M, G and T are powers of 1024",
        SizeBase::Decimal => "4TB and 512GB, powers of 1000; 4TiB and 3.64TiB, powers of 1024",
    }
}

/// Sizes as people type them: `8k`, `64K`, `1M`, `5GiB`, `1.5g`, `512`. All units are powers of 1024; a bare
/// number is bytes. A fraction must yield whole bytes.
impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        Self::parse_in(typed, SizeBase::Binary)
    }
}

impl Bytes {
    /// Parses a size whose units have the meaning `base`.
    ///
    /// # Errors
    /// If `typed` is not a number with a unit, or needs more than 64 bits.
    pub fn parse_in(typed: &str, base: SizeBase) -> Result<Self, ParseBytesError> {
        let fail = || ParseBytesError { typed: typed.to_owned(), base };
        let text = typed.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let unit = unit.trim().to_ascii_lowercase();
        let power = |letter: char| "kmgtp".find(letter).map(|index| index as u32 + 1);
        let mut letters = unit.chars();
        let (power, ending) = match letters.next() {
            None => (0, "b"),
            Some('b') if unit.len() == 1 => (0, "b"),
            Some(letter) => (power(letter).ok_or_else(fail)?, letters.as_str()),
        };
        let factor = match (ending, base) {
            ("ib", _) | ("b" | "", SizeBase::Binary) => 1024_u64.pow(power),
            ("b", SizeBase::Decimal) => 1000_u64.pow(power),
            _ => return Err(fail()),
        };
        match base {
            SizeBase::Binary => times(number, factor),
            SizeBase::Decimal => scaled(number, factor).map(|(whole, _)| whole),
        }
        .map(Self)
        .ok_or_else(fail)
    }
}

/// Error for text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseNanosError {
    /// The text is not a number with a unit.
    #[error(
        "`{0}` is not a time: expected a number and a unit (ns, us, ms, s, m, h, d), or seconds, such as 500us, 1m30s, 10"
    )]
    NoTime(String),
    /// The time does not fit in 64 bits of nanoseconds.
    #[error("`{0}` is too long: expected at most 213503d (584 years)")]
    TooLong(String),
}

/// Times as people type them: `500us`, `1m30s`, `0.5`. A bare number is seconds. The sum must be whole
/// nanoseconds.
impl FromStr for Nanos {
    type Err = ParseNanosError;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        let fail = || ParseNanosError::NoTime(typed.to_owned());
        let too_long = || ParseNanosError::TooLong(typed.to_owned());
        // The micro sign, and the Greek letter that looks like it.
        let is_letter = |c: char| c.is_ascii_alphabetic() || matches!(c, 'µ' | 'μ');
        let mut rest = typed;
        let mut sum = 0_u64;
        loop {
            let (number, after) = rest.split_at(rest.find(is_letter).unwrap_or(rest.len()));
            let (unit, after) = after.split_at(after.find(|c| !is_letter(c)).unwrap_or(after.len()));
            let nanos: u64 = match unit {
                "ns" => 1,
                "us" | "µs" | "μs" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "m" | "min" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                "d" => 86_400_000_000_000,
                // Only a bare number has no unit.
                "" if number.len() == typed.len() => 1_000_000_000,
                _ => return Err(fail()),
            };
            let part = match scaled(number.trim(), nanos) {
                Some((part, true)) => part,
                None if is_large(number.trim()) => return Err(too_long()),
                _ => return Err(fail()),
            };
            sum = sum.checked_add(part).ok_or_else(too_long)?;
            if after.is_empty() {
                return Ok(Self(sum));
            }
            rest = after;
        }
    }
}

/// Converts a decimal number of `unit`s; `None` if the result is not a whole number.
fn times(number: &str, unit: u64) -> Option<u64> {
    scaled(number, unit).filter(|(_, is_whole)| *is_whole).map(|(whole, _)| whole)
}

/// Returns true if `number` is a whole number, so that a failure to scale it means that it is too large.
fn is_large(number: &str) -> bool {
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Converts a decimal number of `unit`s, without its fraction. The flag is true if there was no fraction.
fn scaled(number: &str, unit: u64) -> Option<(u64, bool)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 15 {
        return None;
    }
    let scale = 10_u128.pow(fraction.len() as u32);
    let value = whole.parse::<u64>().ok()?;
    let scaled =
        (u128::from(value) * scale + fraction.parse::<u128>().ok()?).checked_mul(u128::from(unit))?;
    Some((u64::try_from(scaled / scale).ok()?, scaled.is_multiple_of(scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_type_them() {
        for (typed, bytes) in [
            ("0", 0),
            ("512", 512),
            ("8k", 8192),
            ("64K", 65536),
            ("1.5KiB", 1536),
            ("5GiB", 5 << 30),
            ("2 tb", 2 << 40),
        ] {
            assert_eq!(typed.parse::<Bytes>().unwrap(), Bytes(bytes), "{typed}");
        }
        for typed in
            ["", "k", "-1", "1x", "1.k", ".5k", "1.0001", "99999999999999999999", "16777216T", "1e3", "8 k k"]
        {
            assert!(typed.parse::<Bytes>().is_err(), "{typed} was taken");
        }
    }

    #[test]
    fn sizes_of_drives_are_decimal_as_on_their_labels() {
        // The figures are those of the SI and of IEC 80000-13.
        for (typed, bytes) in [
            ("4TB", 4_000_000_000_000),
            ("550 MB", 550_000_000),
            ("1TiB", 1_099_511_627_776),
            ("1.5gib", 1_610_612_736),
            ("3.64TiB", 4_002_222_325_104),
            ("512", 512),
            ("512b", 512),
            ("0", 0),
        ] {
            assert_eq!(Bytes::parse_in(typed, SizeBase::Decimal), Ok(Bytes(bytes)), "{typed}");
        }
        for typed in ["", "TB", "4T", "4XB", "1..2TB", "-1TB", "1ib", "1bb", "99999999999999999999PB"] {
            assert!(Bytes::parse_in(typed, SizeBase::Decimal).is_err(), "{typed} was taken");
        }
        let both = Bytes::parse_in("4T", SizeBase::Decimal).unwrap_err().to_string();
        assert!(both.contains("4TB") && both.contains("4TiB"), "{both}");
        let binary = "4X".parse::<Bytes>().unwrap_err().to_string();
        assert!(binary.contains("powers of 1024") && !binary.contains("1000"), "{binary}");
    }

    #[test]
    fn times_read_as_people_type_them() {
        for (typed, nanos) in [
            ("10", Nanos::secs(10)),
            ("1m30s", Nanos::secs(90)),
            ("1.5us", Nanos(1500)),
            ("1.5µs", Nanos(1500)),
        ] {
            assert_eq!(typed.parse::<Nanos>().unwrap(), nanos, "{typed}");
        }
        for typed in ["", "s", "-1s", "1x", "1m30", "1.5ns", "1e3", "inf", "999999999d", "1..5s", "+5s"] {
            assert!(typed.parse::<Nanos>().is_err(), "{typed} was taken");
        }
    }

    #[test]
    fn quantities_print_with_their_unit() {
        assert_eq!(Bytes(8192).to_string(), "8 KiB");
        assert_eq!(Bytes(1_572_864_000).to_string(), "1.46 GiB");
        assert_eq!(Bytes(1023 * 1024 + 900).to_string(), "1 MiB");
        assert_eq!(Nanos(412).to_string(), "412 ns");
        assert_eq!(Nanos(1500).to_string(), "1.5 µs");
        assert_eq!(Nanos(8_330_000).to_string(), "8.33 ms");
        assert_eq!(Nanos(999_999).to_string(), "1 ms");
        assert_eq!(Nanos::secs(90).to_string(), "90 s");
        assert_eq!(format!("[{:>10}]", Bytes(8192)), "[     8 KiB]");
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(typed in ".{0,24}") {
            let (bytes, nanos) = (typed.parse::<Bytes>(), typed.parse::<Nanos>());
            proptest::prop_assert!(bytes.is_ok() || bytes.is_err() || nanos.is_ok());
        }
    }
}
