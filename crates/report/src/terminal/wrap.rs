//! Text in lines of a width.

/// `text` in lines of at most `width` columns, broken at spaces; a longer word is broken where it must be.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word.to_owned();
        while columns(&word) > width {
            let room = if line.is_empty() { width } else { width.saturating_sub(columns(&line) + 1) };
            if room < 8 {
                lines.push(std::mem::take(&mut line));
                continue;
            }
            let head: String = word.chars().take(room).collect();
            word = word.chars().skip(room).collect();
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&head);
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() && columns(&line) + 1 + columns(&word) > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() && !word.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    if !line.is_empty() {
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

    #[test]
    fn further_lines_hang_below_the_first() {
        assert_eq!(hang("- ", "one two three", 10), "- one two\n  three\n");
    }
}
