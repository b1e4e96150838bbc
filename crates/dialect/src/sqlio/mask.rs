//! Processors as bits of a number: `0x5` is processors 0 and 2.

/// The processors of a mask in hexadecimal, with or without `0x`; none for 0.
///
/// # Errors
/// If it is none of 64 bits.
pub(super) fn parse(text: &str) -> Result<Vec<u32>, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mask = u64::from_str_radix(digits, 16).ok().filter(|_| plain);
    let mask = mask.ok_or_else(|| format!("'{text}' is no mask: expected hexadecimal of at most 64 bits"))?;
    Ok((0..64).filter(|bit| mask >> bit & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn bits_are_processors() {
        assert_eq!(super::parse("0x5").unwrap(), [0, 2]);
        assert_eq!(super::parse("F").unwrap(), [0, 1, 2, 3]);
        assert!(super::parse("0x0").unwrap().is_empty());
        for text in ["", "0x", "xyz", "+1", "0x10000000000000000"] {
            assert!(super::parse(text).is_err(), "{text}");
        }
    }
}
