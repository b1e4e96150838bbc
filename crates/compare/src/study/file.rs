//! Studies as data: a TOML file for each field report, with everything that is run and every row that is
//! printed.
//!
//! ```text
//! name, title, source, finding      the field report
//! answer, notes                     texts for simulated drives; with `_real` for a target of this machine
//! [names], [states]                 parts of targets that several runs share; options that put a simulated drive into a state
//! [[run]]                           one measurement: its name, where it applies, what it does
//! [[group]], [[group.row]]          a question with its rows: the reported value, ours as a product of figures, the reason
//! [[series]]                        a line of a chart
//! ```
//!
//! A run is started by the first row or text that names one of its figures, and only once. `RUN@STATE` is a
//! run with the drive in one of the `[states]`. A key `chosen` holds choices that the field report does not
//! determine: they are printed beside each row that depends on them. A key `on` names the places where
//! something applies; without it, that is everywhere. Unknown keys are refused.

use std::collections::BTreeMap;

use plumb_report::document::study::{ExpectedRange, StudyUnit};
use serde::{Deserialize, Serialize};

use crate::host::object_store::StoreLoad;
use crate::host::simulated_files::{HostName, Passes};

/// Name and text of each study that ships with the program, in the order in which they run.
pub(super) const SHIPPED: [(&str, &str); 5] = [
    ("A", include_str!("../../studies/a.toml")),
    ("B", include_str!("../../studies/b.toml")),
    ("C", include_str!("../../studies/c.toml")),
    ("D", include_str!("../../studies/d.toml")),
    ("E", include_str!("../../studies/e.toml")),
];

/// Contents of a study's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyFile {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) finding: String,
    pub(super) answer: String,
    pub(super) answer_real: String,
    pub(super) notes: Vec<String>,
    pub(super) notes_real: Vec<String>,
    #[serde(default)]
    pub(super) names: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) states: BTreeMap<String, String>,
    pub(super) run: Vec<Run>,
    pub(super) group: Vec<Group>,
    #[serde(default)]
    pub(super) series: Vec<Series>,
}

/// Place where a study runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    Simulated,
    /// A target of this machine whose drive stays in its state.
    AsIs,
    /// A target of this machine whose drive is put into other states.
    Switched,
}

/// A measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    pub(super) name: String,
    #[serde(default)]
    pub(super) on: Vec<Place>,
    /// Kind of real target, or option, that the run requires.
    pub(super) needs: Option<Needs>,
    /// Choices that the rows print beside those of the experiment.
    #[serde(default)]
    pub(super) chosen: String,
    pub(super) does: Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Needs {
    File,
    Device,
    Directory,
    /// `--cache-log`.
    Cache,
    /// `--switch`.
    Policy,
}

/// Experiment of a run. Sizes and times carry their unit in the key.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Work {
    Load(Load),
    Compare(Compare),
    Profile(Profile),
    Passes(Passes),
    ObjectStore(Osd),
    LiveSwitch(LiveSwitch),
}

/// A load in plumb's own words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    pub(super) targets: Vec<String>,
    /// Words that follow from the field report.
    pub(super) words: String,
    /// Words that were chosen.
    pub(super) chosen: String,
    /// Size of the file that is created for the load on a real target.
    #[serde(default)]
    pub(super) file_mib: u64,
}

/// Two levels in interleaved blocks; the second is compared with the first. The levels are set on the machine
/// if the run requires that, and otherwise are two targets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    pub(super) factor: String,
    /// Name and target.
    pub(super) levels: [[String; 2]; 2],
    pub(super) words: String,
    pub(super) block_ms: u64,
    #[serde(default)]
    pub(super) file_mib: u64,
}

/// An application profile, on a simulated file system or in a directory of this machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) profile: String,
    pub(super) drive: String,
    pub(super) chosen: ProfileChoice,
    /// Limits on a real target.
    #[serde(default)]
    pub(super) real_seconds: u64,
    #[serde(default)]
    pub(super) real_scale: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileChoice {
    pub(super) transactions: u64,
    pub(super) threads: u32,
    /// Fraction of the profile's files to create.
    pub(super) scale: f64,
    pub(super) host: HostName,
    /// True if the prepared files are read from the drive, not from memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cold: bool,
}

/// A Ceph OSD on a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Osd {
    pub(super) drive: String,
    #[serde(default)]
    pub(super) file_mib: u64,
    pub(super) chosen: StoreLoad,
}

/// Random writes during which the drive's cache is switched off and on again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveSwitch {
    pub(super) drive: String,
    pub(super) block_kib: u64,
    pub(super) depth: u32,
}

/// Rows of one question. The keys of a group apply to each of its rows that does not override them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) question: String,
    pub(super) unit: StudyUnit,
    #[serde(default)]
    pub(super) on: Vec<Place>,
    /// Words that replace `$` in texts and figures: every row is repeated for each word.
    #[serde(default)]
    pub(super) each: Vec<String>,
    #[serde(default)]
    pub(super) why: String,
    pub(super) why_real: Option<String>,
    pub(super) row: Vec<Row>,
}

/// One figure.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Row {
    pub(super) figure: String,
    pub(super) on: Vec<Place>,
    pub(super) unit: Option<StudyUnit>,
    pub(super) reported: Option<f64>,
    pub(super) reported_at_least: bool,
    /// Reason why nothing was reported; by default, that readers ask the question.
    pub(super) unreported: Option<String>,
    /// Product of figures and numbers; if empty, the row gives the reason `unknown`.
    pub(super) ours: String,
    /// Reason if `ours` has no value.
    pub(super) unknown: Option<String>,
    /// Expectation, on simulated drives alone: the maximum factor between our value and the reported one, or
    /// a range.
    pub(super) factor: Option<f64>,
    pub(super) expected: Option<ExpectedRange>,
    pub(super) why: Option<String>,
    pub(super) why_real: Option<String>,
    pub(super) instead: Option<Instead>,
}

/// A reason for the case that a product is above another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Instead {
    /// First product; `None`: `ours` of the row.
    pub(super) of: Option<String>,
    pub(super) above: String,
    pub(super) why: String,
}

/// A line of a chart: operations per second of a target of a load.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Series {
    pub(super) chart: String,
    pub(super) name: String,
    pub(super) run: String,
    #[serde(default)]
    pub(super) target: usize,
    #[serde(default)]
    pub(super) on: Vec<Place>,
}

impl Place {
    /// Returns true if this is one of the places `on`; an empty list means all.
    pub(super) fn is_on(self, on: &[Self]) -> bool {
        on.is_empty() || on.contains(&self)
    }
}

impl StudyFile {
    /// Reads a study.
    ///
    /// # Errors
    /// If the text is malformed.
    pub(super) fn read(text: &str) -> Result<Self, toml::de::Error> {
        text.parse().and_then(toml::Table::try_into)
    }

    /// Returns the run with this name in `place`.
    pub(super) fn run(&self, name: &str, place: Place) -> Option<&Run> {
        self.run.iter().find(|run| place.is_on(&run.on) && run.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Place; 3] = [Place::Simulated, Place::AsIs, Place::Switched];

    /// Returns the figures of an experiment, as `experiment` names them.
    fn vocabulary(work: &Work) -> Vec<&'static str> {
        let fixed = match work {
            Work::Load(_) => {
                "application.iops application.bytes_per_second targets.0.application.iops \
                targets.1.application.iops write.bytes peak thirds.2 series.0.0.per_second \
                counts.operations counts.seconds counts.device_ios counts.sync_seconds"
            }
            Work::Compare(_) => "ratio.median first_over_later said",
            Work::Profile(_) => "per_second syncs_each latency.mean flushes synced_blocks_lost",
            Work::Passes(_) => {
                "dirty_bytes under_way_bytes counts.seconds counts.operations \
                counts.device_ios counts.device_bytes"
            }
            Work::ObjectStore(_) => {
                "syncs.mean syncs.std syncs.min syncs.p25 syncs.p50 syncs.p75 syncs.max \
                writes.mean counts.syncs counts.flushes counts.flush_seconds"
            }
            Work::LiveSwitch(_) => "failed longest.0 longest.1 longest.2",
        };
        fixed.split_whitespace().collect()
    }

    /// Returns the figures quoted in texts and products; for a cause the runs, without a figure.
    fn named(texts: &[&str], products: &[&str]) -> Vec<String> {
        let quotes = |text: &&str| -> Vec<String> {
            text.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0.to_owned())).collect()
        };
        let quoted: Vec<String> = texts.iter().flat_map(quotes).filter(|quoted| quoted != "on").collect();
        let of_quote = |quoted: &String| {
            let product = quoted.split_once('|').map_or(&**quoted, |(product, _)| product);
            match product.strip_prefix("cause: ") {
                Some(runs) => runs.split(" / ").map(|run| format!("{run}.")).collect::<Vec<_>>(),
                None => product.split_whitespace().map(str::to_owned).collect(),
            }
        };
        let words = products.iter().flat_map(|product| product.split_whitespace()).map(str::to_owned);
        quoted
            .iter()
            .flat_map(of_quote)
            .chain(words)
            .filter(|word| word.parse::<f64>().is_err() && !["*", "/", "-"].contains(&&**word))
            .collect()
    }

    fn check(study: &StudyFile, place: Place, figure: &str) {
        let (run, name) = figure.split_once('.').unwrap_or_else(|| panic!("{}: {figure}", study.name));
        let (run, state) = run.split_once('@').unwrap_or((run, ""));
        let found = study.run(run, place).unwrap_or_else(|| panic!("{}: no run for {figure}", study.name));
        let known = vocabulary(&found.does);
        assert!(name.is_empty() || known.contains(&name), "{}: {figure} is not in {known:?}", study.name);
        assert!(
            state.is_empty() || study.states.contains_key(state),
            "{}: {figure} names an unknown state",
            study.name
        );
    }

    #[test]
    fn every_row_and_text_names_runs_and_figures_that_exist() {
        for study in SHIPPED.map(|(_, text)| StudyFile::read(text).unwrap()) {
            for place in PLACES {
                let mut checked = 0;
                for group in study.group.iter().filter(|group| place.is_on(&group.on)) {
                    for row in group.row.iter().filter(|row| place.is_on(&row.on)) {
                        let why = row.why_real.as_ref().or(group.why_real.as_ref());
                        let why = why.filter(|_| place != Place::Simulated).or(row.why.as_ref());
                        let instead = row.instead.as_ref();
                        let texts = [&**why.unwrap_or(&group.why), instead.map_or("", |of| &of.why)];
                        let other = instead.map_or("", |of| &of.above);
                        let of = instead.and_then(|of| of.of.as_deref()).unwrap_or_default();
                        assert!(!row.ours.is_empty() || row.unknown.is_some(), "{}", row.figure);
                        let each = if group.each.is_empty() { &[String::new()][..] } else { &group.each };
                        for figure in named(&texts, &[&*row.ours, other, of]) {
                            each.iter().for_each(|word| check(&study, place, &figure.replace('$', word)));
                            checked += 1;
                        }
                    }
                }
                let (answer, notes) = match place {
                    Place::Simulated => (&study.answer, &study.notes),
                    _ => (&study.answer_real, &study.notes_real),
                };
                for text in std::iter::once(answer).chain(notes) {
                    named(&[text], &[]).iter().for_each(|figure| check(&study, place, figure));
                }
                for series in study.series.iter().filter(|series| place.is_on(&series.on)) {
                    check(&study, place, &format!("{}.application.iops", series.run));
                }
                assert!(checked >= 3, "{}: {checked}", study.name);
            }
        }
    }

    #[test]
    fn every_run_is_named_by_a_row() {
        for study in SHIPPED.map(|(_, text)| StudyFile::read(text).unwrap()) {
            let text = SHIPPED.iter().find(|(name, _)| *name == study.name).unwrap().1;
            for run in &study.run {
                let is_named = ['.', '@'].map(|after| text.contains(&format!("{}{after}", run.name)));
                assert!(is_named.contains(&true), "{}: nothing names {}", study.name, run.name);
            }
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let (_, text) = SHIPPED[3];
        let with = |from: &str, to: &str| StudyFile::read(&text.replacen(from, to, 1));
        assert!(with("", "").is_ok());
        for (from, to) in [
            ("source =", "colour = 1\nsource ="),
            ("[[run]]", "[[run]]\ncolour = 1"),
            ("deferred_batch", "colour = 1\ndeferred_batch"),
            ("file_mib", "colour = 1\nfile_mib"),
            ("reported =", "colour = 1\nreported ="),
            ("question =", "colour = 1\nquestion ="),
        ] {
            let error = with(from, to).unwrap_err().to_string();
            assert!(error.contains("colour"), "{to}: {error}");
        }
    }
}
