//! Metrics of disks in Prometheus text format. Unknown values have no sample.

use plumb_path::Severity;
use plumb_path::metrics::Metrics;

use crate::state::FoundState;
use crate::verify::DiskDrift;
use crate::view::DeviceView;

/// Labels in addition to the disk and its identity, and the value.
type Sample<'a> = (Vec<(&'static str, &'a str)>, f64);

/// Formats the metrics of `views`: the present state, and the number of changes during `looks` readings.
pub(crate) fn text(views: &[&DeviceView], changes: &dyn Fn(&DeviceView) -> u64, looks: u64) -> String {
    let mut out = Metrics::default();
    let mut family = |name: &str, help: &str, samples: &dyn for<'a> Fn(&'a DeviceView) -> Vec<Sample<'a>>| {
        let all = views.iter().flat_map(|view| {
            let own = [("disk", &*view.name), ("identity", view.identity.as_deref().unwrap_or_default())];
            samples(view).into_iter().map(move |(more, value)| ([&own, &*more].concat(), value))
        });
        out.family(name, help, all);
    };
    let has_cache = |view: &DeviceView| view.state != FoundState::None;
    family(
        "plumb_policy_write_cache_enabled",
        "The drive says that its volatile write cache is on.",
        &|view| one(view.device.wce.filter(|_| has_cache(view)).map(f64::from)),
    );
    family(
        "plumb_policy_flushes_sent",
        "The kernel believes in a volatile cache and sends flushes.",
        &|view| {
            let says = view.kernel.write_cache.as_deref().filter(|_| has_cache(view));
            one(says.map(|says| f64::from(says == "write back")))
        },
    );
    family("plumb_policy_findings", "Findings of severity warning or danger.", &|view| {
        one(Some(view.findings.iter().filter(|finding| finding.severity > Severity::Info).count() as f64))
    });
    family("plumb_policy_changes_total", "Changes seen since the watch began.", &|view| {
        one(Some(changes(view) as f64))
    });
    family("plumb_policy_disk_info", "What the disk is; always 1.", &|view| {
        let model = view.model.as_deref().unwrap_or_default();
        vec![(vec![("model", model), ("transport", &view.transport)], 1.0)]
    });
    family("plumb_policy_state", "The state of the write cache: 1 for the one that it is in.", &|view| {
        let states =
            [FoundState::Off, FoundState::On, FoundState::Protected, FoundState::None, FoundState::Unknown];
        states.map(|state| (vec![("state", state.word())], f64::from(view.state == state))).to_vec()
    });
    family("plumb_policy_kernel_fua", "The kernel sends FUA.", &|view| one(view.kernel.fua.map(f64::from)));
    family("plumb_policy_changeable", "plumb can change the write cache.", &|view| {
        one(Some(f64::from(view.refusal.is_none())))
    });
    family(
        "plumb_policy_protection_rung",
        "How good the claim of protection is: 1 is best of 5, 0 is none.",
        &|view| one(Some(view.protection.as_ref().map_or(0.0, |protection| protection.rank.number().into()))),
    );
    family(
        "plumb_policy_health",
        "Counters of the drive: shutdowns without warning, what protects the cache.",
        &|view| {
            let counters = view.health.iter();
            counters.map(|counter| (vec![("counter", &*counter.name)], counter.value as f64)).collect()
        },
    );
    family("plumb_policy_finding", "One for each finding.", &|view| {
        let mut seen: Vec<Sample<'_>> = Vec::new();
        for finding in &view.findings {
            let sample = (vec![("id", &*finding.id), ("severity", finding.severity.word())], 1.0);
            if !seen.contains(&sample) {
                seen.push(sample);
            }
        }
        seen
    });
    out.family("plumb_policy_looks_total", "Scans of the disks.", [([], looks as f64)]);
    out.into_text()
}

/// Formats the drift of each disk of a plan.
pub(crate) fn drift(disks: &[DiskDrift]) -> String {
    let asked: Vec<_> = disks.iter().map(|disk| disk.asked.to_string()).collect();
    let drifts = disks.iter().zip(&asked).map(|(disk, asked)| {
        let now = disk.name_now.as_ref().unwrap_or(&disk.name);
        let labels = [("disk", &**now), ("identity", &disk.identity), ("asked", asked)];
        (labels, disk.drift.len() as f64)
    });
    let mut out = Metrics::default();
    let help = "Differences between a disk and what was planned: 0 is as planned.";
    out.family("plumb_policy_drift", help, drifts);
    out.into_text()
}

/// Returns a sample without further labels, if the value is known.
fn one<'a>(value: Option<f64>) -> Vec<Sample<'a>> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}
