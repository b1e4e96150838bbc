//! Help of each command beyond its arguments: the options that `-h` shows, headings, examples, notes, exit
//! statuses and files. `-h`, `--help` and the manual pages are made from this one text, `help.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// All pages, in the order of `plumb --help`, and what they share.
pub(super) static PAGES: LazyLock<Pages> = LazyLock::new(|| {
    let pages = include_str!("../../help.toml").parse().and_then(toml::Table::try_into);
    pages.expect("the pages are read by every test of help")
});

/// Content of `help.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pages {
    /// Meanings of the exit statuses of all commands, from 0.
    pub(super) exits: Vec<String>,
    /// Headings of options that many commands have, with the long names of these.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// Files that several pages name, by a short name.
    files: BTreeMap<String, File>,
    /// Notes that several pages have, by a short name.
    notes: BTreeMap<String, Notes>,
    /// One page a command.
    #[serde(rename = "page")]
    pub(super) pages: Vec<Page>,
}

/// Help of one command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Words after `plumb`, such as `prove app`; empty for plumb itself.
    pub(super) command: String,
    /// Long names of the options that `-h` shows. It always shows positional arguments.
    #[serde(default)]
    pub(super) essential: Vec<String>,
    /// Headings for options whose definition names none, with the long names of these.
    #[serde(default)]
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// Command lines; the first stands in `-h`, all in `--help`.
    pub(super) examples: Vec<Example>,
    /// For `--help` and the manual page. A paragraph `@NAME` stands for notes that several pages have.
    #[serde(default)]
    notes: Notes,
    /// Exit statuses with a meaning of their own in this command, with that meaning; empty for one that the
    /// command does not use. The others mean what they mean in all commands.
    #[serde(default)]
    pub(super) exits: BTreeMap<String, String>,
    /// Files that the command reads or writes without being told their names, by their short names.
    #[serde(default)]
    files: Vec<String>,
}

/// Paragraphs. Its lines are those of the file, joined but for those that begin with spaces.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "String")]
struct Notes(Vec<String>);

impl From<String> for Notes {
    fn from(text: String) -> Self {
        let joined = |paragraph: &str| {
            paragraph.trim_end().replace("\n ", "\0 ").replace('\n', " ").replace('\0', "\n")
        };
        Self(text.split("\n\n").map(joined).collect())
    }
}

/// Command line, and what it is for.
#[derive(Debug, Deserialize)]
pub(super) struct Example {
    pub(super) line: String,
    pub(super) purpose: String,
}

/// Path, and what is there.
#[derive(Debug, Deserialize)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) content: String,
}

impl Page {
    /// Returns the paragraphs of its notes.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        let named = |note: &String| note.strip_prefix('@').map(|name| &PAGES.notes[name].0);
        let notes = self.notes.0.iter();
        notes
            .flat_map(move |note| named(note).map_or(std::slice::from_ref(note), Vec::as_slice))
            .map(String::as_str)
    }

    /// Returns the files that the page names.
    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().map(|name| &PAGES.files[name])
    }
}
