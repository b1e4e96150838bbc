//! Help of each command beyond its arguments: options for `-h`, headings, examples, notes, exit statuses and
//! files, all from `help.toml`. `-h`, `--help` and the manual pages are generated from it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// All pages in the order of `plumb --help`, with their common parts.
pub(super) static PAGES: LazyLock<Pages> = LazyLock::new(|| {
    let pages = include_str!("../../help.toml").parse().and_then(toml::Table::try_into);
    pages.expect("the pages are read by every test of help")
});

/// Contents of `help.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pages {
    /// Default meanings of the exit statuses, from 0.
    pub(super) exits: Vec<String>,
    /// Common headings, each with the long names of its options.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// Files named by several pages, by a short name.
    files: BTreeMap<String, File>,
    /// Notes used by several pages, by a short name.
    notes: BTreeMap<String, Notes>,
    /// Pages, one per command.
    #[serde(rename = "page")]
    pub(super) pages: Vec<Page>,
}

/// Help of one command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Words after `plumb`, such as `prove app`; empty for `plumb` itself.
    pub(super) command: String,
    /// Long names of the options in `-h`, which always shows positional arguments.
    #[serde(default)]
    pub(super) essential: Vec<String>,
    /// Headings, each with the long names of those options whose definition has none.
    #[serde(default)]
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// Command lines; the first one is shown in `-h`, all in `--help`.
    pub(super) examples: Vec<Example>,
    /// Notes in `--help` and the manual page. A paragraph `@NAME` inserts common notes.
    #[serde(default)]
    notes: Notes,
    /// Exit statuses with a special meaning in this command; an empty meaning for a status that the command
    /// does not use. The others have their default meanings.
    #[serde(default)]
    pub(super) exits: BTreeMap<String, String>,
    /// Short names of files that the command uses without being given their paths.
    #[serde(default)]
    files: Vec<String>,
}

/// Paragraphs, whose lines are joined except those that begin with spaces.
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

/// Example command line with its purpose.
#[derive(Debug, Deserialize)]
pub(super) struct Example {
    pub(super) line: String,
    pub(super) purpose: String,
}

/// Path of a file with its contents.
#[derive(Debug, Deserialize)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) content: String,
}

impl Page {
    /// Returns the paragraphs of the notes.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        let named = |note: &String| note.strip_prefix('@').map(|name| &PAGES.notes[name].0);
        let notes = self.notes.0.iter();
        notes
            .flat_map(move |note| named(note).map_or(std::slice::from_ref(note), Vec::as_slice))
            .map(String::as_str)
    }

    /// Returns the files of the page.
    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().map(|name| &PAGES.files[name])
    }
}
