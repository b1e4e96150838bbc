//! Text from outside, fit to print; and words of a command line as a shell needs them typed, of which every
//! command that plumb prints is made.

/// Quotes one argument of a command line as a POSIX shell needs it typed; with control characters as bash and
/// ksh do.
pub fn shell_word(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%^".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    if argument.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        let mut quoted = String::from("$'");
        for byte in argument.bytes() {
            match byte {
                b'\'' | b'\\' => quoted.extend(['\\', char::from(byte)]),
                b' '..=b'~' => quoted.push(char::from(byte)),
                other => quoted.push_str(&format!("\\x{other:02x}")),
            }
        }
        quoted.push('\'');
        return quoted;
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Returns `text` with control characters and bidirectional overrides shown as escapes (`\u{1b}`).
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_bidi_control(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns at most `longest` characters of `text`, ready to print.
pub fn excerpt(text: &str, longest: usize) -> String {
    let mut short = printable(&text.chars().take(longest).collect::<String>());
    if text.chars().nth(longest).is_some() {
        short.push_str("...");
    }
    short
}

/// Returns true if `c` is one of the characters with which the Unicode bidirectional algorithm (UAX 9) is
/// steered, or an invisible joiner.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{061c}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c\n"), r"a\u{1b}[31mb\u{202e}c\n");
        assert_eq!(printable("/srv/Überraschung"), "/srv/Überraschung");
    }

    #[test]
    fn a_shell_reads_what_was_meant() {
        for word in ["/srv/db", "my disk", "it's", "$(id)", "`id`", "a\\b", "", "*", "~x", "-n", "a\"b", "é"]
        {
            let script = format!("printf %s {}", shell_word(word));
            let read = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&read.stdout), word, "{script}");
        }
    }
}
