//! Wrapping of text. Widths are columns of a terminal: two for a wide character, none for a combining one.

use textwrap::{Options, WordSplitter};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Placeholder for a space at which no line may end.
const KEPT_SPACE: char = '\u{a0}';

/// Breaks `text` at spaces into lines of at most `width` columns; a word that is longer is broken. A command
/// in backquotes that fits into a line is kept together, so that it can be copied. Returns no lines for a
/// text without words.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return Vec::new();
    }
    let width = width.max(8);
    let keep = |(at, part): (usize, &str)| match at % 2 {
        1 if columns(part) + 3 <= width => part.replace(' ', &KEPT_SPACE.to_string()),
        _ => part.to_owned(),
    };
    let words = words.split('`').enumerate().map(keep).collect::<Vec<_>>().join("`");
    let options = Options::new(width).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(&words, options).into_iter().map(|line| line.replace(KEPT_SPACE, " ")).collect()
}

/// Returns `text` wrapped, with `first` before the first line and an equal indentation of the others.
pub(crate) fn hang(first: &str, text: &str, width: usize) -> String {
    let indent = columns(first);
    let mut out = String::new();
    for (index, line) in wrap(text, width.saturating_sub(indent)).iter().enumerate() {
        let lead = if index == 0 { first.to_owned() } else { " ".repeat(indent) };
        out.push_str(&format!("{lead}{line}\n"));
    }
    out
}

/// Returns the width of `text` in columns.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Returns the longest start of `text` that fits into `most` columns.
pub(super) fn start(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let beyond = text.char_indices().find(|(_, letter)| {
        taken += letter.width().unwrap_or(0);
        taken > most
    });
    &text[..beyond.map_or(text.len(), |(at, _)| at)]
}

/// Returns the longest end of `text` that fits into `most` columns, without combining marks of a removed
/// character.
pub(super) fn end(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let fits = text.char_indices().rev().take_while(|(_, letter)| {
        taken += letter.width().unwrap_or(0);
        taken <= most
    });
    let at = fits.last().map_or(text.len(), |(at, _)| at);
    text[at..].trim_start_matches(|letter: char| letter.width() == Some(0))
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
    fn a_command_stands_in_one_line_where_it_fits() {
        let text = "fsync is not durable: `mount -o remount,barrier '/srv/my disk'`, then look again.";
        let command = "`mount -o remount,barrier '/srv/my disk'`,";
        for width in 43..100 {
            assert!(wrap(text, width).iter().any(|line| line.contains(command)), "{width}");
        }
        assert!(wrap(text, 20).iter().all(|line| columns(line) <= 20));
    }

    /// A quadratic algorithm would take hours for these millions of characters.
    #[test]
    fn a_word_of_megabytes_is_set_line_by_line() {
        let text = format!("a {} b", "\u{fc}".repeat(4_000_000));
        let lines = wrap(&text, 80);
        assert!(lines.iter().all(|line| columns(line) <= 80));
        assert_eq!((lines.len(), lines.concat()), (50_002, text.replace(' ', "")));
    }

    /// Widths are those of UAX #11 (East Asian Width): 2 for wide characters, 0 for combining marks.
    #[test]
    fn wide_and_combining_characters_take_the_columns_of_a_terminal() {
        assert_eq!([columns("disk"), columns("日本語"), columns("e\u{301}te\u{301}")], [4, 6, 3]);
        assert_eq!(wrap("日本語日本語 abc", 8), ["日本語日", "本語 abc"]);
        assert_eq!(wrap("e\u{301}e\u{301}e\u{301}e\u{301} e\u{301}e\u{301}e\u{301}", 8).len(), 1);
        assert_eq!(
            [start("日本語", 3), start("日本語", 4), end("日本語", 3), end("日本語", 6)],
            ["日", "日本", "語", "日本語"]
        );
        assert_eq!(end("ae\u{301}b", 1), "b");
        assert_eq!(start("ae\u{301}b", 2), "ae\u{301}");
    }

    #[test]
    fn further_lines_hang_below_the_first() {
        assert_eq!(hang("- ", "one two three", 10), "- one two\n  three\n");
    }
}
