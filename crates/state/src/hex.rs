//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Text that is not an even number of hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an even number of hexadecimal digits, found `{digits}`")]
pub struct HexError {
    digits: String,
}

/// Returns two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        // Writing to a String cannot fail.
        write!(digits, "{byte:02x}").ok();
        digits
    })
}

/// Decodes the output of [`encode`]; accepts upper-case digits, too.
///
/// # Errors
/// Fails with the first 40 characters in [`HexError`] if the text is not an even number of digits.
pub fn decode(digits: &str) -> Result<Vec<u8>, HexError> {
    let fail = || HexError { digits: digits.chars().take(40).collect() };
    if !digits.len().is_multiple_of(2) {
        return Err(fail());
    }
    let pair = |pair: &[u8]| {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        u8::try_from(high << 4 | low).ok()
    };
    digits.as_bytes().chunks_exact(2).map(|two| pair(two).ok_or_else(fail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn digits_are_reversible(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            proptest::prop_assert_eq!(decode(&encode(&bytes)), Ok(bytes));
        }

        #[test]
        fn any_text_is_taken_without_panic(text in ".{0,16}") {
            let parsed = decode(&text);
            proptest::prop_assert!(parsed.is_ok() || parsed.is_err());
        }
    }
}
