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
    /// `Danger`, `Warning`, `No finding`, `Not complete`, `Not measured`.
    pub label: &'static str,
    /// The worst finding's sentence; without one, why the check is not complete or what an fsync reaches.
    pub verdict: String,
    /// What that means, what was counted, what is not known, and how many more findings there are.
    pub meaning: String,
    /// Why the check is not complete, if it is not and the verdict says something else.
    pub incomplete: Option<String>,
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
                let (label, verdict) = match (measured, incomplete(document)) {
                    (true, None) => ("No finding", reach(document)),
                    (false, None) => ("Not measured", reach(document)),
                    (measured, Some(why)) => {
                        meaning.push(reach(document));
                        (if measured { "Not complete" } else { "Not measured" }, why)
                    }
                };
                meaning.extend(counted(document));
                if measured && document.complete {
                    meaning.push(
                        "No rule found anything that loses synced data or spoils the figures.".to_owned(),
                    );
                }
                meaning.extend(unknown(document));
                (label, verdict)
            }
        };
        meaning.retain(|text| !text.is_empty());
        let incomplete = incomplete(document).filter(|why| *why != verdict);
        Self { severity: worst, label, verdict, meaning: meaning.join(" "), incomplete }
    }

    /// The severity as a word; `none` if there was no finding.
    pub fn class(&self) -> &'static str {
        self.severity.map_or("none", wording::severity)
    }
}

/// Why the check is not complete; `None` if it is.
fn incomplete(document: &CheckDocument) -> Option<String> {
    let why = document.incomplete_because.as_deref().map(str::trim).filter(|why| !why.is_empty());
    (!document.complete).then(|| capital(&sentence(why.unwrap_or("some phases did not run"))))
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
    (!why.is_empty()).then(|| capital(&sentence(why)))
}

/// The text with a capital at its start, unless it begins with the name of something: `write-direct`, `/srv`.
pub(crate) fn capital(text: &str) -> String {
    let first = text.split([' ', ',', '.']).next().unwrap_or_default();
    if first.chars().all(char::is_alphabetic)
        && let Some(letter) = first.chars().next()
    {
        return format!("{}{}", letter.to_uppercase(), &text[letter.len_utf8()..]);
    }
    text.to_owned()
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
        let denied = Headline::of(&fixture::document("denied"));
        assert_eq!(denied.label, "Not measured");
        assert!(denied.verdict.contains("permission denied"), "{}", denied.verdict);
    }

    #[test]
    fn what_is_not_complete_never_says_that_there_is_no_finding() {
        let mut document = fixture::document("interrupted");
        document.verdicts = crate::verdict::judge(&document);
        let headline = Headline::of(&document);
        assert_eq!((headline.label, headline.incomplete.as_deref()), ("Not complete", None));
        assert_eq!(headline.verdict, "Interrupted by Ctrl-C during append-fdatasync.");
        assert!(!headline.meaning.contains("No rule found"), "{}", headline.meaning);
        document.verdicts = vec![finding(Severity::Warning, "b")];
        assert_eq!(Headline::of(&document).incomplete.as_deref(), Some(headline.verdict.as_str()));
        document.failed = true;
        document.verdicts = crate::verdict::judge(&document);
        let headline = Headline::of(&document);
        assert_eq!((headline.label, headline.incomplete), ("Danger", None), "the reason is said once");
        document.incomplete_because = None;
        document.verdicts.clear();
        assert_eq!(Headline::of(&document).verdict, "Some phases did not run.");
    }
}
