//! The two streams: results on stdout, everything else on stderr; and what the terminal can show.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use crate::printable::printable_text;
use crate::terminal::Style;

/// Wider lines than this are read by nobody.
const WIDTH_MAX: usize = 400;

/// Writes a result to stdout, in which no name can steer the terminal. A reader who closed the pipe has seen
/// enough: that is no failure.
///
/// # Errors
/// Of the system.
pub fn print(text: &str) -> io::Result<()> {
    let text = printable_text(text, style().colour);
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(broken) if broken.kind() != io::ErrorKind::BrokenPipe => Err(broken),
        _ => Ok(()),
    }
}

/// Says a line on stderr, in which no name can steer the terminal. What a message of plumb's own, or a name
/// in it, has on further lines is indented: it cannot be taken for another message. If nobody can be told,
/// the exit code still says it.
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
        // stderr is closed; there is nowhere left to say so.
    }
}

/// Returns what stdout can show: its width, whether it takes colours (a terminal, and no NO_COLOR), and
/// whether the locale is UTF-8.
pub fn style() -> Style {
    style_of(&io::stdout())
}

/// Returns what stderr can show, where the live view is drawn.
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
