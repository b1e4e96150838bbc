//! Quantities in a model: sizes, times and rates, with their units.
//!
//! A bare number is refused if its unit would be ambiguous; a whole number is accepted as bytes only for a
//! size.

use std::fmt;
use std::str::FromStr;

use plumb_block::{Bytes, Nanos, SizeBase};
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A size: `"16 KiB"`, or a whole number of bytes. Units are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Size(pub Bytes);

/// A time with its unit, to the nanosecond: `"60us"`, `"8.33 ms"`, `"250ns"`, `"2 s"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(pub Nanos);

/// A rate in bytes per second: `"550 MB/s"` (powers of 1000), `"512 MiB/s"` (powers of 1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// Returns the duration of `length` at this rate, rounded up to the nanosecond. The rate must not be
    /// zero, and `length` must be below 16 GiB.
    pub(crate) const fn time_for(self, length: Bytes) -> Nanos {
        Nanos((length.0 * 1_000_000_000).div_ceil(self.0))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        typed.parse().map(Self).map_err(|_| "expected a size such as \"16 KiB\"".to_owned())
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        scaled(typed)
            .map(|ns| Self(Nanos(ns)))
            .ok_or_else(|| "expected a time such as \"60us\" or \"8.33 ms\"".to_owned())
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let bytes = typed.trim().strip_suffix("B/s").map(|number| format!("{number}B"));
        let rate = bytes.and_then(|bytes| Bytes::parse_in(&bytes, SizeBase::Decimal).ok());
        rate.map(|rate| Self(rate.0)).ok_or_else(|| {
            "expected a rate such as \"550 MB/s\" (powers of 1000) or \"512 MiB/s\" (powers of 1024)"
                .to_owned()
        })
    }
}

/// Parses a number with a unit of time to rounded nanoseconds; `None` if it is not finite, negative or beyond
/// 2^53.
fn scaled(typed: &str) -> Option<u64> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let text = typed.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    let value = number.parse::<f64>().ok()? * factor + 0.5;
    (value < 9_007_199_254_740_992.0).then_some(value as u64)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} MB/s", self.0 as f64 / 1e6))
    }
}

/// Deserializer for a string that `T` parses, and for sizes also a whole number.
struct Written<T> {
    expected: &'static str,
    whole: Option<fn(u64) -> T>,
}

impl<T: FromStr<Err = String>> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, typed: &str) -> Result<T, E> {
        typed.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match (self.whole, u64::try_from(number)) {
            (Some(whole), Ok(number)) => Ok(whole(number)),
            _ => Err(E::invalid_type(de::Unexpected::Signed(number), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a size such as \"16 KiB\", or a number of bytes";
        deserializer.deserialize_any(Written { expected, whole: Some(|bytes| Self(Bytes(bytes))) })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written { expected: "a time such as \"60us\"", whole: None })
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written { expected: "a rate such as \"550 MB/s\"", whole: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_with_their_units_only() {
        assert_eq!("60us".parse(), Ok(Time(Nanos::micros(60))));
        assert_eq!("8.33 ms".parse(), Ok(Time(Nanos(8_330_000))));
        assert_eq!("550 MB/s".parse(), Ok(Rate(550_000_000)));
        assert_eq!("1.5 GiB/s".parse(), Ok(Rate(1_610_612_736)));
        for typed in ["550", "550 M/s", "550MB", "-1 MB/s", "fast"] {
            assert!(typed.parse::<Rate>().is_err(), "{typed} was taken");
        }
        for typed in ["60", "-1us", "1e9s", "us", "99999999999999s", "1.2.3ms", "5 m"] {
            assert!(typed.parse::<Time>().is_err(), "{typed} was taken");
        }
        assert_eq!(Rate(550_000_000).time_for(Bytes(550)), Nanos::micros(1));
    }
}
