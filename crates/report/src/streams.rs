//! The two streams: results on stdout, everything else on stderr; and the capabilities of the terminal.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use crate::printable::printable_text;
use crate::terminal::Style;

/// Maximum width of lines, in columns; wider ones are hard to read.
const WIDTH_MAX: usize = 400;

/// Writes a result to stdout. No name in it can control the terminal. A closed pipe is not an error: its
/// reader has seen enough.
///
/// # Errors
/// Those of the write.
pub fn print(text: &str) -> io::Result<()> {
    let text = printable_text(text, style().colour);
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(broken) if broken.kind() != io::ErrorKind::BrokenPipe => Err(broken),
        _ => Ok(()),
    }
}

/// Writes a message to stderr. No name in it can control the terminal. Further lines of a message are
/// indented, so that they cannot be mistaken for another message. If stderr is closed, the exit code still
/// reports the failure.
pub fn say(line: &str) {
    let style = style_of_stderr();
    let mut line = printable_text(line, style.colour).into_owned();
    if !style.unicode {
        line = line.replace('µ', "u");
    }
    if line.starts_with("plumb: ") {
        line = line.replace('\n', "\n  ");
    }
    let mut stderr = io::stderr().lock();
    if writeln!(stderr, "{line}").is_err() {
        // stderr is closed, so the error cannot be reported.
    }
}

/// Returns the capabilities of stdout: its width, colours (a terminal, and no NO_COLOR), and whether the
/// locale is UTF-8.
pub fn style() -> Style {
    style_of(&io::stdout())
}

/// Returns the capabilities of stderr, where the live view is drawn.
pub fn style_of_stderr() -> Style {
    style_of(&io::stderr())
}

fn style_of(stream: &(impl IsTerminal + AsFd)) -> Style {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let tty = stream.is_terminal();
    let width = rustix::termios::tcgetwinsize(stream)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| tty && *columns > 0)
        .or_else(|| set("COLUMNS").and_then(|columns| columns.parse().ok()))
        .unwrap_or(100)
        .min(WIDTH_MAX);
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_uppercase();
    Style {
        width,
        colour: tty && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
        unicode: locale.contains("UTF-8") || locale.contains("UTF8"),
        is_terminal: tty,
        ..Style::PLAIN
    }
}
