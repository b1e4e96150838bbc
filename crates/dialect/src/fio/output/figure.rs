//! Numbers in fio's format: a limited width, and a prefix.

/// Formats `value` with at most `width` digits and a prefix of powers of 1000 or 1024: `16.6k`, `3120Mi`,
/// `799k`.
pub(super) fn short(value: f64, width: usize, binary: bool) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let base = if binary { 1024.0 } else { 1000.0 };
    let mut scaled = value.max(0.0);
    let mut prefix = 0;
    while digits(scaled) > width && prefix + 1 < PREFIXES.len() {
        scaled /= base;
        prefix += 1;
    }
    let room = width.saturating_sub(digits(scaled) + 1);
    let room = if prefix == 0 { 0 } else { room };
    let prefix = match (PREFIXES[prefix], binary) {
        ("", _) => String::new(),
        ("k", true) => "Ki".to_owned(),
        (prefix, true) => format!("{prefix}i"),
        (prefix, false) => prefix.to_owned(),
    };
    format!("{scaled:.room$}{prefix}")
}

/// Formats bytes in powers of 1024 and of 1000, as in `65.0MiB/s (68.1MB/s)` without the `/s`.
pub(super) fn bytes(value: f64) -> (String, String) {
    // fio prints bandwidths from KiB upwards.
    let kib = short(value / 1024.0, 4, true);
    let kb = short(value / 1000.0, 4, false);
    (raised(&kib, true), raised(&kb, false))
}

/// Converts a figure in KiB or kB to one with its unit: `65.0Ki` of KiB is `65.0MiB`.
fn raised(figure: &str, binary: bool) -> String {
    let split = figure.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(figure.len());
    let (number, prefix) = figure.split_at(split);
    let prefix = match (prefix.chars().next(), binary) {
        (None, true) => "Ki",
        (None, false) => "k",
        (Some('K' | 'k'), true) => "Mi",
        (Some('K' | 'k'), false) => "M",
        (Some('M'), true) => "Gi",
        (Some('M'), false) => "G",
        (Some('G'), true) => "Ti",
        (Some('G'), false) => "T",
        (Some(_), true) => "Pi",
        (Some(_), false) => "P",
    };
    format!("{number}{prefix}B")
}

fn digits(value: f64) -> usize {
    let whole = value.floor() as u64;
    whole.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_short_as_those_of_fio() {
        // Expected texts as printed by fio 3.33.
        assert_eq!(short(799_391.0, 4, false), "799k");
        assert_eq!(short(16_600.0, 4, false), "16.6k");
        assert_eq!(short(512.0, 4, false), "512");
        assert_eq!(short(4_323_589.0, 6, false), "4323.6k");
        assert_eq!(bytes(68_127_000.0), ("65.0MiB".to_owned(), "68.1MB".to_owned()));
        assert_eq!(bytes(3_271_000_000.0), ("3119MiB".to_owned(), "3271MB".to_owned()));
    }
}
