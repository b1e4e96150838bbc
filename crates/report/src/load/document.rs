//! The document behind `plumb load --json`, and all that a report of a load is made from.

use std::collections::HashMap;

use plumb_measure::Latency;
use plumb_path::Finding;
use serde::{Deserialize, Serialize};

use super::sides::Sides;
use super::span::{LoadJob, LoadSpan};

/// All that a load learnt.
///
/// `targets` and `total` stand at the top for every run. Spans run one after the other: with several, `targets` are
/// those of the first span, then of the next; counts in `total` are those of all, and its rates are over the sum of
/// their windows. What belongs to one span alone is in `spans`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadDocument {
    /// Always [`LoadDocument::SCHEMA`].
    pub schema: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// Seconds that were measured, all spans together.
    pub duration: f64,
    /// Whether everything ran to its end.
    pub complete: bool,
    /// Why it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_because: Option<String>,
    /// Whether it ended because something failed that should not.
    #[serde(default)]
    pub failed: bool,
    /// Each target of each job.
    pub targets: Vec<LoadTarget>,
    /// All targets together.
    pub total: Sides,
    /// What ran at the same time, in order; at least one.
    pub spans: Vec<LoadSpan>,
    /// The transactions of an application; null for a load of operations alone.
    pub transactions: Option<Transactions>,
    /// By how much a latency may be too long, in seconds; null if that was not measured.
    pub latency_resolution_seconds: Option<f64>,
    /// Of how many operations the latency may be longer than that, because the completions they were waited for with came
    /// late: by 4 ms at most.
    pub latencies_late: u64,
    /// How latencies are taken, and which way they err.
    pub latency_resolution: String,
    /// What is worth saying beside the figures.
    pub notes: Vec<String>,
    /// What was asked for, in plumb's own language (TOML): it can be run again.
    pub workload: String,
    /// What is wrong or worth knowing.
    pub verdicts: Vec<Finding>,
    /// Where all this was measured.
    pub environment: LoadEnvironment,
    /// Where the recording is; null if it is not kept.
    pub run_directory: Option<String>,
}

/// What an application did, transaction by transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// How many completed.
    pub count: u64,
    /// Per second.
    pub per_second: f64,
    /// Syncs for each; null if none completed.
    pub syncs_each: Option<f64>,
    /// From the start of one to its end; null if none completed.
    pub latency: Option<Latency>,
    /// The calls that they are made of.
    pub calls: Vec<CallLatency>,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallLatency {
    /// Which: `fsync`, `rename`.
    pub name: String,
    /// How long they took.
    pub latency: Latency,
}

/// One target of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadTarget {
    /// As typed.
    pub name: String,
    /// What was opened: an absolute path, or a scheme.
    pub opened: String,
    /// Its place in `spans`.
    pub span: usize,
    /// Its job's place in the `jobs` of that span.
    pub job: usize,
    /// How large it is.
    pub size: u64,
    /// Bytes of the range that was touched.
    pub range_bytes: u64,
    /// How requests reached the kernel: `io_uring`, `pread/pwrite`, `mmap`.
    pub engine: String,
    /// Why not by io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_because: Option<String>,
    /// What the device says about itself.
    pub device: DeviceFacts,
    /// What was asked of it, and what became of that.
    #[serde(flatten)]
    pub sides: Sides,
}

/// What a device says about itself. Each null is: it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Whether it has a volatile write cache that is on.
    pub volatile_cache: Option<bool>,
    /// Whether it has FUA of its own.
    pub fua_native: Option<bool>,
    /// The time of one turn, in seconds, if the drive itself states that it turns.
    pub revolution_seconds: Option<f64>,
}

/// Where and how a load ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadEnvironment {
    /// plumb's own version.
    pub plumb: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The host's name.
    pub host: Option<String>,
    /// Online processors.
    pub cpus: u32,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
}

impl LoadEnvironment {
    /// The facts beside the targets in the head of a report.
    pub(crate) fn masthead(&self) -> Vec<String> {
        crate::figures::masthead(self.host.as_deref(), self.kernel.as_deref(), &self.started_at)
    }
}

impl LoadDocument {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/load/1";

    /// What is true of every latency here.
    pub const LATENCY_RESOLUTION: &str = "One reading of the clock serves a batch of completions and is taken after \
        they were reaped: latencies are never too short, and too long by at most the time since the queue was last \
        looked at.";

    /// The job of `target`; `None` if the document names one that is not there.
    pub fn job_of(&self, target: &LoadTarget) -> Option<&LoadJob> {
        self.spans.get(target.span)?.jobs.get(target.job)
    }

    /// What is shown as a sum beside the targets: of each span that has several, with what to call it. Spans run one
    /// after the other, so that a sum over several of them would be a mean of unlike things.
    pub(crate) fn sums(&self) -> Vec<(String, &Sides)> {
        let several = |span: usize| self.targets.iter().filter(|target| target.span == span).nth(1).is_some();
        let spans = self.spans.iter().enumerate().filter(|(index, _)| several(*index));
        spans
            .map(|(index, span)| match self.spans.len() {
                1 => ("all".to_owned(), &self.total),
                _ => (format!("all of span {}", index + 1), &span.total),
            })
            .collect()
    }

    /// For each target whether another one of its span is on devices of it, so that what these moved is of both.
    pub fn sharing(&self) -> Vec<bool> {
        let mut on: HashMap<(usize, &str), usize> = HashMap::new();
        for target in &self.targets {
            for device in devices_of(target) {
                *on.entry((target.span, device)).or_default() += 1;
            }
        }
        let shares = |target: &LoadTarget| {
            devices_of(target).any(|device| on.get(&(target.span, device)).is_some_and(|count| *count > 1))
        };
        self.targets.iter().map(shares).collect()
    }

    /// What to call each target, so that no two are called the same: its name, with its job and its span where the name
    /// alone is not enough.
    pub fn labels(&self) -> Vec<String> {
        let mut alike: HashMap<&str, usize> = HashMap::new();
        for target in &self.targets {
            *alike.entry(&target.name).or_default() += 1;
        }
        let mut twins: HashMap<(&str, usize, usize), usize> = HashMap::new();
        let mut labels = Vec::new();
        for target in &self.targets {
            let name = target.name.as_str();
            let mut label = name.to_owned();
            if alike.get(name) != Some(&1) {
                label.push_str(&self.place_of(target));
                let twin = twins.entry((name, target.span, target.job)).or_default();
                *twin += 1;
                if *twin > 1 {
                    label.push_str(&format!(" ({twin})"));
                }
            }
            labels.push(label);
        }
        labels
    }

    /// What tells a target from others of its name: its job, and its span if there are several.
    fn place_of(&self, target: &LoadTarget) -> String {
        let job = self.job_of(target).filter(|job| job.name != target.name && !job.name.is_empty());
        let job = job.map_or_else(String::new, |job| format!(", {}", job.name));
        match self.spans.len() {
            0 | 1 => job,
            _ => format!("{job}, span {}", target.span + 1),
        }
    }

    /// What to call the target at `index`: one of the [`labels`](Self::labels).
    pub fn label_of(&self, index: usize) -> String {
        self.labels().into_iter().nth(index).unwrap_or_else(|| format!("target {index}"))
    }
}

/// The names of the devices beneath a target.
fn devices_of(target: &LoadTarget) -> impl Iterator<Item = &str> {
    target.sides.storage.iter().flat_map(|side| side.devices.iter().map(|device| device.name.as_str()))
}

#[cfg(test)]
mod tests {
    use crate::fixture;

    #[test]
    fn no_two_targets_are_called_the_same() {
        let mut document = fixture::load("cache-or-disk");
        assert_eq!(document.label_of(0), "/srv/io.dat, read-cached, span 1");
        document.targets[1].job = 0;
        let labels: Vec<String> = (0..4).map(|index| document.label_of(index)).collect();
        assert_eq!(labels[1], "/srv/io.dat, read-cached, span 1 (2)");
        assert_eq!(fixture::load("side-by-side").label_of(1), "/mnt/plain/io.dat");
    }

    #[test]
    fn targets_of_one_span_on_one_device_share_it() {
        let mut document = fixture::load("cache-or-disk");
        assert_eq!(document.sharing(), [true; 4]);
        document.targets.remove(0);
        assert_eq!(document.sharing(), [false, true, true], "the first is alone in its span now");
        assert!(!fixture::load("side-by-side").sharing().contains(&true));
    }

    #[test]
    fn sums_are_of_targets_that_ran_at_the_same_time() {
        let names = |name: &str| -> Vec<String> {
            fixture::load(name).sums().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names("cache-or-disk"), ["all of span 1", "all of span 2"]);
        assert_eq!(names("side-by-side"), ["all"]);
        assert_eq!(names("all-wrong"), [""; 0]);
    }
}
