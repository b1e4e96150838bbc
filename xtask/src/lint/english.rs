//! Rules of plain English that can be checked automatically: how comments begin, how types and functions are
//! named, how messages refuse a value, and how long lines are.
//!
//! The habits that make a text hard to read are of syntax rather than of words: a clause that stands for a
//! noun ("What was asked"), a comment that leans on the item above it ("The same, but"), a participle as the
//! name of a type.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::offence::Offence;
use crate::workspace::tracked;

/// First words of a comment that make it a clause, or lean on the comment before it.
const OPENERS: [&str; 14] = [
    "What", "Who", "Whether", "Which", "As", "Of", "That", "So", "And", "It", "Its", "Those", "These",
    "The same",
];

/// Participles and other words that name nothing. Regular participles are recognised by their ending.
const PARTICIPLES: [&str; 22] = [
    "Told",
    "Kept",
    "Found",
    "Made",
    "Seen",
    "Meant",
    "Held",
    "Heard",
    "Gone",
    "Ran",
    "Known",
    "Shown",
    "Broken",
    "Standing",
    "Looking",
    "Keeping",
    "LayingOut",
    "Waiting",
    "Running",
    "Failing",
    "Done",
    "What",
];

/// Nouns with the ending of a participle.
const NOUNS: [&str; 4] = ["Speed", "Seed", "Need", "Feed"];

/// Words that declare a type.
const TYPES: [&str; 4] = ["struct ", "enum ", "trait ", "type "];

/// Longest line of a comment or a document, in columns.
const COLUMNS_MAX: usize = 110;

/// Rules, each with the way to correct a line that breaks it.
const RULES: [(&str, &str); 5] = [
    ("opener", "begin the comment with a verb (of a function) or a noun"),
    ("participle", "name the type by a noun"),
    ("fn-of", "name the function `new`, `from_...` or `for_...`, or by a verb"),
    ("is-no", "write \"is not a\""),
    ("wide-line", "keep the line within 110 columns"),
];

/// Finds every line that breaks one of the [`RULES`].
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    // This file contains all the words that it searches for.
    let own = |name: &String| name.ends_with("lint/english.rs");
    let mut offences = Vec::new();
    for name in tracked(root, &[".rs", ".md"])?.into_iter().filter(|name| !own(name)) {
        let text = fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
        let found = if name.ends_with(".md") { in_document(&text) } else { in_source(&text) };
        for (rule, line) in found {
            let advice = RULES.iter().find(|(name, _)| *name == rule).map_or("", |(_, advice)| advice);
            offences.push(Offence::new(format!("{name}:{line}"), format!("{rule}: {advice}")));
        }
    }
    Ok(offences)
}

/// Returns true if a line with the text `said` should be shorter.
fn is_wide(line: &str, said: &str, is_code: bool) -> bool {
    line.chars().count() > COLUMNS_MAX && !is_code && !said.starts_with('|')
}

/// Finds the rules that a document breaks, each with its line. Tables and code may be wider.
fn in_document(text: &str) -> Vec<(&'static str, usize)> {
    let mut is_code = false;
    let wide = |(index, line): (usize, &str)| {
        is_code ^= line.trim_start().starts_with("```");
        is_wide(line, line, is_code).then_some(("wide-line", index + 1))
    };
    text.lines().enumerate().filter_map(wide).collect()
}

/// Finds the rules that a source breaks, each with its line. Tables, pictures and code in comments may be
/// wider.
fn in_source(text: &str) -> Vec<(&'static str, usize)> {
    let mut found = Vec::new();
    let (mut is_in_comment, mut is_code) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let comment = comment(line);
        is_code = comment.is_some_and(|said| is_code ^ said.starts_with("```"));
        let rules = match comment {
            Some(said) => [
                (!is_in_comment && begins_as_clause(said)).then_some("opener"),
                is_wide(line, said, is_code).then_some("wide-line"),
            ],
            None => [rule_of_name(line), says_is_no(line).then_some("is-no")],
        };
        found.extend(rules.into_iter().flatten().map(|rule| (rule, index + 1)));
        is_in_comment = comment.is_some();
    }
    found
}

/// Returns the text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let said = line.trim_start().strip_prefix("//")?;
    Some(said.trim_start_matches(['/', '!']).trim_start())
}

/// Returns true if a comment begins with one of the openers as a whole word.
fn begins_as_clause(said: &str) -> bool {
    OPENERS.iter().any(|opener| {
        said.strip_prefix(opener)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Returns the rule that the name of the item declared on this line breaks.
fn rule_of_name(line: &str) -> Option<&'static str> {
    let code = line.trim_start();
    let code =
        code.strip_prefix("pub").map_or(code, |rest| rest.trim_start_matches(|c| c != ' ').trim_start());
    if ["fn of(", "fn of<", "const fn of("].iter().any(|start| code.starts_with(start)) {
        return Some("fn-of");
    }
    let declared = TYPES.iter().find_map(|word| code.strip_prefix(word))?;
    let name = declared.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let capitals = name.chars().filter(|c| c.is_uppercase()).count();
    let is_regular = capitals == 1 && name.ends_with("ed") && !NOUNS.contains(&name);
    (is_regular || PARTICIPLES.contains(&name)).then_some("participle")
}

/// Returns true if a string on this line uses "is no" instead of "is not a".
fn says_is_no(line: &str) -> bool {
    let is_denial = |start: usize, words: &str| {
        let (before, after) = (&line[..start], &line[start + words.len()..]);
        let is_in_string = before.matches('"').count() % 2 == 1;
        let is_there = ["there", "There"].iter().any(|word| before.ends_with(word));
        let is_other = ["longer", "more", "one", "doubt"].iter().any(|word| after.starts_with(word));
        is_in_string && !is_there && !is_other
    };
    [" is no ", " are no "]
        .iter()
        .any(|words| line.match_indices(words).any(|(start, _)| is_denial(start, words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        in_source(text).into_iter().map(|(rule, _)| rule).collect()
    }

    #[test]
    fn a_comment_begins_with_a_verb_or_a_noun() {
        for wrong in
            ["/// What was asked.", "//! The same, but late.", "    // As the kernel does.", "/// Its size."]
        {
            assert_eq!(rules(wrong), ["opener"], "{wrong}");
        }
        for right in
            ["/// Returns what was asked.", "/// Items.", "// Assumes nothing.", "/// The sameness of two."]
        {
            assert!(rules(right).is_empty(), "{right}");
        }
        assert!(rules("/// Size of the log,\n/// as the user gave it:\n/// As typed.").is_empty());
    }

    #[test]
    fn a_type_is_a_noun_and_a_function_has_a_name() {
        for wrong in
            ["pub struct Asked {", "pub(crate) enum Found<T> {", "struct Interrupted;", "trait Told {"]
        {
            assert_eq!(rules(wrong), ["participle"], "{wrong}");
        }
        for right in [
            "struct Seed(u64);",
            "pub struct InterruptedRun;",
            "type Speed = f64;",
            "let told = Told::new();",
        ] {
            assert!(rules(right).is_empty(), "{right}");
        }
        assert_eq!(rules("    pub(crate) fn of(text: &str) -> Self {"), ["fn-of"]);
        assert!(rules("    pub fn offset(&self) -> u64 {").is_empty());
    }

    #[test]
    fn a_message_says_what_a_value_is_not() {
        assert_eq!(rules("format!(\"`{typed}` is no size\")"), ["is-no"]);
        for right in [
            "\"there is no device\"",
            "\"it is no longer there\"",
            "let x = 1; // this is no size",
            "\"is not a size\"",
        ] {
            assert!(rules(right).is_empty(), "{right}");
        }
    }

    #[test]
    fn lines_of_comments_and_documents_are_bounded() {
        let long = "x".repeat(COLUMNS_MAX);
        assert_eq!(rules(&format!("/// {long}")), ["wide-line"]);
        assert_eq!(rules(&format!("//! ```text\n//! {long}\n//! ```\n//! {long}")), ["wide-line"]);
        assert_eq!(rules(&format!("//! | {long} |")), [""; 0]);
        assert!(rules(&format!("let x = \"{long}\";")).is_empty());
        assert_eq!(in_document(&format!("a\n{long}x\n")), [("wide-line", 2)]);
        assert!(in_document(&format!("| {long} |\n```\n{long}x\n```\n")).is_empty());
    }
}
