//! Sizes of disks as people type them.
//!
//! TB and its like are powers of 1000, as on the label of a drive; TiB and its like are powers of 1024. `4T` is refused,
//! for it is read both ways. `size = 4TB` means a disk that is sold as such: within one per cent.

/// What a text means in bytes, or why it means nothing.
pub(super) fn parse(typed: &str) -> Result<u64, String> {
    let split = typed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(typed.len());
    let (number, unit) = typed.split_at(split);
    let wrong =
        || format!("`{typed}` is no size: expected a number with a unit, such as 4TB, 3.64TiB or 512GB");
    let factor = factor(unit).ok_or_else(|| match unit.to_ascii_lowercase().as_str() {
        letter @ ("k" | "m" | "g" | "t" | "p") => {
            let capital = letter.to_uppercase();
            format!("`{typed}` can be read both ways: say {number}{capital}B (powers of 1000) or {number}{capital}iB (powers of 1024)")
        }
        _ => wrong(),
    })?;
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = value * factor;
    // Above 2^53 the product is rounded; a comparison of disks does not see it.
    if bytes.is_finite() && bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(wrong()) }
}

fn factor(unit: &str) -> Option<f64> {
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => return Some(1.0),
        "kb" | "kib" => 1,
        "mb" | "mib" => 2,
        "gb" | "gib" => 3,
        "tb" | "tib" => 4,
        "pb" | "pib" => 5,
        _ => return None,
    };
    let base = if unit.to_ascii_lowercase().contains('i') { 1024.0_f64 } else { 1000.0_f64 };
    Some(base.powi(power))
}

/// Whether a disk of `size` bytes is what people call a disk of `named` bytes.
pub(super) fn called(size: u64, named: u64) -> bool {
    size.abs_diff(named) <= named / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_mean_what_the_label_says() {
        for (typed, bytes) in
            [("4TB", 4_000_000_000_000), ("1TiB", 1 << 40), ("1.5gib", 3 << 29), ("512", 512), ("0", 0)]
        {
            assert_eq!(parse(typed), Ok(bytes), "{typed}");
        }
        for typed in ["", "TB", "4XB", "1..2TB", "-1TB", "99999999999999999999PB"] {
            assert!(parse(typed).is_err(), "{typed} was taken");
        }
        let both = parse("4T").unwrap_err();
        assert!(both.contains("4TB") && both.contains("4TiB"), "{both}");
        assert!(called(4_000_787_030_016, 4_000_000_000_000), "sold as 4 TB");
        assert!(!called(3_840_755_982_336, 4_000_000_000_000), "sold as 3.84 TB");
    }
}
