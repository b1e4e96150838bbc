//! Numbers for people: each with its unit, and with as many digits as are significant.
//!
//! Values that are not finite are shown as a dash. Nothing here panics.

use plumb_block::Bytes;

/// Placeholder for an unknown figure.
pub const NONE: &str = "–";

/// Returns three significant digits without trailing zeroes after the point: `52.4`, `8.33`, `412`.
pub fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let text = match value.abs() {
        v if v < 9.995 => decimals(value, 2),
        v if v < 99.95 => decimals(value, 1),
        _ => return thousands(value),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a number with `digits` digits after the point. A zero has no sign, even if it was rounded from
/// below.
pub fn decimals(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|digit| matches!(digit, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// Returns a ratio: three digits after the point around 1, otherwise three significant digits.
pub fn ratio(value: f64) -> String {
    match value {
        near if (0.5..2.0).contains(&near) => format!("{near:.3}"),
        small if small > 0.0 && small < 0.5 => {
            let behind = (2.0 - small.log10().floor()).clamp(3.0, 12.0) as usize;
            format!("{small:.behind$}")
        }
        other => three_digits(other),
    }
}

/// Returns a whole number with grouped thousands: `215,000`.
pub fn thousands(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 && digits != "0" {
        grouped.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a count: `52,410`.
pub fn count(value: u64) -> String {
    thousands(value as f64)
}

/// Returns names as a list with `word` before the last: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(names: &[impl AsRef<str>], word: &str) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} {word} {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// Returns a count with its noun: `1 flush`, `2 flushes`.
pub fn counted(count: u64, what: &str) -> String {
    match what {
        _ if count == 1 => format!("1 {what}"),
        _ if what.ends_with("sh") => format!("{} {what}es", self::count(count)),
        _ => format!("{} {what}s", self::count(count)),
    }
}

/// Returns a rate: a whole number with grouped thousands from 100 on, three significant digits below. `0`
/// means exactly zero.
pub fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        v if v > 0.0 && v < 0.005 => "< 0.01".to_owned(),
        v => three_digits(v),
    }
}

/// Returns the number and the unit of a duration, in the most suitable unit: `("52.4", "µs")`.
pub fn duration_parts(seconds: f64) -> (String, &'static str) {
    let (scaled, unit) = match seconds.abs() {
        s if s < 999.5e-9 => (seconds * 1e9, "ns"),
        s if s < 999.5e-6 => (seconds * 1e6, "µs"),
        s if s < 999.5e-3 => (seconds * 1e3, "ms"),
        s if s < 7200.0 => (seconds, "s"),
        s if s < 172_800.0 => (seconds / 3600.0, "h"),
        _ => (seconds / 86_400.0, "d"),
    };
    (three_digits(scaled), unit)
}

/// Returns a duration in the most suitable unit: `52.4 µs`; a dash if unknown.
pub fn duration(seconds: impl Into<Option<f64>>) -> String {
    or_dash(seconds.into(), |seconds| {
        let (value, unit) = duration_parts(seconds);
        format!("{value} {unit}")
    })
}

/// Returns the mean time of a flush. The kernel counts whole milliseconds, so 0 means less than one.
pub(crate) fn flush_time(mean: f64) -> String {
    if mean > 0.0 { duration(mean) } else { "less than 1 ms".to_owned() }
}

/// Returns a size in powers of 1024: `8 KiB`; fractions of a byte are rounded.
pub fn bytes(value: f64) -> String {
    if value.is_finite() && value >= 0.0 { Bytes(value.round() as u64).to_string() } else { NONE.to_owned() }
}

/// Returns a rate in MiB/s without its unit: `1,294`.
pub fn mebibytes(bytes_per_second: f64) -> String {
    rate(bytes_per_second / Bytes::MIB as f64)
}

/// Returns the number and the unit of a throughput, in the unit that fits many hosts: `("17.1", "GiB/s")`.
pub fn throughput_parts(bytes_per_second: f64) -> (String, &'static str) {
    let mebibytes = bytes_per_second / Bytes::MIB as f64;
    if mebibytes < 1023.5 { (rate(mebibytes), "MiB/s") } else { (rate(mebibytes / 1024.0), "GiB/s") }
}

/// Returns the throughput with its unit as one text: `17.1 GiB/s`.
pub fn throughput(bytes_per_second: f64) -> String {
    let (value, unit) = throughput_parts(bytes_per_second);
    format!("{value} {unit}")
}

/// Returns a share between 0 and 1: `4%`, `0.3%`, `< 0.1%`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => NONE.to_owned(),
        p if p > 0.0 && p < 0.1 => "< 0.1%".to_owned(),
        p if p.abs() < 9.95 => format!("{}%", decimals(p, 1).trim_end_matches(".0")),
        p => format!("{}%", thousands(p)),
    }
}

/// Returns the figure, or a dash.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), show)
}

/// Unit of a column of durations, the same for all rows so that their digits align.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationUnit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
}

impl DurationUnit {
    /// Chooses microseconds if a typical value is below one millisecond.
    pub fn for_typical(medians: impl IntoIterator<Item = f64>) -> Self {
        if medians.into_iter().any(|median| median < 1e-3) { Self::Micros } else { Self::Millis }
    }

    /// Returns `µs` or `ms`.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Micros => "µs",
            Self::Millis => "ms",
        }
    }

    /// Returns the name of the unit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Micros => "microseconds",
            Self::Millis => "milliseconds",
        }
    }

    /// Returns `seconds` in this unit with a fixed number of decimals, so that points align; a dash for an
    /// unknown time.
    pub fn show(self, seconds: impl Into<Option<f64>>) -> String {
        let Some(seconds) = seconds.into() else { return NONE.to_owned() };
        let (scaled, decimals) = match self {
            Self::Micros => (seconds * 1e6, 1),
            Self::Millis => (seconds * 1e3, 3),
        };
        if !scaled.is_finite() {
            return NONE.to_owned();
        }
        let text = self::decimals(scaled, decimals);
        match text.split_once('.') {
            Some((whole, fraction)) => {
                format!("{}.{fraction}", thousands(whole.parse().unwrap_or(f64::NAN)))
            }
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_carry_units_and_the_digits_that_count() {
        assert_eq!(duration(52.4e-6), "52.4 µs");
        assert_eq!(duration(0.9996e-3), "1 ms");
        assert_eq!(duration(3e-9), "3 ns");
        assert_eq!(duration(0.0), "0 ns");
        assert_eq!((flush_time(0.0), flush_time(2e-3)), ("less than 1 ms".to_owned(), "2 ms".to_owned()));
        assert_eq!(duration(90.0), "90 s");
        assert_eq!(rate(215_000.4), "215,000");
        assert_eq!(rate(0.001), "< 0.01");
        assert_eq!(rate(0.0), "0");
        assert_eq!(percent(0.5), "50%");
        assert_eq!(percent(0.043), "4.3%");
        assert_eq!(percent(0.0001), "< 0.1%");
        assert_eq!(mebibytes(10.0 * 1024.0 * 1024.0), "10");
        assert_eq!(throughput(1023.0 * 1024.0 * 1024.0), "1,023 MiB/s");
        assert_eq!(throughput(1.5 * 1024.0 * 1024.0 * 1024.0), "1.5 GiB/s");
        assert_eq!(thousands(-1234.0), "-1,234");
        assert_eq!((percent(-0.0004), percent(-0.0)), ("0%".to_owned(), "0%".to_owned()));
        assert_eq!((duration(-0.0), three_digits(-0.001)), ("0 ns".to_owned(), "0".to_owned()));
        assert_eq!((percent(-0.01), duration(-2e-3)), ("-1%".to_owned(), "-2 ms".to_owned()));
    }

    #[test]
    fn what_is_not_finite_is_a_dash() {
        for value in [f64::NAN, f64::INFINITY] {
            assert_eq!(rate(value), NONE);
            assert_eq!(percent(value), NONE);
            assert_eq!(bytes(value), NONE);
            assert_eq!(DurationUnit::Micros.show(value), NONE);
        }
    }

    #[test]
    fn a_column_has_one_unit() {
        assert_eq!(DurationUnit::for_typical([8e-3, 0.4e-3]), DurationUnit::Micros);
        assert_eq!(DurationUnit::for_typical([8e-3]), DurationUnit::Millis);
        assert_eq!(DurationUnit::Micros.show(0.010_06), "10,060.0");
        assert_eq!(DurationUnit::Millis.show(0.021_139), "21.139");
    }
}
