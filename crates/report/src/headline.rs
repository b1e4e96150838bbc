//! The verdict in one sentence: the worst finding first, then what it means for a write.

use plumb_path::Severity;

use crate::document::CheckDocument;
use crate::floors::{self, Synced};
use crate::quantity::count;
use crate::wording;

/// What a reader should know if nothing else is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The severity of the worst finding above info; `None` if there is none.
    pub severity: Option<Severity>,
    /// `Danger`, `Warning`, `No finding`, `Not measured`.
    pub label: &'static str,
    /// The worst finding's sentence; without one, what an fsync reaches.
    pub verdict: String,
    /// What that means, what was counted, what is not known, and how many more findings there are.
    pub meaning: String,
}

impl Headline {
    /// The headline of `document`.
    pub fn of(document: &CheckDocument) -> Self {
        let serious = || document.verdicts.iter().filter(|finding| finding.severity > Severity::Info);
        let worst = serious().map(|finding| finding.severity).max();
        let first = serious().find(|finding| Some(finding.severity) == worst);
        let mut meaning = Vec::new();
        let (label, verdict) = match first {
            Some(finding) => {
                meaning.push(sentence(&document.path.durable_at.sentence));
                match serious().count() {
                    1 => {}
                    2 => meaning.push("There is one more finding below.".to_owned()),
                    n => meaning.push(format!("There are {} more findings below.", n - 1)),
                }
                let label = if finding.severity == Severity::Danger { "Danger" } else { "Warning" };
                (label, sentence(&finding.sentence))
            }
            None => {
                let measured = document.sync.iter().any(|result| result.operations > 0)
                    || document.io.iter().any(|io| io.application.is_some());
                meaning.extend(counted(document));
                if measured {
                    meaning.push(
                        "No rule found anything that loses synced data or spoils the figures.".to_owned(),
                    );
                }
                meaning.extend(unknown(document));
                (if measured { "No finding" } else { "Not measured" }, reach(document))
            }
        };
        meaning.retain(|text| !text.is_empty());
        Self { severity: worst, label, verdict, meaning: meaning.join(" ") }
    }

    /// The severity as a word; `none` if there was no finding.
    pub fn class(&self) -> &'static str {
        self.severity.map_or("none", wording::severity)
    }
}

/// What an fsync reaches, as far as can be seen.
fn reach(document: &CheckDocument) -> String {
    let path = &document.path;
    match floors::synced(path) {
        Synced::Durable(index) => format!(
            "Once fsync has returned, data here is durable in {}, as far as kernel and drive say.",
            path.layers[index].name
        ),
        Synced::Lost => sentence(&path.durable_at.sentence),
        Synced::Unknown => {
            let below = path.layers.iter().find(|layer| wording::is_beyond_sight(layer.kind));
            let below = below.map_or_else(
                || "beyond it".to_owned(),
                |layer| format!("in the {}", wording::kind(layer.kind)),
            );
            match floors::reached(path).as_slice() {
                [] => "What an fsync is worth here cannot be seen from this machine.".to_owned(),
                [one] => format!("An fsync here reaches {one}; what is below, {below}, is unknown."),
                [first, rest @ ..] => format!(
                    "An fsync here reaches {first} and {} more; what is below, {below}, is unknown.",
                    rest.len()
                ),
            }
        }
    }
}

/// That every durable write was seen as a flush, where it was.
fn counted(document: &CheckDocument) -> Option<String> {
    let result = document.sync.iter().find(|result| result.operations > 0)?;
    let flushes = result.device_flushes.filter(|flushes| *flushes > 0)?;
    Some(format!(
        "{} durable writes were seen as {} flushes at the devices.",
        count(result.operations),
        count(flushes)
    ))
}

fn unknown(document: &CheckDocument) -> Option<String> {
    let why = document.path.unknown_below.as_deref()?.trim();
    let mut letters = why.chars();
    let first = letters.next()?;
    Some(sentence(&format!("{}{}", first.to_uppercase(), letters.as_str())))
}

/// The text with a full stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

#[cfg(test)]
mod tests {
    use plumb_path::Finding;

    use super::*;
    use crate::fixture;

    fn finding(severity: Severity, sentence: &str) -> Finding {
        Finding {
            id: "x".into(),
            severity,
            sentence: sentence.into(),
            evidence: vec![],
            remedy: String::new(),
        }
    }

    #[test]
    fn the_worst_comes_first_and_the_first_of_equals() {
        let mut document = fixture::virtual_machine();
        document.verdicts = vec![
            finding(Severity::Info, "a"),
            finding(Severity::Warning, "b"),
            finding(Severity::Danger, "c"),
            finding(Severity::Danger, "d"),
        ];
        let headline = Headline::of(&document);
        assert_eq!((headline.severity, headline.verdict.as_str()), (Some(Severity::Danger), "c."));
        assert!(headline.meaning.contains("2 more findings"), "{}", headline.meaning);
    }

    #[test]
    fn without_a_finding_it_says_what_an_fsync_reaches_and_never_that_it_is_safe() {
        for document in fixture::all() {
            assert!(!format!("{:?}", Headline::of(&document)).contains("safe"));
        }
        let headline = Headline::of(&fixture::virtual_machine());
        assert_eq!(headline.class(), "none");
        assert_eq!(
            headline.verdict,
            "An fsync here reaches vda; what is below, in the hypervisor, is unknown."
        );
        assert!(headline.meaning.contains("52,410 flushes"), "{}", headline.meaning);
        let headline = Headline::of(&fixture::document("hard-drive"));
        assert!(headline.verdict.contains("durable in sda"), "{}", headline.verdict);
        assert_eq!(Headline::of(&fixture::document("denied")).label, "Not measured");
    }
}
