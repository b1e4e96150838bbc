//! Construction of findings: one for each cause, even if several layers show it.

use std::fmt;

use super::Flow;
use crate::facts::{Mark, Node};
use crate::finding::Severity;

/// Maximum number of names in a sentence; the rest is only counted.
const NAMED_MAX: usize = 4;

/// Selects the layers with a mark of this shape, and the text of these marks.
macro_rules! marked {
    ($flow:expr, $mark:pat => $word:expr) => {
        Those::marked($flow, |mark| match mark {
            $mark => Some($word),
            _ => None,
        })
    };
}
pub(super) use marked;

/// Result of a rule. The id is the rule's. The remedy is the catalogue's unless the rule supplies its own.
pub(super) struct RuleResult {
    pub(super) severity: Severity,
    pub(super) sentence: String,
    pub(super) evidence: Vec<String>,
    pub(super) remedy: Option<String>,
}

/// Layers of a finding. Displayed as `sda`, `sda and sdb`, `sda, sdb, sdc, sdd and 8 more`.
pub(super) struct Those<'a> {
    pub(super) nodes: Vec<&'a Node>,
    /// Distinct texts of the layers' marks.
    pub(super) words: Vec<&'a str>,
}

impl<'a> Those<'a> {
    /// Selects the nodes that satisfy `wanted`.
    pub(super) fn matching(flow: &Flow<'a>, wanted: impl Fn(usize, &Node) -> bool) -> Self {
        let nodes = flow.nodes().filter(|(index, node)| wanted(*index, node)).map(|(_, node)| node);
        Self { nodes: nodes.collect(), words: Vec::new() }
    }

    /// Selects the nodes with a mark for which `word` returns a text.
    pub(super) fn marked(flow: &Flow<'a>, word: impl Fn(&'a Mark) -> Option<&'a str>) -> Self {
        let mut those = Self { nodes: Vec::new(), words: Vec::new() };
        for (_, node) in flow.nodes() {
            let mut found = node.marks.iter().filter_map(&word).peekable();
            if found.peek().is_some() {
                those.nodes.push(node);
            }
            for word in found {
                if !those.words.contains(&word) {
                    those.words.push(word);
                }
            }
        }
        those
    }

    /// Joins the texts of the marks with `between`.
    pub(super) fn said(&self, between: &str) -> String {
        self.words.join(between)
    }

    /// Returns `plural` if there are several layers, otherwise `singular`.
    pub(super) fn verb(&self, singular: &'static str, plural: &'static str) -> &'static str {
        if self.nodes.len() == 1 { singular } else { plural }
    }

    /// Fills in a sentence of the catalogue: `{those}` becomes the names, `{words, }` the texts of the marks
    /// joined by the separator after `words`, `{is|are}` the form for the number of layers.
    pub(super) fn fill(&self, sentence: &str) -> String {
        let filled = |(number, part): (usize, &str)| match (part.split_once('|'), part.strip_prefix("words"))
        {
            _ if number.is_multiple_of(2) => part.to_owned(),
            (Some((one, several)), _) => if self.nodes.len() == 1 { one } else { several }.to_owned(),
            (None, Some(between)) => self.said(between),
            (None, None) => self.to_string(),
        };
        sentence.split(['{', '}']).enumerate().map(filled).collect()
    }

    /// Creates a finding about these layers with their own evidence; `None` if there are none.
    pub(super) fn found(&self, severity: Severity, sentence: String) -> Option<RuleResult> {
        let evidence = self.lines().collect();
        (!self.nodes.is_empty()).then_some(RuleResult { severity, sentence, evidence, remedy: None })
    }

    /// Returns the layers' own evidence, one line each.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let line = |line: &crate::Evidence| format!("{}: {} ({})", line.source, line.value, line.means);
        self.nodes.iter().take(NAMED_MAX).flat_map(|node| &node.evidence).map(line)
    }
}

/// Joins the names of `nodes` for a sentence.
pub(super) fn names(nodes: Vec<&Node>) -> String {
    Those { nodes, words: Vec::new() }.to_string()
}

impl fmt::Display for Those<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed: Vec<&str> = self.nodes.iter().take(NAMED_MAX).map(|node| node.name.as_str()).collect();
        match (listed.as_slice(), self.nodes.len() - listed.len()) {
            ([] | [_], _) => f.write_str(&listed.concat()),
            ([first @ .., last], 0) => write!(f, "{} and {last}", first.join(", ")),
            (listed, rest) => write!(f, "{} and {rest} more", listed.join(", ")),
        }
    }
}
