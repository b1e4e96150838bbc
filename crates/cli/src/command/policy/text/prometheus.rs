//! Prometheus' text format: what [`Watcher::metrics`] says of disks, and beside it what does not change from look to look.

use std::fmt::Write as _;

use plumb_path::Severity;
use plumb_policy::state::Found;
use plumb_policy::view::{DeviceView, PolicyDocument};
use plumb_policy::watch::Watcher;
use plumb_report::wording;

use super::words;

/// The metrics of one look.
pub(in super::super) fn of(document: &PolicyDocument) -> String {
    let mut watcher = Watcher::new();
    // The first look finds no changes.
    let changes = watcher.look(document.clone());
    debug_assert!(changes.is_empty());
    watcher.metrics() + &beside_the_watch(document)
}

/// The families that a watcher does not have.
pub(in super::super) fn beside_the_watch(document: &PolicyDocument) -> String {
    let mut metrics = Metrics::default();
    let views = &document.devices;
    metrics.family("plumb_policy_disk_info", "What the disk is; always 1.");
    for view in views {
        let model = view.model.as_deref().unwrap_or_default();
        metrics.sample(
            "plumb_policy_disk_info",
            view,
            &[("model", model), ("transport", &view.transport)],
            1.0,
        );
    }
    metrics.family("plumb_policy_state", "The state of the write cache: 1 for the one that it is in.");
    for view in views {
        for state in [Found::Off, Found::On, Found::Protected, Found::None, Found::Unknown] {
            let is_so = f64::from(view.state == state);
            metrics.sample("plumb_policy_state", view, &[("state", state.word())], is_so);
        }
    }
    metrics.family("plumb_policy_kernel_fua", "The kernel sends FUA.");
    for (view, fua) in views.iter().filter_map(|view| Some((view, view.kernel.fua?))) {
        metrics.sample("plumb_policy_kernel_fua", view, &[], f64::from(fua));
    }
    metrics.family("plumb_policy_changeable", "plumb can change the write cache.");
    for view in views {
        metrics.sample("plumb_policy_changeable", view, &[], f64::from(view.refusal.is_none()));
    }
    metrics.family(
        "plumb_policy_protection_rung",
        "How good the claim of protection is: 1 is best of 5, 0 is none.",
    );
    for view in views {
        let rung = view.protection.as_ref().map_or(0, |protection| words::rung(protection.rank));
        metrics.sample("plumb_policy_protection_rung", view, &[], f64::from(rung));
    }
    metrics.family(
        "plumb_policy_health",
        "Counters of the drive: shutdowns without warning, what protects the cache.",
    );
    for view in views {
        for counter in &view.health {
            metrics.sample("plumb_policy_health", view, &[("counter", &counter.name)], counter.value as f64);
        }
    }
    metrics.family("plumb_policy_finding", "One for each finding.");
    for view in views {
        let mut seen: Vec<(&str, Severity)> = Vec::new();
        for finding in &view.findings {
            let one = (finding.id.as_str(), finding.severity);
            if !seen.contains(&one) {
                seen.push(one);
                let labels = [("id", one.0), ("severity", wording::severity(one.1))];
                metrics.sample("plumb_policy_finding", view, &labels, 1.0);
            }
        }
    }
    metrics.text
}

#[derive(Debug, Default)]
struct Metrics {
    text: String,
}

impl Metrics {
    fn family(&mut self, name: &str, help: &str) {
        // Writing to a String cannot fail.
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge").ok();
    }

    fn sample(&mut self, name: &str, view: &DeviceView, more: &[(&str, &str)], value: f64) {
        let identity = view.identity.as_deref().unwrap_or_default();
        let labels = [("disk", view.name.as_str()), ("identity", identity)];
        let labels = labels.iter().chain(more).map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        writeln!(self.text, "{name}{{{}}} {value}", labels.collect::<Vec<_>>().join(",")).ok();
    }
}

/// A label's value: backslash, quote and line feed escaped, as the format asks.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
