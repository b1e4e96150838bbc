//! Names from outside (paths, labels, serial numbers) made fit to print: nothing in them can move a cursor, change a
//! colour or reverse the reading direction.

/// `text` with control characters and bidirectional overrides shown as escapes (`\u{1b}`).
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

/// The characters with which the Unicode bidirectional algorithm (UAX 9) is steered, and the invisible joiners.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{061c}' | '\u{feff}')
}

/// One argument of a command line as a POSIX shell would need it typed.
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

/// A whole command line, each argument quoted where it must be.
pub fn shell_line(arguments: &[String]) -> String {
    arguments.iter().map(|argument| shell_word(argument)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c\n"), r"a\u{1b}[31mb\u{202e}c\n");
        assert_eq!(printable("/srv/Überraschung"), "/srv/Überraschung");
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let line = ["plumb", "check", "/srv/my db", "it's", "", "a\tb"].map(str::to_owned);
        assert_eq!(shell_line(&line), r"plumb check '/srv/my db' 'it'\''s' '' $'a\x09b'");
    }
}
