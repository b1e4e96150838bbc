//! Text in lines of a width.

/// `text` in lines of at most `width` columns, broken at spaces; a longer word is broken where it must be. Each character is looked at
/// a few times, however long a word is: what is set here may come from elsewhere.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    // How many columns the line takes.
    let mut taken = 0;
    for mut word in text.split_whitespace() {
        let mut left = columns(word);
        while left > width {
            let room = if taken == 0 { width } else { width.saturating_sub(taken + 1) };
            if room < 8 {
                lines.push(std::mem::take(&mut line));
                taken = 0;
                continue;
            }
            let end = word.char_indices().nth(room).map_or(word.len(), |(end, _)| end);
            let (head, rest) = word.split_at(end);
            (word, left) = (rest, left - room);
            if taken > 0 {
                line.push(' ');
            }
            line.push_str(head);
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        if taken > 0 && taken + 1 + left > width {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        line.push_str(word);
        taken += left;
    }
    if taken > 0 {
        lines.push(line);
    }
    lines
}

/// `text` wrapped: the first line after `first`, the others after as many spaces.
pub fn hang(first: &str, text: &str, width: usize) -> String {
    let indent = columns(first);
    let mut out = String::new();
    for (index, line) in wrap(text, width.saturating_sub(indent)).iter().enumerate() {
        let lead = if index == 0 { first.to_owned() } else { " ".repeat(indent) };
        out.push_str(&format!("{lead}{line}\n"));
    }
    out
}

/// How many columns `text` takes, taking every character for one.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_too_long_and_nothing_is_lost() {
        let text = "An fsync here reaches /srv/a-directory-with-a-very-long-name-indeed, which is a disk.";
        for width in 8..100 {
            let lines = wrap(text, width);
            assert!(lines.iter().all(|line| columns(line) <= width), "{width}: {lines:?}");
            let letters = |text: &str| text.replace(char::is_whitespace, "");
            assert_eq!(letters(&lines.concat()), letters(text), "{width}");
        }
    }

    /// Of a quadratic one these millions of characters would take hours.
    #[test]
    fn a_word_of_megabytes_is_set_line_by_line() {
        let text = format!("a {} b", "\u{fc}".repeat(4_000_000));
        let lines = wrap(&text, 80);
        assert!(lines.iter().all(|line| columns(line) <= 80));
        assert_eq!((lines.len(), lines.concat() == text), (50_001, true));
    }

    #[test]
    fn further_lines_hang_below_the_first() {
        assert_eq!(hang("- ", "one two three", 10), "- one two\n  three\n");
    }
}
