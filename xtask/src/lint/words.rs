//! Check that abandoned words stay away: those of the table "Words not used" at the end of docs/GLOSSARY.md,
//! searched as whole identifiers or phrases in the sources of the crates, including help and messages, and in
//! the documents.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::offence::Offence;
use crate::workspace::tracked;

const DOCUMENT: &str = "docs/GLOSSARY.md";

/// Heading above the table, which is the last part of the document.
const HEADING: &str = "\n## Words not used\n";

/// Documents that quote abandoned words.
const QUOTING: [&str; 2] = [DOCUMENT, "CHANGELOG.md"];

/// Abandoned word, and its replacement.
type Word<'a> = (&'a str, &'a str);

/// Reads the table and searches for its words.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let glossary = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    let words = table(&glossary);
    ensure!(!words.is_empty(), "{DOCUMENT} has no table below {HEADING:?}");
    let mut found = Vec::new();
    for name in tracked(root, &[".rs", ".md"])? {
        let is_ours = name.starts_with("crates/") || name.ends_with(".md");
        if is_ours && !QUOTING.contains(&name.as_str()) && !name.contains("/tests/") {
            let text = fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
            found.extend(judge(&name, &text, &words));
        }
    }
    Ok(found)
}

/// Returns the rows `| word, word | instead |` below the heading.
fn table(glossary: &str) -> Vec<Word<'_>> {
    let rows = glossary.split_once(HEADING).map_or("", |(_, rest)| rest).lines();
    let rows = rows.filter_map(|line| line.strip_prefix("| ")?.trim_end_matches(" |").split_once(" | "));
    let each = |(words, instead)| str::split(words, ", ").map(move |word| (word.trim_matches('`'), instead));
    rows.skip(1).flat_map(each).collect()
}

fn judge(name: &str, text: &str, words: &[Word<'_>]) -> Vec<Offence> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (word, instead) in words {
            if has_word(line, word) {
                let place = format!("{name}:{}", index + 1);
                found.push(Offence::new(place, format!("{word:?} was given up: say {instead}")));
            }
        }
    }
    found
}

/// Returns true if `word` occurs in `line` without identifier characters on either side.
fn has_word(line: &str, word: &str) -> bool {
    let of_identifier = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + word.len()..]);
        !before.ends_with(of_identifier) && !after.starts_with(of_identifier)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_table_are_found_as_whole_identifiers() {
        let glossary = "# Glossary\n\n| Word | Meaning |\n|---|---|\n| lba | x |\n\n## Words not used\n\
                        | Not this | But |\n|---|---|\n| `Mishap`, gets up | `Fault` |\n";
        let words = table(glossary);
        assert_eq!(words, [("Mishap", "`Fault`"), ("gets up", "`Fault`")]);
        let found = judge("a.rs", "struct Mishap;\nMishaps, MishapKind\nit gets up early\n", &words);
        let places: Vec<_> = found.iter().map(|offence| offence.place.as_str()).collect();
        assert_eq!(places, ["a.rs:1", "a.rs:3"]);
    }
}
