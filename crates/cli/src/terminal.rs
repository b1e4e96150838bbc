//! Output to stdout and stderr, with errors that name the stream.

use anyhow::Context;
use plumb_linux::descriptors::lacks_stdout;
pub(crate) use plumb_report::streams::{say, style, style_of_stderr};
use plumb_report::{Format, RenderInput, StatusDocument, Style, render, streams};

/// Writes a result to stdout.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    anyhow::ensure!(!lacks_stdout(), "cannot write to stdout: it is closed");
    streams::print(text).context("cannot write to stdout")
}

/// Writes a document to stdout as `format`; text in this style.
pub(crate) fn show<'a>(of: impl Into<RenderInput<'a>>, format: Format, style: Style) -> anyhow::Result<()> {
    print(&render(of, format, style)?)
}

/// Writes a status document to stdout as `format`.
pub(crate) fn show_status(of: &dyn StatusDocument, format: Format) -> anyhow::Result<()> {
    show(RenderInput::Status(of), format, style())
}

/// Prints why something ended early, and whether the interim `results`, which were shown, are also recorded.
pub(crate) fn say_so_far(why: &str, results: &str, is_recorded: bool) {
    let kept = if is_recorded { "kept" } else { "shown, but not recorded" };
    say(&format!("plumb: {why}; {results} are {kept}"));
}

/// Prints the path of the HTML report in a run directory, if there is one.
pub(crate) fn say_report(directory: Option<&String>) {
    directory
        .iter()
        .for_each(|directory| say(&format!("plumb: report: {directory}/{}", Format::Html.file_name())));
}
