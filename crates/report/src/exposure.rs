//! Outline of the loss that a power cut would cause, for all formats. All text in it is printable.

use plumb_path::exposure::{ExposedPart, Exposure, Holder, ObservedExposure, PartKind};
use plumb_path::metrics::Metrics;
use plumb_text::printable;

use crate::outline::Item;
use crate::quantity::{bytes, count, duration, listed, or_dash};
use crate::terminal::Table;

/// Title of the section.
pub(crate) const TITLE: &str = "What a power cut takes now";
/// Maximum number of processes shown, and of processes with metrics.
const HOLDERS_MAX: usize = 12;
/// Maximum number of processes named in the sentence.
const NAMES_MAX: usize = 3;

/// Returns the loss in one sentence.
pub(crate) fn sentence(of: &Exposure) -> String {
    let amount = match (of.complete, of.bytes_min, of.bytes_max) {
        (true, _, 0) => "takes nothing that was acknowledged".to_owned(),
        (true, _, most) => format!("takes at most {}", size(most)),
        (false, 0, most) => format!("takes at most {} of what can be counted", size(most)),
        (false, least, _) => format!("takes at least {}", size(least)),
    };
    let from_memory = |part: &ExposedPart| matches!(part.kind, PartKind::Memory | PartKind::LoopFile);
    let is_from_memory = of
        .parts
        .iter()
        .filter(|part| part.bytes_max != Some(0))
        .all(|part| from_memory(part) || part.bytes_max.is_none());
    let whence = if is_from_memory && of.bytes_max > 0 { " from memory" } else { "" };
    let unknown: Vec<String> = of.parts.iter().filter(|part| part.bytes_max.is_none()).map(name).collect();
    let rest = match unknown.as_slice() {
        [] => String::new(),
        [one] => format!("; what {one} holds is unknown"),
        several => format!("; what {} hold is unknown", listed(several, "and")),
    };
    format!("A power cut now {amount}{whence}{}{rest}.", losers(&of.holders))
}

/// Returns the owners of the loss: `, of postgres and rsyslog`.
fn losers(holders: &[Holder]) -> String {
    let mut names: Vec<String> = Vec::new();
    for holder in holders {
        let name = printable(&holder.process);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    if names.is_empty() { String::new() } else { format!(", of {}", listed(&names, "and")) }
}

fn name(part: &ExposedPart) -> String {
    let layer = printable(&part.layer);
    if part.kind == PartKind::Journal { format!("the journal of {layer}") } else { layer }
}

fn size(of: u64) -> String {
    bytes(of as f64)
}

const fn what(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Memory => "page cache",
        PartKind::LoopFile => "page cache of the file behind it",
        PartKind::Journal => "journal",
        PartKind::Contents => "its contents",
        PartKind::Cache => "cache",
        PartKind::Drive => "drive's cache",
    }
}

/// Returns the parts of the loss, the affected processes, and the source of each figure.
pub(crate) fn items(of: &Exposure) -> Vec<Item> {
    let parts = Table::for_rows(&of.parts)
        .left("layer", |part| printable(&part.layer))
        .left("what", |part| what(part.kind))
        .right("at least", |part| {
            if part.bytes_max.is_none() && part.bytes_min == 0 {
                or_dash(None, size)
            } else {
                size(part.bytes_min)
            }
        })
        .right("at most", |part| part.bytes_max.map_or_else(|| "unknown".to_owned(), size))
        .right("survives", |part| or_dash(part.kept_bytes, size))
        .right("for at least", |part| or_dash(part.age_min, duration))
        .table();
    let mut items = vec![Item::Text(printable(&sentence(of)).into()), Item::Table(parts)];
    let shown = of.holders.iter().take(HOLDERS_MAX);
    let holders = Table::for_rows(shown)
        .left("process", |holder| printable(&holder.process))
        .right("", |holder| holder.pid.to_string())
        .right("in memory", |holder| size(holder.bytes))
        .right("shared", |holder| {
            if holder.shared_bytes > 0 { size(holder.shared_bytes) } else { or_dash(None, size) }
        })
        .left("file with most", |holder| printable(&holder.file));
    if !of.holders.is_empty() {
        items.push(Item::Table(holders.table()));
    }
    items.extend(lines(of).iter().map(|line| Item::Line(printable(line))));
    items
}

fn lines(of: &Exposure) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(more) = of.holders.len().checked_sub(HOLDERS_MAX).filter(|more| *more > 0) {
        lines.push(format!("{more} more processes are in the JSON document."));
    }
    if of.holders.iter().any(|holder| holder.shared_bytes > 0) {
        lines.push(
            "Shared: of files that other processes have open too; they count once in the total.".to_owned(),
        );
    }
    if let Some(most) = of.unheld_bytes_max {
        lines.push(format!(
            "Not attributed to a process: at most {}, of files that no process has open for writing, and of \
             the file system itself.",
            size(most)
        ));
    }
    lines.extend(of.holders_unknown_because.as_ref().map(|why| format!("Not all holders are known: {why}.")));
    for part in &of.parts {
        let unknown = part.bytes_max_unknown_because.as_ref().map(|why| format!("; unknown because {why}"));
        lines.push(format!("{}: {}{}.", name(part), part.because, unknown.unwrap_or_default()));
        lines.extend(part.age_min_unknown_because.as_ref().map(|why| format!("{}: {why}.", name(part))));
    }
    lines
}

/// Returns the observations of a watched path.
pub(crate) fn observed(of: &ObservedExposure, is_alone: bool) -> Vec<Item> {
    let peak = format!(
        "{} readings; the most that was counted at once was {}, {} after the first.",
        count(of.readings),
        size(of.bytes_max_peak),
        duration(of.peak_at)
    );
    let target = (!is_alone).then(|| Item::text(&of.target));
    target.into_iter().chain(items(&of.now)).chain([Item::Line(peak)]).collect()
}

/// Adds metrics of the loss on each target.
pub(crate) fn metrics<'a>(out: &mut Metrics, all: &[(&'a str, &'a Exposure)]) {
    let of_each =
        |value: fn(&Exposure) -> f64| all.iter().map(move |(target, of)| ([("target", *target)], value(of)));
    let help = "Most bytes that a power cut takes, of the parts for which that is known.";
    out.known("plumb_exposure_bytes_max", help, of_each(|of| of.bytes_max as f64));
    let help = "Bytes that are known to be in memory alone.";
    out.known("plumb_exposure_bytes_min", help, of_each(|of| of.bytes_min as f64));
    let help = "Whether all parts are known, so that their sum bounds the loss.";
    out.known("plumb_exposure_complete", help, of_each(|of| f64::from(of.complete)));
    let of_parts = |value: fn(&ExposedPart) -> Option<f64>| {
        let parts = all.iter().flat_map(|(target, of)| of.parts.iter().map(move |part| (*target, part)));
        parts.filter_map(move |(target, part)| {
            let labels = [("target", target), ("layer", &part.layer), ("part", what(part.kind))];
            Some((labels, value(part)?))
        })
    };
    let help = "The same of one part. What is not known has no sample.";
    let most = of_parts(|part| part.bytes_max.map(|most| most as f64));
    out.known("plumb_exposure_part_bytes_max", help, most);
    let help = "Seconds for which every reading found such data there.";
    out.known("plumb_exposure_part_age_seconds", help, of_parts(|part| part.age_min));
    let holders: Vec<_> = all
        .iter()
        .flat_map(|(target, of)| of.holders.iter().take(HOLDERS_MAX).map(move |holder| (target, holder)))
        .map(|(target, holder)| (*target, holder, holder.pid.to_string()))
        .collect();
    let held = holders.iter().map(|(target, holder, pid)| {
        let labels = [("target", *target), ("process", &holder.process), ("pid", pid)];
        (labels, holder.bytes as f64)
    });
    let help = "Bytes in memory of files that a process has open for writing; of the processes with most.";
    out.known("plumb_exposure_holder_bytes", help, held);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(layer: &str, kind: PartKind, least: u64, most: Option<u64>) -> ExposedPart {
        ExposedPart {
            layer: layer.to_owned(),
            kind,
            bytes_min: least,
            bytes_max: most,
            ..ExposedPart::default()
        }
    }

    fn exposure(parts: Vec<ExposedPart>, names: &[&str]) -> Exposure {
        let holder = |name: &&str| Holder { process: (*name).to_owned(), bytes: 1, ..Holder::default() };
        Exposure {
            bytes_max: parts.iter().filter_map(|part| part.bytes_max).sum(),
            bytes_min: parts.iter().map(|part| part.bytes_min).sum(),
            complete: parts.iter().all(|part| part.bytes_max.is_some()),
            holders: names.iter().map(holder).collect(),
            parts,
            ..Exposure::default()
        }
    }

    #[test]
    fn the_sentence_says_how_much_whose_and_what_is_not_known() {
        let memory = || part("ext4 /", PartKind::Memory, 412 << 20, Some(413 << 20));
        let (journal, drive) =
            (part("ext4 /", PartKind::Journal, 0, None), part("vda", PartKind::Drive, 0, None));
        let all = exposure(vec![memory(), journal, drive], &["postgres", "rsyslog", "postgres"]);
        assert_eq!(
            sentence(&all),
            "A power cut now takes at least 412 MiB from memory, of postgres and rsyslog; what the journal of ext4 / and vda hold is unknown."
        );
        let known = exposure(vec![memory(), part("vda", PartKind::Drive, 0, Some(0))], &["a", "b", "c", "d"]);
        assert_eq!(
            sentence(&known),
            "A power cut now takes at most 413 MiB from memory, of a, b, c and 1 more."
        );
        let nothing = exposure(vec![part("vda", PartKind::Drive, 0, Some(0))], &[]);
        assert_eq!(sentence(&nothing), "A power cut now takes nothing that was acknowledged.");
        let little = exposure(
            vec![part("x", PartKind::Memory, 0, Some(1 << 20)), part("y", PartKind::Drive, 0, None)],
            &[],
        );
        assert_eq!(
            sentence(&little),
            "A power cut now takes at most 1 MiB of what can be counted from memory; what y holds is unknown."
        );
    }
}
