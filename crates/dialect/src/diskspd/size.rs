//! Numbers and sizes in DiskSpd's notation, parsed strictly: a misread size would measure something else.
//!
//! A size consists of digits and at most one letter: K, M, G or T (powers of 1024) or b (blocks), in either
//! case.

/// Parses a whole number.
///
/// # Errors
/// The problem, with the text.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let (value, rest) = digits(text)?;
    if rest.is_empty() { Ok(value) } else { Err(format!("'{text}' is not a whole number")) }
}

/// Parses a whole number from `least` to `most`.
///
/// # Errors
/// The problem, with the text and the bounds.
pub(crate) fn number_within(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let bounds = || format!("'{text}': expected a whole number from {least} to {most}");
    let value = number(text).map_err(|_| bounds())?;
    u32::try_from(value).ok().filter(|value| (least..=most).contains(value)).ok_or_else(bounds)
}

/// Parses a size; `block` is the value of the unit `b`.
///
/// # Errors
/// The problem, with the text.
pub(super) fn size(text: &str, block: u64) -> Result<u64, String> {
    let (value, rest) = size_before(text, block)?;
    if rest.is_empty() { Ok(value) } else { Err(unreadable(text)) }
}

/// Parses a size at the start of `text`. Returns it with the rest of the text.
///
/// # Errors
/// The problem, with the text.
pub(super) fn size_before(text: &str, block: u64) -> Result<(u64, &str), String> {
    let (value, rest) = digits(text).map_err(|problem| match text {
        "" => "no size given".to_owned(),
        _ if problem.contains("too large") => problem,
        _ => unreadable(text),
    })?;
    let unit = match rest.bytes().next().map(|letter| letter.to_ascii_uppercase()) {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        Some(b'T') => 1 << 40,
        Some(b'B') => block,
        _ => return Ok((value, rest)),
    };
    let value = value.checked_mul(unit).ok_or_else(|| format!("'{text}' is too large: 16 EiB or more"))?;
    Ok((value, &rest[1..]))
}

/// Parses the digits at the start of `text`. Returns the number with the rest of the text.
fn digits(text: &str) -> Result<(u64, &str), String> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    if number.is_empty() {
        return Err(match text {
            "" => "no number given".to_owned(),
            _ => format!("'{text}' is not a whole number"),
        });
    }
    let value = number.parse().map_err(|_| format!("'{text}' is too large"))?;
    Ok((value, rest))
}

fn unreadable(text: &str) -> String {
    format!("'{text}' is not a size: expected digits, and then K, M, G or T (1024) or b (blocks), or nothing")
}

/// Formats a size in the largest unit in which it is at least 1, as DiskSpd does: `4KiB`, `1.50GiB`, `100`.
pub(super) fn shown(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let size = 1_u64 << shift;
        if bytes >= size {
            return match bytes % size {
                0 => format!("{}{unit}", bytes >> shift),
                _ => format!("{:.2}{unit}", bytes as f64 / size as f64),
            };
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_taken_strictly() {
        for (text, expected) in [
            ("0", 0),
            ("512", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("3m", 3 << 20),
            ("2G", 2 << 30),
            ("1T", 1 << 40),
            ("2b", 128),
            ("2B", 128),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text, 64), Ok(expected), "{text}");
        }
        for text in [
            "",
            "k",
            "10KB",
            "10 K",
            "10KK",
            "-1",
            "+1",
            "1.5G",
            "0x10",
            "4P",
            "18446744073709551616",
            "16777216T",
        ] {
            let problem = size(text, 64).unwrap_err();
            assert!(text.is_empty() || problem.contains(text), "{text}: {problem}");
        }
        assert_eq!(size_before("4k:rest", 64), Ok((4096, ":rest")));
    }

    #[test]
    fn sizes_are_shown_as_diskspd_does() {
        for (bytes, text) in [(100, "100"), (4096, "4KiB"), (1536, "1.50KiB"), (3 << 40, "3TiB"), (0, "0")] {
            assert_eq!(shown(bytes), text);
        }
    }
}
