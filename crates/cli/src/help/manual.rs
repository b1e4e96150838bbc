//! Manual pages with the sections of man-pages(7).

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use super::form::{Form, command, page};
use super::pages::Page;
use crate::arguments::output::OutputArguments;
use crate::exit::Exit;

/// Writes `plumb.1` and a page for each command to `directory`: all of them, or none if one is refused.
pub(crate) fn manual(directory: &Path, writing: OutputArguments) -> anyhow::Result<Exit> {
    let mut root = command(Form::Whole).disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add_pages(&root, &[], directory, &mut pages)?;
    let files = writing.each(pages.iter().map(|(path, _)| path.as_path()), &[])?;
    for (file, (_, text)) in files.iter().zip(&pages) {
        file.write(text)?;
    }
    Ok(Exit::Done)
}

/// Adds the pages of a command and its subcommands; `words` are its words after `plumb`.
fn add_pages(
    command: &Command,
    words: &[&str],
    directory: &Path,
    pages: &mut Vec<(PathBuf, Vec<u8>)>,
) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let words: Vec<&str> = words.iter().copied().chain([subcommand.get_name()]).collect();
        add_pages(subcommand, &words, directory, pages)?;
    }
    let Some(page) = page(&words.join(" ")) else { return Ok(()) };
    let man = Man::new(command.clone()).manual("plumb");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    sections(page, command, words).to_writer(&mut text)?;
    pages.push((directory.join(man.get_filename()), text));
    Ok(())
}

/// Returns the synopsis section.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for form in usage.trim_start_matches("Usage:").lines().map(str::trim) {
        let (name, arguments) = form.find(['[', '<', '-']).map_or((form, ""), |at| form.split_at(at));
        roff.text([bold(name), italic(arguments)]);
        roff.control("br", []);
    }
    roff
}

/// Returns the sections after the options.
fn sections(page: &Page, command: &Command, words: &[&str]) -> Roff {
    let mut roff = Roff::new();
    if page.notes().next().is_some() {
        roff.control("SH", ["NOTES"]);
    }
    for note in page.notes() {
        roff.control("PP", []);
        note.lines().for_each(|line| verbatim_or_text(&mut roff, line));
    }
    roff.control("SH", ["EXAMPLES"]);
    for example in &page.examples {
        roff.control("TP", []);
        roff.text([roman(example.purpose.as_str())]);
        roff.text([bold(example.line.as_str())]);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in page.exits() {
        roff.control("TP", []);
        roff.text([bold(code)]);
        roff.text([roman(meaning)]);
    }
    if page.files().next().is_some() {
        roff.control("SH", ["FILES"]);
    }
    for file in page.files() {
        roff.control("TP", []);
        roff.text([italic(file.path.as_str())]);
        roff.text([roman(file.content.as_str())]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text(
        see_also(command, words)
            .iter()
            .flat_map(|name| [bold(name.as_str()), roman("(1) ")])
            .collect::<Vec<_>>(),
    );
    roff
}

/// Adds a line of a note. A line that begins with spaces is not joined with the one before.
fn verbatim_or_text(roff: &mut Roff, line: &str) {
    if line.starts_with(' ') {
        roff.control("br", []);
    }
    roff.text([roman(line)]);
}

/// Returns the names of related pages: the parent command, the subcommands, `plumb-explain` and
/// `plumb-report`.
fn see_also(command: &Command, words: &[&str]) -> Vec<String> {
    let name = |words: &[&str]| [&["plumb"], words].concat().join("-");
    let mut pages = Vec::new();
    if let Some((_, above)) = words.split_last() {
        pages.push(name(above));
    }
    let below = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    pages.extend(below.map(|subcommand| name(&[words, &[subcommand.get_name()]].concat())));
    for further in ["plumb-explain", "plumb-report"] {
        if name(words) != further && !pages.iter().any(|page| page == further) {
            pages.push(further.to_owned());
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manual_page_has_the_sections_of_a_manual_page() {
        let directory = tempfile::tempdir().unwrap();
        manual(directory.path(), OutputArguments::default()).unwrap();
        let pages = std::fs::read_dir(directory.path()).unwrap();
        let mut count = 0;
        for page in pages.map(|page| page.unwrap().path()) {
            let text = std::fs::read_to_string(&page).unwrap();
            let has = |section: &str| text.lines().any(|line| line.trim_end() == format!(".SH {section}"));
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "\"EXIT STATUS\"", "\"SEE ALSO\""]
            {
                assert!(has(section), "{}: no section {section}", page.display());
            }
            count += 1;
        }
        assert!(count > 50, "{count} pages");
        let text = std::fs::read_to_string(directory.path().join("plumb-compare.1")).unwrap();
        assert!(text.contains("[OPTIONS] [TARGET]..."), "no arguments in the synopsis: {text:.600}");
        assert!(text.contains(".SH FILES"), "no files: {text:.600}");
        assert!(text.contains("Use the whole budget"), "an option without help");
    }
}
