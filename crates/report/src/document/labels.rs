//! Labels of targets in reports, and the choice of those shown as a sum.

use std::collections::HashMap;

use super::run::{RunDocument, RunTarget};
use super::sides::Sides;

impl RunDocument {
    /// Returns the sums to show with the targets: one for each span with several targets, and its label.
    /// There is no sum over several spans, since they ran one after another.
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

    /// Returns for each target whether it shares a device with another one of its span, so that the device's
    /// traffic belongs to both.
    pub fn sharing(&self) -> Vec<bool> {
        let mut on: HashMap<(usize, &str), usize> = HashMap::new();
        for target in &self.targets {
            for device in devices_of(target) {
                *on.entry((target.span, device)).or_default() += 1;
            }
        }
        let shares = |target: &RunTarget| {
            devices_of(target).any(|device| on.get(&(target.span, device)).is_some_and(|count| *count > 1))
        };
        self.targets.iter().map(shares).collect()
    }

    /// Returns a unique label for each target: its name, with its job and its span where the name is
    /// ambiguous. All phases of a check have one target, so they are named by their jobs.
    pub fn labels(&self) -> Vec<String> {
        let mut alike: HashMap<&str, usize> = HashMap::new();
        for target in &self.targets {
            *alike.entry(&target.name).or_default() += 1;
        }
        let mut twins: HashMap<(&str, usize, usize), usize> = HashMap::new();
        let mut labels = Vec::new();
        for target in &self.targets {
            if let (true, Some(job)) = (self.is_check(), self.job_of(target)) {
                labels.push(job.name.clone());
                continue;
            }
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

    /// Returns the text that distinguishes a target from others with its name: its job, and its span if there
    /// are several.
    fn place_of(&self, target: &RunTarget) -> String {
        let job = self.job_of(target).filter(|job| job.name != target.name && !job.name.is_empty());
        let job = job.map_or_else(String::new, |job| format!(", {}", job.name));
        match self.spans.len() {
            0 | 1 => job,
            _ => format!("{job}, span {}", target.span.saturating_add(1)),
        }
    }

    /// Returns the label of the target at `index`: one of the [`labels`](Self::labels).
    pub fn label_of(&self, index: usize) -> String {
        self.labels().into_iter().nth(index).unwrap_or_else(|| format!("target {index}"))
    }

    /// Returns the names given on the command line, each name once.
    pub fn names(&self) -> Vec<&str> {
        if !self.target.is_empty() {
            return vec![&self.target];
        }
        let mut names: Vec<&str> = Vec::new();
        for target in &self.targets {
            if !names.contains(&target.name.as_str()) {
                names.push(&target.name);
            }
        }
        names
    }
}

/// Returns the names of the devices below a target.
fn devices_of(target: &RunTarget) -> impl Iterator<Item = &str> {
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
