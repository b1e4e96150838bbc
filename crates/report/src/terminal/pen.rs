//! Colours, and the conversion to ASCII.

use plumb_path::{Cache, Flush, Fua, Layer, Severity};

use super::Style;

/// Style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Default text of the terminal.
    Plain,
    /// Style of headings.
    Bold,
    /// Style of less important text.
    Dim,
    /// Colour of dangers.
    Red,
    /// Colour of warnings and of caches that a power cut empties.
    Yellow,
    /// Colour of data that survives.
    Green,
    /// Colour of notes.
    Cyan,
}

impl Style {
    /// Returns `text` in `ink` if there are colours.
    pub fn ink(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Plain => return text.to_owned(),
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Red => "1;31",
            Ink::Yellow => "33",
            Ink::Green => "32",
            Ink::Cyan => "36",
        };
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Returns the final text, converted to ASCII if necessary.
    pub fn finish(self, text: String) -> String {
        if self.unicode { text } else { to_ascii(&text) }
    }
}

/// Returns the ink of a severity.
pub(crate) const fn severity(severity: Option<Severity>) -> Ink {
    match severity {
        Some(Severity::Danger) => Ink::Red,
        Some(Severity::Warning) => Ink::Yellow,
        Some(Severity::Info) => Ink::Cyan,
        None => Ink::Green,
    }
}

/// Returns the ink of a cache.
pub(super) const fn cache(cache: Cache) -> Ink {
    match cache {
        Cache::None => Ink::Plain,
        Cache::Volatile => Ink::Yellow,
        Cache::Protected => Ink::Green,
        Cache::Unknown => Ink::Dim,
    }
}

/// Returns the ink for the fate of a flush.
pub(super) const fn flush(flush: Flush) -> Ink {
    match flush {
        Flush::Forwarded | Flush::Absorbed => Ink::Plain,
        Flush::Dropped => Ink::Red,
        Flush::Unknown => Ink::Dim,
    }
}

/// Returns the ink for the fate of FUA at `layer`.
pub(super) fn fua(layer: &Layer) -> Ink {
    match layer.fua {
        Fua::Dropped if layer.flush != Flush::Absorbed => Ink::Red,
        Fua::Unknown => Ink::Dim,
        _ => Ink::Plain,
    }
}

/// Returns `text` in ASCII: signs by similar ones, everything else as an escape.
fn to_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            'µ' => out.push('u'),
            '–' | '─' | '—' => out.push('-'),
            '×' => out.push('x'),
            '…' => out.push_str("..."),
            '·' => out.push('.'),
            '█' => out.push('#'),
            '▌' => out.push(':'),
            '│' => out.push('|'),
            '├' => out.push('+'),
            '└' => out.push('`'),
            '↓' => out.push('v'),
            '✕' => out.push('X'),
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            '“' | '”' => out.push('"'),
            '‘' | '’' => out.push('\''),
            '\u{a0}' => out.push(' '),
            other => out.extend(other.escape_default()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_ascii_and_colours_are_asked_for() {
        let style = Style { width: 80, colour: false, unicode: false, ..Style::PLAIN };
        assert_eq!(style.finish("├ 52 µs → ü".to_owned()), r"+ 52 us -> \u{fc}");
        assert_eq!(style.ink(Ink::Red, "x"), "x");
        assert_eq!(Style { colour: true, ..style }.ink(Ink::Red, "x"), "\u{1b}[1;31mx\u{1b}[0m");
    }
}
