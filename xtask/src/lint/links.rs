//! Check of links between documents: the file must exist, and the heading in it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::offence::Offence;
use crate::workspace::tracked;

/// Checks every relative link of every Markdown file.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let mut found = Vec::new();
    for name in tracked(root, &[".md"])? {
        let text = fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
        let directory = root.join(&name).parent().map(Path::to_owned).unwrap_or_default();
        for (line, link) in links(&text) {
            if let Some(what) = broken(&directory, &text, link) {
                found.push(Offence::new(format!("{name}:{line}"), what));
            }
        }
    }
    Ok(found)
}

/// Returns each relative link with its line, outside code blocks.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.filter(|target| !target.contains("://")).map(|target| (index + 1, target)));
    }
    found
}

/// Returns the reason why a link is broken; `None` if it is not.
fn broken(directory: &Path, own_text: &str, link: &str) -> Option<String> {
    let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let text = if file.is_empty() {
        own_text.to_owned()
    } else {
        let path = directory.join(file);
        if !path.exists() {
            return Some(format!("{link} leads to a file that is not there"));
        }
        heading?;
        fs::read_to_string(&path).ok()?
    };
    let heading = heading?;
    let known = text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
    (!known).then(|| format!("{link} names a heading that is not there"))
}

/// Returns the anchor that a Markdown viewer gives a heading.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code_and_judged() {
        let text =
            "# A Title, here\n[a](#a-title-here) [b](https://x/y)\n```\n[c](nowhere)\n```\n[d](#gone)\n";
        let found = links(text);
        assert_eq!(found, [(2, "#a-title-here"), (6, "#gone")]);
        let here = Path::new("/");
        assert_eq!(broken(here, text, "#a-title-here"), None);
        assert!(broken(here, text, "#gone").is_some());
        assert!(broken(here, text, "no/such/file.md").is_some());
    }
}
