//! Studies as data: a TOML file for each field report, with everything that is run and every row that is
//! printed.
//!
//! ```text
//! name, title, source, finding      the field report
//! [answer], [notes]                 texts, for simulated drives and for a target of this machine
//! [names], [states]                 parts of targets that several runs share; options that put a simulated drive into a state
//! [[run]]                           one measurement: its name, where it applies, what it does
//! [[group]], [[group.row]]          a question with its rows: the reported value, ours as a product of figures, the reason
//! [[series]]                        a line of a chart
//! ```
//!
//! A run is started by the first row or text that names one of its figures, and only once. `RUN@STATE` is a
//! run with the drive in one of the `[states]`. A key `chosen` holds what the field report does not tell: it
//! is printed beside each row that rests on it. Unknown keys are refused.

use std::collections::BTreeMap;

use plumb_report::document::study::StudyUnit;
use serde::{Deserialize, Serialize};

use crate::host::object_store::StoreLoad;

/// Name and text of each study that ships with the program.
const SHIPPED: [(&str, &str); 5] = [
    ("A", include_str!("../../studies/a.toml")),
    ("B", include_str!("../../studies/b.toml")),
    ("C", include_str!("../../studies/c.toml")),
    ("D", include_str!("../../studies/d.toml")),
    ("E", include_str!("../../studies/e.toml")),
];

/// Returns the names of the studies, in the order in which they run.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// A study as its file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyFile {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) finding: String,
    pub(super) answer: ByPlace<String>,
    pub(super) notes: ByPlace<Vec<String>>,
    #[serde(default)]
    pub(super) names: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) states: BTreeMap<String, String>,
    pub(super) run: Vec<Run>,
    pub(super) group: Vec<Group>,
    #[serde(default)]
    pub(super) series: Vec<Series>,
}

/// A text for simulated drives, and one for a target of this machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ByPlace<T> {
    pub(super) simulated: T,
    pub(super) real: T,
}

/// Where a run, a row or a series applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum On {
    #[default]
    Any,
    Simulated,
    /// A target of this machine.
    Real,
    /// A target of this machine whose drive stays in its state.
    AsIs,
    /// Simulated drives, and targets of this machine whose drive is put into other states.
    States,
}

/// Where a study runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) is_simulated: bool,
    /// True if the drive of a real target is put into other states.
    pub(super) switches: bool,
}

/// A measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    pub(super) name: String,
    #[serde(default)]
    pub(super) on: On,
    /// Kind of real target without which it cannot run.
    pub(super) needs: Option<Needs>,
    /// A further choice that the rows print.
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
    /// Words that follow from the field report, and words that were chosen.
    pub(super) words: String,
    pub(super) chosen: String,
    /// Size of a file that is made for it on a real target.
    #[serde(default)]
    pub(super) file_mib: u64,
    /// Seconds of a step of its series, and of its fullest step.
    #[serde(default = "half")]
    pub(super) step: f64,
    /// Further figures: mean rates from one second to another.
    #[serde(default)]
    pub(super) between: BTreeMap<String, [f64; 2]>,
}

fn half() -> f64 {
    0.5
}

/// Two levels in interleaved blocks; the second is compared with the first.
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
    /// Switch that puts the machine into the level; none where the target is enough.
    pub(super) set_by: Option<SetBy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SetBy {
    Policy,
    Cache,
}

/// An application profile, on a simulated file system or in a directory of this machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) profile: String,
    pub(super) drive: String,
    pub(super) chosen: ProfileChoice,
    #[serde(default)]
    pub(super) real: RealLimits,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileChoice {
    pub(super) transactions: u64,
    pub(super) threads: u32,
    /// Part of the profile's files that is made.
    pub(super) scale: f64,
    pub(super) host: HostName,
    /// True if what was prepared is read from the drive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cold: bool,
}

/// Limits of a profile on a real target.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RealLimits {
    pub(super) seconds: u64,
    pub(super) scale: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HostName {
    Server,
    #[serde(rename = "desktop-2002")]
    Desktop2002,
}

/// A file on a simulated file system: written, synced, then passed over call by call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Passes {
    pub(super) drive: String,
    pub(super) host: HostName,
    #[serde(default)]
    pub(super) cold: bool,
    pub(super) file_mib: u64,
    /// Length of the calls that write the file at first.
    pub(super) piece_kib: u64,
    pub(super) block_kib: u64,
    /// Requests that the field report had in flight.
    pub(super) depth: u32,
    /// Each has figures under its own name.
    pub(super) pass: Vec<Pass>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pass {
    pub(super) name: String,
    pub(super) write: bool,
    pub(super) chosen: PassChoice,
}

/// Random blocks for so many seconds, or each block once in steps of so many blocks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PassChoice {
    RandomSeconds(u64),
    EachOnceInSteps(u64),
}

/// A Ceph OSD on a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Osd {
    pub(super) drive: String,
    /// Seconds on a real target.
    pub(super) real_seconds: u64,
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

/// Rows of one question. Its keys hold for each row that does not say otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) question: String,
    pub(super) unit: StudyUnit,
    #[serde(default)]
    pub(super) on: On,
    /// Words of which each makes a row of every row: it stands for `$` in texts and figures.
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
    pub(super) on: On,
    pub(super) unit: Option<StudyUnit>,
    pub(super) reported: Option<f64>,
    pub(super) reported_at_least: bool,
    /// Reason why nothing was reported, if it is not that readers ask.
    pub(super) unreported: Option<String>,
    /// Product of figures and numbers; without it the row gives its reason.
    pub(super) ours: String,
    /// Reason if ours has no value.
    pub(super) unknown: Option<String>,
    /// Expectation, on simulated drives alone.
    pub(super) expected: Option<Expectation>,
    pub(super) why: Option<String>,
    pub(super) why_real: Option<String>,
    pub(super) instead: Option<Instead>,
}

/// Expectation on our value of a figure.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Expectation {
    /// Maximum factor between our value and the reported one.
    Factor(f64),
    AtLeast(f64),
    Between([f64; 2]),
}

/// A reason for the case that a product is above another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Instead {
    /// Ours, if it is not said.
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
    pub(super) on: On,
}

impl On {
    /// Returns true if it applies in `place`.
    pub(super) fn holds(self, place: Place) -> bool {
        match self {
            Self::Any => true,
            Self::Simulated => place.is_simulated,
            Self::Real => !place.is_simulated,
            Self::AsIs => !place.is_simulated && !place.switches,
            Self::States => place.is_simulated || place.switches,
        }
    }
}

impl<T> ByPlace<T> {
    /// Returns the one for `place`.
    pub(super) fn at(&self, place: Place) -> &T {
        if place.is_simulated { &self.simulated } else { &self.real }
    }
}

impl Run {
    /// Returns true if it gives figures under `name`.
    pub(super) fn gives(&self, name: &str) -> bool {
        match &self.does {
            Work::Passes(passes) => passes.pass.iter().any(|pass| pass.name == name),
            _ => self.name == name,
        }
    }
}

impl Osd {
    /// Returns the load on a simulated drive or on a real one, where it ends after a time.
    pub(super) fn load(&self, is_simulated: bool) -> StoreLoad {
        if is_simulated { self.chosen } else { self.chosen.for_seconds(self.real_seconds) }
    }
}

impl StudyFile {
    /// Reads the shipped study called `name`.
    ///
    /// # Errors
    /// If there is none, or its file breaks the format.
    pub(super) fn shipped(name: &str) -> Result<Self, String> {
        let shipped = SHIPPED.iter().find(|(known, _)| *known == name);
        let (_, text) = shipped.ok_or_else(|| format!("no study is called {name}"))?;
        Self::read(text).map_err(|error| format!("study {name}: {error}"))
    }

    fn read(text: &str) -> Result<Self, toml::de::Error> {
        text.parse().and_then(toml::Table::try_into)
    }

    /// Returns the run that gives figures under `name` in `place`.
    pub(super) fn run(&self, name: &str, place: Place) -> Option<&Run> {
        self.run.iter().find(|run| run.on.holds(place) && run.gives(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Place; 3] = [
        Place { is_simulated: true, switches: false },
        Place { is_simulated: false, switches: false },
        Place { is_simulated: false, switches: true },
    ];

    /// Returns the figures that an experiment gives, as `experiment` names them.
    fn vocabulary(work: &Work) -> Vec<&str> {
        match work {
            Work::Load(load) => {
                let fixed = "iops iops_0 iops_1 application_iops device_iops bytes_per_second written_bytes sync_share peak";
                fixed.split(' ').chain(load.between.keys().map(String::as_str)).collect()
            }
            Work::Compare(_) => vec!["ratio", "first_over_later", "said"],
            Work::Profile(_) => {
                "per_second syncs_each mean flushes flushes_each synced_blocks_lost".split(' ').collect()
            }
            Work::Passes(_) => {
                let fixed = "seconds operations application_iops device_ios device_iops device_io_bytes \
                    application_bytes device_bytes dirty_bytes under_way_bytes absorbed_bytes";
                fixed.split_whitespace().collect()
            }
            Work::ObjectStore(_) => {
                let fixed = "syncs mean std min p25 p50 p75 max write_mean flushes flushes_each flush_mean";
                fixed.split(' ').collect()
            }
            Work::LiveSwitch(_) => vec!["failed", "longest_before", "longest_off", "longest_on"],
        }
    }

    /// Returns the figures that a text quotes, and those of a product; of a cause the runs, with no figure.
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
            .filter(|word| word.parse::<f64>().is_err() && !["*", "/"].contains(&&**word))
            .collect()
    }

    fn check(study: &StudyFile, place: Place, figure: &str) {
        let (run, name) = figure.rsplit_once('.').unwrap_or_else(|| panic!("{}: {figure}", study.name));
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
        for study in names().map(|name| StudyFile::shipped(name).unwrap()) {
            for place in PLACES {
                let mut checked = 0;
                for group in study.group.iter().filter(|group| group.on.holds(place)) {
                    for row in group.row.iter().filter(|row| row.on.holds(place)) {
                        let why = row.why_real.as_ref().or(group.why_real.as_ref());
                        let why = why.filter(|_| !place.is_simulated).or(row.why.as_ref());
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
                for text in std::iter::once(study.answer.at(place)).chain(study.notes.at(place)) {
                    named(&[text], &[]).iter().for_each(|figure| check(&study, place, figure));
                }
                for series in study.series.iter().filter(|series| series.on.holds(place)) {
                    check(&study, place, &format!("{}.iops", series.run));
                }
                assert!(checked >= 3, "{}: {checked}", study.name);
            }
        }
    }

    #[test]
    fn every_run_is_named_by_a_row() {
        for study in names().map(|name| StudyFile::shipped(name).unwrap()) {
            let text = SHIPPED.iter().find(|(name, _)| *name == study.name).unwrap().1;
            for run in &study.run {
                let given = match &run.does {
                    Work::Passes(passes) => passes.pass.iter().map(|pass| &*pass.name).collect(),
                    _ => vec![&*run.name],
                };
                let is_named =
                    |name: &&str| text.contains(&format!("{name}.")) || text.contains(&format!("{name}@"));
                assert!(given.iter().any(is_named), "{}: nothing names {}", study.name, run.name);
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
            ("real_seconds", "colour = 1\nreal_seconds"),
            ("reported =", "colour = 1\nreported ="),
            ("question =", "colour = 1\nquestion ="),
        ] {
            let error = with(from, to).unwrap_err().to_string();
            assert!(error.contains("colour"), "{to}: {error}");
        }
    }
}
