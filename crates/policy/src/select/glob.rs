//! Case-insensitive patterns with `*` (any letters) and `?` (one letter).

/// Returns true if `text` matches `pattern`. The time is at most proportional to the product of their
/// lengths.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let text: Vec<char> = text.to_lowercase().chars().collect();
    // reached[n]: the pattern up to here matches the first n letters.
    let mut reached: Vec<bool> = vec![false; text.len() + 1];
    reached[0] = true;
    for symbol in pattern {
        let mut next = vec![false; text.len() + 1];
        if symbol == '*' {
            let mut any = false;
            for (slot, before) in next.iter_mut().zip(&reached) {
                any |= before;
                *slot = any;
            }
        } else {
            for (index, letter) in text.iter().enumerate() {
                next[index + 1] = reached[index] && (symbol == '?' || symbol == *letter);
            }
        }
        reached = next;
    }
    reached[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match_what_they_should() {
        for (pattern, text, expected) in [
            ("st*", "ST4000NM", true),
            ("*4000*", "ST4000NM", true),
            ("st????nm", "ST4000NM", true),
            ("st???nm", "ST4000NM", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*b*c", "a--b--b--c", true),
            ("a*b*c", "a--c--b", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
