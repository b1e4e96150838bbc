//! Watching for drift: most changes of a write cache cause no kernel event, so disks are read repeatedly.
//!
//! [`Watcher::look`] is a pure step from one reading to the next. It returns the changes as lines for a log,
//! and counts them for [`Watcher::metrics`]. Disks are recognised by their identity, so one that returns
//! under another name is the same, and another disk under an old name is not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics;
use crate::state::on_off;
use crate::time_text::now_text;
use crate::view::{DeviceView, PolicyDocument};

/// A change since the last reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Time of detection: RFC 3339. The change happened since the previous reading.
    pub at: String,
    /// Present or last name of the disk.
    pub name: String,
    /// Identity of the disk.
    pub identity: Option<String>,
    /// Description of the change.
    pub what: String,
}

/// State of the disks between readings.
#[derive(Debug, Clone, Default)]
pub struct Watcher {
    disks: BTreeMap<String, DeviceView>,
    changes: BTreeMap<String, u64>,
    looks: u64,
}

impl Watcher {
    /// Creates a watcher without earlier readings: the first one yields no changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares a reading with the previous one.
    pub fn look(&mut self, document: PolicyDocument) -> Vec<Change> {
        let now: BTreeMap<String, DeviceView> =
            document.devices.into_iter().map(|view| (key(&view), view)).collect();
        let mut found: Vec<Change> = Vec::new();
        if self.looks > 0 {
            let gone = self.disks.iter().filter(|(key, _)| !now.contains_key(*key));
            found.extend(gone.map(|(_, view)| change(view, "it is gone".to_owned())));
            for (key, view) in &now {
                match self.disks.get(key) {
                    None => found
                        .push(change(view, format!("it has appeared, with its cache {}", view.state.word()))),
                    Some(before) => {
                        found.extend(differences(before, view).into_iter().map(|what| change(view, what)));
                    }
                }
            }
        }
        for change in &found {
            let disk = change.identity.clone().unwrap_or_else(|| change.name.clone());
            *self.changes.entry(disk).or_insert(0) += 1;
        }
        self.disks = now;
        self.looks += 1;
        found
    }

    /// Returns the present state and the number of changes in Prometheus text format.
    pub fn metrics(&self) -> String {
        let disks: Vec<&DeviceView> = self.disks.values().collect();
        let changes = |view: &DeviceView| {
            let disk = view.identity.as_ref().unwrap_or(&view.name);
            self.changes.get(disk).copied().unwrap_or(0)
        };
        metrics::text(&disks, &changes, self.looks)
    }
}

fn key(view: &DeviceView) -> String {
    // Two paths to one disk have the same identity, so the name distinguishes them.
    match &view.identity {
        Some(identity) => format!("{identity} {}", view.port),
        None => view.name.clone(),
    }
}

fn change(view: &DeviceView, what: String) -> Change {
    Change { at: now_text(), name: view.name.clone(), identity: view.identity.clone(), what }
}

/// Returns the differences between two readings of one disk, one line each.
pub fn differences(before: &DeviceView, after: &DeviceView) -> Vec<String> {
    let on_off = |value| on_off(value, "unknown").to_owned();
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut lines = Vec::new();
    let mut compare = |what: &str, before: String, after: String| {
        if before != after {
            lines.push(format!("{what}: {before} before, {after} now"));
        }
    };
    compare("its name", before.name.clone(), after.name.clone());
    compare("the write cache of the device", on_off(before.device.wce), on_off(after.device.wce));
    compare("what the device starts with", on_off(before.device.saved), on_off(after.device.saved));
    compare("SCT", text(&before.device.sct), text(&after.device.sct));
    compare("queue/write_cache", text(&before.kernel.write_cache), text(&after.kernel.write_cache));
    compare("cache_type", text(&before.kernel.cache_type), text(&after.kernel.cache_type));
    compare("the state", before.state.word().to_owned(), after.state.word().to_owned());
    for holder in &after.holders {
        let was = before.holders.iter().find(|other| other.name == holder.name);
        if let Some(was) = was {
            compare(
                &format!("queue/write_cache of {}", holder.name),
                text(&was.write_cache),
                text(&holder.write_cache),
            );
        }
    }
    let ids = |view: &DeviceView| -> Vec<String> {
        view.findings.iter().map(|finding| finding.id.clone()).collect()
    };
    let (old, new) = (ids(before), ids(after));
    let appeared = after.findings.iter().filter(|finding| !old.contains(&finding.id));
    lines.extend(appeared.map(|finding| format!("new finding {}: {}", finding.id, finding.sentence)));
    lines.extend(old.iter().filter(|id| !new.contains(id)).map(|id| format!("finding {id} is gone")));
    for counter in &after.health {
        let was = before.health.iter().find(|other| other.name == counter.name);
        if let Some(was) = was.filter(|was| was.value != counter.value) {
            lines.push(format!("{}: {} before, {} now", counter.name, was.value, counter.value));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::FoundState;
    use crate::view::tests::sample as disk;

    fn document(devices: Vec<DeviceView>) -> PolicyDocument {
        PolicyDocument { schema: PolicyDocument::SCHEMA.into(), kernel: None, devices }
    }

    #[test]
    fn changes_are_told_once_and_counted() {
        let mut watcher = Watcher::new();
        assert!(
            watcher.look(document(vec![disk("sda"), disk("sdb")])).is_empty(),
            "there is nothing to compare with"
        );
        assert!(watcher.look(document(vec![disk("sda"), disk("sdb")])).is_empty());

        let mut drifted = disk("sda");
        drifted.kernel.write_cache = Some("write through".into());
        drifted.state = FoundState::Protected;
        let mut renamed = disk("sdb");
        renamed.name = "sdc".into();
        let seen = watcher.look(document(vec![drifted.clone(), renamed.clone()]));
        let lines: Vec<String> =
            seen.iter().map(|change| format!("{} {}", change.name, change.what)).collect();
        assert_eq!(
            lines,
            [
                "sda queue/write_cache: write back before, write through now",
                "sda the state: on before, protected now",
                "sdc its name: sdb before, sdc now",
            ]
        );
        assert!(watcher.look(document(vec![drifted.clone(), renamed])).is_empty());
        let seen = watcher.look(document(vec![drifted, disk("sdd")]));
        let lines: Vec<&str> = seen.iter().map(|change| change.what.as_str()).collect();
        assert_eq!(lines, ["it is gone", "it has appeared, with its cache on"]);

        let metrics = watcher.metrics();
        for line in [
            "plumb_policy_changes_total{disk=\"sda\",identity=\"naa.sda\"} 2",
            "plumb_policy_write_cache_enabled{disk=\"sda\",identity=\"naa.sda\"} 1",
            "plumb_policy_flushes_sent{disk=\"sda\",identity=\"naa.sda\"} 0",
            "plumb_policy_looks_total 5",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
        }
        assert!(!metrics.contains("sdb"), "{metrics}");
    }

    #[test]
    fn what_is_unknown_has_no_sample_and_labels_are_escaped() {
        let mut watcher = Watcher::new();
        let mut view = disk("sd\"a");
        view.device.wce = None;
        watcher.look(document(vec![view]));
        let metrics = watcher.metrics();
        assert!(!metrics.contains("enabled{"), "{metrics}");
        assert!(metrics.contains("disk=\"sd\\\"a\""), "{metrics}");
    }
}
