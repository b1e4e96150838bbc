//! Values of fio's options: sizes, times, booleans, and lists with a value for each direction.

use plumb_block::Nanos;

use super::expression;

/// Meaning of the units k, m, g (`kb_base`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum KbBase {
    /// `4k` is 4096 and `4kib` is 4000, fio's default.
    #[default]
    Compatible,
    /// `4k` is 4000 and `4kib` is 4096: `kb_base=1000`.
    Standard,
}

/// A size, or a percentage of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    /// Bytes.
    Bytes(u64),
    /// Percent.
    Percent(f64),
}

/// Parses bytes: a whole number, decimal or `0x`, with an optional unit.
///
/// # Errors
/// The expected form. fio itself parses as much as it understands and ignores the rest.
pub(super) fn bytes(text: &str, base: KbBase) -> Result<u64, String> {
    if expression::is_meant(text) {
        return expression::evaluate(text, &|atom| bytes(atom, base));
    }
    let (number, unit) = number_and_unit(text)?;
    let unit = unit.to_ascii_lowercase();
    let prefix = unit.strip_suffix('b').unwrap_or(&unit);
    let iec = unit.ends_with("ib");
    let power = match prefix.strip_suffix('i').unwrap_or(prefix) {
        "" if prefix.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ if unit.contains(['*', '/', '+', '^']) => {
            return Err(format!("`{text}` is not a size: put arithmetic in parentheses: ({text})"));
        }
        _ => return Err(format!("`{text}` is not a size: expected a whole number and k, m, g, t or p")),
    };
    let factor: u64 = if (base == KbBase::Compatible) == iec { 1000 } else { 1024 };
    number.checked_mul(factor.pow(power)).ok_or_else(|| format!("`{text}` is more than 16 EiB"))
}

/// Parses bytes or a percentage.
///
/// # Errors
/// The expected form.
pub(super) fn size(text: &str, base: KbBase) -> Result<Size, String> {
    let Some(percent) = text.strip_suffix('%') else { return bytes(text, base).map(Size::Bytes) };
    match decimal(percent) {
        Ok(percent) if percent <= 100.0 => Ok(Size::Percent(percent)),
        _ => Err(format!("`{text}` is not a share: expected 0% to 100%")),
    }
}

/// Parses a time, in `unit` unless it has a unit.
///
/// # Errors
/// The expected form. fio itself parses `7sec` as 7 us and `1.5s` as 1 s.
pub(super) fn time(text: &str, unit: Nanos) -> Result<Nanos, String> {
    if expression::is_meant(text) {
        let number = expression::evaluate(text, &plain)?;
        return number.checked_mul(unit.0).map(Nanos).ok_or_else(|| longer(text));
    }
    let (number, typed) = number_and_unit(text)?;
    let unit = match typed.to_ascii_lowercase().as_str() {
        "" => unit.0,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => {
            return Err(format!("`{text}` is not a time: expected a whole number and us, ms, s, m, h or d"));
        }
    };
    number.checked_mul(unit).map(Nanos).ok_or_else(|| longer(text))
}

fn longer(text: &str) -> String {
    format!("`{text}` is longer than 584 years")
}

/// Parses a number within the expression of a time, which has the unit of the option.
fn plain(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number; arithmetic of times takes no units"))
}

/// Parses a whole number. As with fio, k, m and g multiply it like bytes.
///
/// # Errors
/// The expected form.
pub(super) fn whole(text: &str, base: KbBase) -> Result<u64, String> {
    bytes(text, base).map_err(|problem| match expression::is_meant(text) {
        true => problem,
        false => format!("`{text}` is not a whole number"),
    })
}

/// Parses a non-negative decimal number.
///
/// # Errors
/// The expected form.
pub(super) fn decimal(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("`{text}` is not a number from 0"))
}

/// Parses 0 or 1.
///
/// # Errors
/// The expected form.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text.trim() {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("`{text}` is neither 0 nor 1")),
    }
}

/// A value for each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Three<T> {
    /// Value for reads.
    pub(super) read: Option<T>,
    /// Value for writes.
    pub(super) write: Option<T>,
    /// Value for trims.
    pub(super) trim: Option<T>,
}

impl<T> Default for Three<T> {
    /// Returns three missing values.
    fn default() -> Self {
        Self { read: None, write: None, trim: None }
    }
}

impl<T: Copy> Three<T> {
    /// Returns `value` for all directions.
    pub(super) fn all(value: T) -> Self {
        Self { read: Some(value), write: Some(value), trim: Some(value) }
    }
}

/// Parses `all`, `read,write-and-trim` or `read,write,trim`; empty values are missing.
///
/// # Errors
/// The errors of `parse`; fails for more than three values.
pub(super) fn three<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Three<T>, String> {
    let parts = text.split(',').map(|part| match part.trim() {
        "" => Ok(None),
        part => parse(part).map(Some),
    });
    match parts.collect::<Result<Vec<_>, _>>()?.as_slice() {
        [None] => Err("it has no value".into()),
        [all] => Ok(Three { read: all.clone(), write: all.clone(), trim: all.clone() }),
        [read, rest] => Ok(Three { read: read.clone(), write: rest.clone(), trim: rest.clone() }),
        [read, write, trim] => Ok(Three { read: read.clone(), write: write.clone(), trim: trim.clone() }),
        _ => Err(format!("`{text}` has more than three values: read, write, trim")),
    }
}

fn number_and_unit(text: &str) -> Result<(u64, &str), String> {
    let text = text.trim();
    let wrong = || format!("`{text}` does not begin with a whole number");
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).map(|number| (number, "")).map_err(|_| wrong());
    }
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    Ok((number.parse().map_err(|_| wrong())?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_mean_what_they_mean_to_fio() {
        // Expected sizes as printed by fio 3.33 with --debug=parse.
        for (text, compatible, standard) in [
            ("4k", 4096, 4000),
            ("4ki", 4096, 4000),
            ("4kb", 4096, 4000),
            ("4kib", 4000, 4096),
            ("4KiB", 4000, 4096),
            ("4b", 4, 4),
            ("0x10", 16, 16),
            ("2t", 2 << 40, 2_000_000_000_000),
        ] {
            assert_eq!(bytes(text, KbBase::Compatible), Ok(compatible), "{text}");
            assert_eq!(bytes(text, KbBase::Standard), Ok(standard), "{text}");
        }
        for text in ["1.5k", "k", "-1", "4kk", "1e3", "", "4i", "99999999999999999999", "16777216t"] {
            assert!(bytes(text, KbBase::Compatible).is_err(), "{text}");
        }
        assert_eq!(bytes("(4*1k)", KbBase::Standard), Ok(4000));
        assert!(bytes("4*1024", KbBase::Compatible).unwrap_err().contains("(4*1024)"));
        assert_eq!(size("50%", KbBase::Compatible), Ok(Size::Percent(50.0)));
        assert!(size("101%", KbBase::Compatible).is_err());
    }

    #[test]
    fn times_have_the_unit_of_their_option() {
        for (text, expected) in [
            ("10", Nanos::secs(10)),
            ("5m", Nanos::secs(300)),
            ("500us", Nanos::micros(500)),
            ("3msec", Nanos::millis(3)),
            ("1d", Nanos::secs(86_400)),
        ] {
            assert_eq!(time(text, Nanos::secs(1)), Ok(expected), "{text}");
        }
        assert_eq!(time("10", Nanos::micros(1)), Ok(Nanos::micros(10)));
        assert_eq!(time("(2*60)", Nanos::secs(1)), Ok(Nanos::secs(120)));
        assert!(time("(2m)", Nanos::secs(1)).unwrap_err().contains("no units"));
        for text in ["7min", "7sec", "1.5s", "", "10x", "99999999999d"] {
            assert!(time(text, Nanos::secs(1)).is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_direction_is_not_given() {
        let three = |text| {
            three(text, |part| whole(part, KbBase::Compatible))
                .map(|three| [three.read, three.write, three.trim])
        };
        assert_eq!(three("1"), Ok([Some(1), Some(1), Some(1)]));
        assert_eq!(three("1,2"), Ok([Some(1), Some(2), Some(2)]));
        assert_eq!(three("1,2,3"), Ok([Some(1), Some(2), Some(3)]));
        assert_eq!(three(",2"), Ok([None, Some(2), Some(2)]));
        assert_eq!(three("1,"), Ok([Some(1), None, None]));
        assert!(three("1,2,3,4").is_err() && three("").is_err() && three("a").is_err());
    }
}
