//! Text from outside (paths, labels, serial numbers) made printable: nothing in it can move the cursor,
//! change a colour or reverse the reading direction.

use std::borrow::Cow;

use plumb_text::{is_bidi_control, shell_word};

/// Makes text of any number of lines safe for a terminal. Control characters other than line ends and tabs
/// are replaced by escapes (`\u001b`), which mean the same character in a JSON string. With `has_colours`,
/// sequences that set colours are kept.
pub fn printable_text(text: &str, has_colours: bool) -> Cow<'_, str> {
    let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_bidi_control(c);
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kept = match c {
            '\u{1b}' if has_colours => colour_bytes(rest),
            '\r' if rest.starts_with("\r\n") => 2,
            c if steers(c) => 0,
            c => c.len_utf8(),
        };
        if kept == 0 {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
        let (head, tail) = rest.split_at(if kept == 0 { c.len_utf8() } else { kept });
        out.push_str(if kept == 0 { "" } else { head });
        rest = tail;
    }
    Cow::Owned(out)
}

/// Makes Prometheus metrics safe for a terminal. A label knows only escapes of backslash, quote and line
/// feed, so control characters become the text of their escape (`\u{1b}`), with its backslash escaped.
pub(crate) fn printable_labels(metrics: &str) -> String {
    let steers = |c: char| (c.is_control() && c != '\n') || is_bidi_control(c);
    let shown = |c: char| if steers(c) { format!("\\{}", c.escape_default()) } else { c.to_string() };
    metrics.chars().map(shown).collect()
}

/// Returns the length of the sequence at the start of `text` if it sets colours (ECMA-48, 8.3.117), otherwise
/// 0.
fn colour_bytes(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    match parameters.find(|c: char| !c.is_ascii_digit() && c != ';') {
        Some(end) if parameters[end..].starts_with('m') => "\u{1b}[".len() + end + 1,
        _ => 0,
    }
}

/// Returns a command line for a shell, with arguments quoted where necessary.
pub fn shell_line(arguments: &[String]) -> String {
    arguments.iter().map(|argument| shell_word(argument)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_prometheus_has_no_escapes_but_its_own() {
        let shown = printable_labels("a{b=\"x\u{1b}[2J\\\\\"} 1\nc 2\n");
        assert_eq!(shown, "a{b=\"x\\\\u{1b}[2J\\\\\"} 1\nc 2\n");
        assert_eq!(printable_text(&shown, false), shown);
    }

    #[test]
    fn lines_and_colours_stay_and_nothing_else_steers() {
        assert_eq!(printable_text("a\n\tb\r\n", false), "a\n\tb\r\n");
        assert_eq!(printable_text("a\u{1b}[31mb", false), r"a\u001b[31mb");
        assert_eq!(printable_text("a\u{1b}[31;1mb\u{1b}[m", true), "a\u{1b}[31;1mb\u{1b}[m");
        assert_eq!(
            printable_text("\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}m\r\u{202e}", true),
            r"\u001b[2J\u001b]0;x\u0007\u009bm\u000d\u202e"
        );
        assert_eq!(printable_text("\u{1b}[31", true), r"\u001b[31");
        let json: String = serde_json::from_str(&printable_text("\"\u{7f}\u{9b}\u{202e}\"", false)).unwrap();
        assert_eq!(json, "\u{7f}\u{9b}\u{202e}", "the same string");
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let line = ["plumb", "check", "/srv/my db", "it's", "", "a\tb"].map(str::to_owned);
        assert_eq!(shell_line(&line), r"plumb check '/srv/my db' 'it'\''s' '' $'a\x09b'");
    }
}
