//! Rule for names of served devices.

/// Maximum length of a name in bytes: socket paths are short (unix(7): 108 bytes).
pub(crate) const NAME_MAX: usize = 40;

/// Returns true if the name is valid: letters, digits, `-`, `_` and `.`, not starting with a dot or a hyphen,
/// since a name is typed where an option is possible.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.len() <= NAME_MAX && !name.starts_with(['.', '-']) && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for good in ["liar", "consumer-ssd", "A_1.b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".hidden", "-x", "--name", "a/b", "a b", "ü", &"x".repeat(41)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
