//! Search for targets of a span on the same devices, since the counters of a device do not distinguish the
//! targets of requests.

use std::collections::{BTreeMap, HashSet};

/// Maximum number of names listed; the others are counted.
const LISTED: usize = 3;

/// Target of a span.
pub(crate) struct Sharer<'a> {
    /// Number of the span.
    pub(crate) span: usize,
    /// Index of the storage below the target.
    pub(crate) beneath: usize,
    /// Name of the target.
    pub(crate) shown: &'a str,
    /// Names of the devices counted for the target.
    pub(crate) devices: &'a [String],
}

/// Returns the spans and storage indices whose counters cover several targets, and remarks on these: once for
/// each device, and once for devices shared by the same targets.
pub(crate) fn find_shared(targets: &[Sharer<'_>]) -> (HashSet<(usize, usize)>, Vec<String>) {
    let mut on: BTreeMap<(usize, &str), Vec<&Sharer<'_>>> = BTreeMap::new();
    for one in targets {
        for device in one.devices {
            on.entry((one.span, device)).or_default().push(one);
        }
    }
    on.retain(|_, uses| uses.len() > 1);
    let shared =
        on.iter().flat_map(|((span, _), uses)| uses.iter().map(|one| (*span, one.beneath))).collect();
    let mut by_uses: BTreeMap<(usize, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((span, device), uses) in &on {
        let names = uses.iter().map(|one| one.shown).collect();
        by_uses.entry((*span, names)).or_default().push(device);
    }
    let several_spans = targets.windows(2).any(|pair| pair[0].span != pair[1].span);
    let said = by_uses.iter().map(|((span, names), devices)| {
        let span = if several_spans { format!("span {}: ", span + 1) } else { String::new() };
        format!("{span}{}", sentence(names, devices))
    });
    (shared, said.collect())
}

fn sentence(names: &[&str], devices: &[&str]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    distinct.extend(names.iter().filter(|name| seen.insert(**name)));
    let who = match distinct[..] {
        [one] => format!("{} jobs work on {one}, on", names.len()),
        ref listed if listed.len() <= LISTED => format!("{} share", listed.join(", ")),
        _ => format!("{} and {} more share", distinct[..LISTED].join(", "), distinct.len() - LISTED),
    };
    format!("{who} {}: what the device counted is of all of them together", devices.join(", "))
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn names_are_listed_or_counted() {
        let all = "what the device counted is of all of them together";
        assert_eq!(sentence(&["a", "b"], &["vda"]), format!("a, b share vda: {all}"));
        assert_eq!(sentence(&["a", "a"], &["vda"]), format!("2 jobs work on a, on vda: {all}"));
        let many = ["a", "b", "c", "d", "e"];
        assert_eq!(sentence(&many, &["sda", "sdb"]), format!("a, b, c and 2 more share sda, sdb: {all}"));
    }
}
