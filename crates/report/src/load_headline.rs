//! The head of a load's report: the worst finding, or what was reached.

use plumb_path::{Finding, Severity};

use crate::document::RunDocument;
use crate::headline::{Headline, capital, sentence};
use crate::quantity::{count, duration, mebibytes, rate};

impl Headline {
    /// The headline of a load.
    pub fn of_load(document: &RunDocument) -> Self {
        let serious: Vec<&Finding> =
            document.verdicts.iter().filter(|finding| finding.severity > Severity::Info).collect();
        let worst = serious.iter().map(|finding| finding.severity).max();
        let why = incomplete(document);
        let summary = summary(document);
        let transactions = document.transactions.as_ref().is_some_and(|transactions| transactions.count > 0);
        let measured = document.total.application.operations > 0 || transactions;
        let (label, verdict, mut meaning) =
            match (serious.iter().find(|finding| Some(finding.severity) == worst), &why) {
                (Some(first), _) => {
                    let label = if first.severity == Severity::Danger { "Danger" } else { "Warning" };
                    (label, sentence(&first.sentence), vec![summary])
                }
                (None, Some(why)) if measured => ("Not complete", why.clone(), vec![summary]),
                (None, Some(why)) => ("Not measured", why.clone(), Vec::new()),
                (None, None) if measured => ("No finding", summary, Vec::new()),
                (None, None) => ("Not measured", summary, Vec::new()),
            };
        meaning.extend(flushes(document));
        match serious.len() {
            0 | 1 => {}
            2 => meaning.push("There is one more finding below.".to_owned()),
            n => meaning.push(format!("There are {} more findings below.", n - 1)),
        }
        let incomplete = why.filter(|why| *why != verdict);
        Self { severity: worst, label, verdict, meaning: meaning.join(" "), incomplete }
    }
}

/// Why the load is not complete; `None` if it is.
fn incomplete(document: &RunDocument) -> Option<String> {
    let why = document.incomplete_because.as_deref().map(str::trim).filter(|why| !why.is_empty());
    (!document.complete).then(|| capital(&sentence(why.unwrap_or("it did not run to its end"))))
}

/// What was reached, in one sentence.
fn summary(document: &RunDocument) -> String {
    let side = &document.total.application;
    if document.spans.len() > 1 && side.operations > 0 {
        return format!(
            "{} operations in {} spans, {} measured in all; the table has each.",
            count(side.operations),
            document.spans.len(),
            duration(document.duration)
        );
    }
    let transactions = document.transactions.as_ref().filter(|transactions| transactions.count > 0);
    if let Some((transactions, latency)) = transactions.and_then(|done| Some((done, done.latency?))) {
        return format!(
            "{} transactions per second; half of them within {}, 99 of 100 within {}.",
            rate(transactions.per_second),
            duration(latency.p50),
            duration(latency.p99)
        );
    }
    let Some(latency) = side.latency.as_ref().filter(|_| side.operations > 0) else {
        return "No operation completed.".to_owned();
    };
    format!(
        "{} operations per second, {} MiB/s; half of them within {}, 99 of 100 within {}.",
        rate(side.iops),
        mebibytes(side.bytes_per_second),
        duration(latency.p50),
        duration(latency.p99)
    )
}

/// The syncs and what became of them.
fn flushes(document: &RunDocument) -> Option<String> {
    let total = &document.total;
    if total.sync.ios == 0 {
        return (total.write.ios > 0).then(|| {
            let durable = document
                .spans
                .iter()
                .flat_map(|span| &span.jobs)
                .any(|job| job.durable_write_every.is_some());
            match durable {
                true => String::new(),
                false => "No flush was asked for: the writes were acknowledged, not made durable.".to_owned(),
            }
        });
    }
    let handed = total.storage.as_ref().and_then(|storage| storage.flushes);
    Some(match handed {
        Some(handed) => {
            format!("{} syncs were seen as {} flushes at the devices.", count(total.sync.ios), count(handed))
        }
        None => format!("{} syncs; flushes at the devices were not counted.", count(total.sync.ios)),
    })
}
