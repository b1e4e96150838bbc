//! The one runner of studies: makes the rows that a file describes, and starts each run that they name, once.
//!
//! ```text
//! product      FACTOR [* FACTOR | / FACTOR]...     from left to right; a factor is a number or a figure
//! figure       RUN.NAME or RUN@STATE.NAME
//! in texts     {PRODUCT|FORMAT}, {RUN.said}, {cause: RUN / RUN}, {on}
//! in targets   {NAME of the file}, {state}, {seed}, {seed+N}, {on}, {cache}
//! ```
//!
//! A figure that a real target cannot give is a reason in place of a value; only what ends a run early is an
//! error.

use std::collections::HashMap;
use std::rc::Rc;

use plumb_report::document::study::{ExpectedRange, Study, StudyRow, StudySeries};
use plumb_report::quantity::{bytes, count, duration, rate, ratio};
use plumb_trial::TrialError;
use serde::Serialize;

use super::bench::{Bench, NOT_SWITCHED};
use super::experiment::{self, ExperimentResult};
use super::file::{Expectation, Group, Needs, Pass, PassChoice, Place, Row, Run, StudyFile, Work};
use crate::explanation::{explain, main_cause};

/// A value, or the reason why it could not be had.
type Had<T> = Result<T, String>;

/// Source of a row of which the field report has nothing.
const A_QUESTION: &str = "a question of readers, not a figure of the report";
const NOTHING: &str = "nothing completed";

pub(super) struct Runner<'b, 'a> {
    file: &'b StudyFile,
    bench: &'b mut Bench<'a>,
    place: Place,
    /// Runs by `RUN` or `RUN@STATE`.
    known: HashMap<String, Had<Rc<ExperimentResult>>>,
}

impl<'b, 'a> Runner<'b, 'a> {
    pub(super) fn new(file: &'b StudyFile, bench: &'b mut Bench<'a>) -> Self {
        let place = Place { is_simulated: bench.on.is_none(), switches: bench.switches.policy.is_some() };
        Self { file, bench, place, known: HashMap::new() }
    }

    /// Runs the study.
    ///
    /// # Errors
    /// If a run ends early.
    pub(super) fn study(mut self) -> Result<Study, TrialError> {
        let (file, place) = (self.file, self.place);
        let mut rows = Vec::new();
        for group in file.group.iter().filter(|group| group.on.holds(place)) {
            for row in group.row.iter().filter(|row| row.on.holds(place)) {
                match &*group.each {
                    [] => rows.push(self.row(group, row, "")?),
                    each => {
                        for word in each {
                            rows.push(self.row(group, row, word)?);
                        }
                    }
                }
            }
        }
        let mut series = Vec::new();
        for of in file.series.iter().filter(|series| series.on.holds(place)) {
            if let (Ok(measured), Some(Work::Load(load))) =
                (self.measured(&of.run)?, file.run(&of.run, place).map(|run| &run.does))
            {
                let points = measured.series(of.target, load.step);
                series.push(StudySeries { chart: of.chart.clone(), name: self.text(&of.name)?, points });
            }
        }
        let notes = file.notes.at(place).iter().map(|note| self.text(note)).collect::<Result<_, _>>()?;
        Ok(Study {
            name: file.name.clone(),
            title: file.title.clone(),
            source: file.source.clone(),
            finding: file.finding.clone(),
            answer: self.text(file.answer.at(place))?,
            rows,
            series,
            notes,
        })
    }

    fn row(&mut self, group: &Group, of: &Row, word: &str) -> Result<StudyRow, TrialError> {
        let fill = |text: &str| text.replace('$', word);
        let unknown = of.unknown.as_deref().unwrap_or(NOTHING);
        let ours = match &*of.ours {
            "" => Err(unknown.to_owned()),
            product => self.product(&fill(product), unknown)?,
        };
        let why = of.why_real.as_ref().or(group.why_real.as_ref()).filter(|_| !self.place.is_simulated);
        let mut why = why.or(of.why.as_ref()).unwrap_or(&group.why);
        if let Some(instead) = &of.instead {
            let one = instead.of.as_deref().unwrap_or(&of.ours);
            let (one, other) = (self.product(&fill(one), "")?, self.product(&fill(&instead.above), "")?);
            if one.is_ok() && one > other {
                why = &instead.why;
            }
        }
        let expected = of.expected.filter(|_| self.place.is_simulated).map(|expected| match expected {
            Expectation::Factor(factor) => {
                let reported = of.reported.unwrap_or_default();
                (Some(reported / factor), Some(reported * factor))
            }
            Expectation::AtLeast(low) => (Some(low), None),
            Expectation::Between([low, high]) => (Some(low), Some(high)),
        });
        let unreported = of.unreported.as_deref().unwrap_or(A_QUESTION);
        let row = StudyRow {
            question: group.question.clone(),
            figure: fill(&of.figure),
            unit: of.unit.unwrap_or(group.unit),
            reported: of.reported,
            reported_at_least: of.reported.is_some() && of.reported_at_least,
            reported_unknown_because: of.reported.is_none().then(|| unreported.to_owned()),
            ours: ours.as_ref().ok().copied(),
            ours_unknown_because: ours.err(),
            expected: expected.map(|(low, high)| ExpectedRange { low, high }),
            why: self.text(&fill(why))?,
            chosen: self.chosen(&fill(&of.ours)),
            ..StudyRow::default()
        };
        Ok(row.judged())
    }

    /// Works out a product of figures and numbers; `unknown` is the reason if a figure is absent.
    fn product(&mut self, product: &str, unknown: &str) -> Result<Had<f64>, TrialError> {
        let (mut value, mut divides) = (1.0, false);
        for word in product.split_whitespace() {
            let factor = match word {
                "*" | "/" => {
                    divides = word == "/";
                    continue;
                }
                word => match word.parse() {
                    Ok(number) => number,
                    Err(_) => match self.figure(word)? {
                        Ok(figure) => figure.unwrap_or(f64::NAN),
                        Err(because) => return Ok(Err(because)),
                    },
                },
            };
            value = if divides { value / factor } else { value * factor };
        }
        Ok(if value.is_finite() { Ok(value) } else { Err(unknown.to_owned()) })
    }

    fn figure(&mut self, figure: &str) -> Result<Had<Option<f64>>, TrialError> {
        let (run, name) = figure.rsplit_once('.').unwrap_or((figure, ""));
        Ok(self.measured(run)?.map(|measured| measured.figures.get(name).copied()))
    }

    /// Returns what the runs of a product rest on that the field report does not tell, each once.
    fn chosen(&self, product: &str) -> String {
        let runs = product.split_whitespace().filter_map(|word| word.rsplit_once('.'));
        let runs = runs.map(|(run, _)| run.split_once('@').map_or(run, |(name, _)| name));
        let mut parts: Vec<String> = Vec::new();
        for name in runs {
            let chosen = self.file.run(name, self.place).map(|run| chosen(run, name, self.place));
            for part in chosen.iter().flatten().flat_map(|part| part.split("; ")) {
                if !part.is_empty() && !parts.iter().any(|known| known == part) {
                    parts.push(part.to_owned());
                }
            }
        }
        parts.join("; ")
    }

    /// Fills in what a text quotes.
    fn text(&mut self, text: &str) -> Result<String, TrialError> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, (quoted, after))) =
            rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            filled.push_str(before);
            filled.push_str(&self.quoted(quoted)?);
            rest = after;
        }
        Ok(filled + rest)
    }

    fn quoted(&mut self, quoted: &str) -> Result<String, TrialError> {
        const UNKNOWN: &str = "unknown";
        if let Some((product, format)) = quoted.split_once('|') {
            let Ok(value) = self.product(product, "")? else { return Ok(UNKNOWN.to_owned()) };
            return Ok(match format {
                "rate" => rate(value),
                "ratio" => ratio(value),
                "duration" => duration(value),
                "bytes" => bytes(value),
                "tenths" => format!("{value:.1}"),
                _ => count(value.round() as u64),
            });
        }
        if let Some((one, other)) = quoted.strip_prefix("cause: ").and_then(|runs| runs.split_once(" / ")) {
            let (Ok(one), Ok(other)) = (self.measured(one)?, self.measured(other)?) else {
                return Ok(UNKNOWN.to_owned());
            };
            let cause = main_cause(&explain(&one.counts, &other.counts));
            return Ok(cause.unwrap_or_else(|| "the counters do not explain it".to_owned()));
        }
        match quoted.strip_suffix(".said") {
            Some(run) => Ok(self.measured(run)?.map_or_else(|_| String::new(), |of| of.said.clone())),
            None => Ok(self.bench.on.unwrap_or(quoted).to_owned()),
        }
    }

    /// Returns a run, which is started if no row has named it before.
    fn measured(&mut self, reference: &str) -> Result<Had<Rc<ExperimentResult>>, TrialError> {
        if !self.known.contains_key(reference) {
            let (name, state) = reference.split_once('@').unwrap_or((reference, ""));
            match self.file.run(name, self.place) {
                None => drop(self.known.insert(reference.to_owned(), Err(NOT_SWITCHED.to_owned()))),
                Some(run) => self.start(run, reference, state)?,
            }
        }
        Ok(self.known.get(reference).cloned().unwrap_or_else(|| Err("it was not measured".to_owned())))
    }

    fn start(&mut self, run: &Run, reference: &str, state: &str) -> Result<(), TrialError> {
        if let Some(because) = self.unfit(run, state) {
            self.known.insert(reference.to_owned(), Err(because));
            return Ok(());
        }
        self.bench.observer.note(&format!("study {}: {reference}", self.file.name));
        let bench = &mut *self.bench;
        let target = |bench: &Bench<'_>, text: &str| target(self.file, bench, text, state);
        let ran = match &run.does {
            Work::Load(of) => {
                let targets: Vec<String> = of.targets.iter().map(|text| target(bench, text)).collect();
                Ok(experiment::load(bench, of, &targets)?)
            }
            Work::Compare(of) => {
                let levels = of.levels.clone().map(|[name, text]| [name, target(bench, &text)]);
                Ok(experiment::compare(bench, of, &levels)?)
            }
            Work::Profile(of) => {
                let drive = target(bench, &of.drive);
                Ok(experiment::profile(bench, of, &drive)?)
            }
            Work::Passes(of) => {
                let passed = experiment::passes(bench, of, &target(bench, &of.drive))?;
                self.known.extend(passed.into_iter().map(|(name, measured)| (name, Ok(Rc::new(measured)))));
                return Ok(());
            }
            Work::ObjectStore(of) => {
                let drive = target(bench, if self.place.is_simulated { &of.drive } else { "{on}" });
                experiment::object_store(bench, of, &drive, state)?
            }
            Work::LiveSwitch(of) => Ok(experiment::live_switch(bench, of, &target(bench, &of.drive))?),
        };
        self.known.insert(reference.to_owned(), ran.map(Rc::new));
        Ok(())
    }

    /// Returns why a run cannot be had here.
    fn unfit(&mut self, run: &Run, state: &str) -> Option<String> {
        let target = self.bench.on?;
        let found = std::fs::metadata(target);
        let is_directory = found.as_ref().is_ok_and(std::fs::Metadata::is_dir);
        let is_file = is_directory || found.map_or(true, |found| found.is_file());
        let because = match run.needs {
            Some(Needs::File) if !is_file => "it is a block device: name a directory or a file",
            Some(Needs::Device) if is_file => "it is a file: name a block device for the raw rows",
            Some(Needs::Directory) if !is_directory => "applications work on files: name a directory",
            Some(Needs::Cache) if self.bench.switches.cache.is_none() => {
                "there is no cache in front of it: --cache-log names a place for its log, and the cache is \
                 removed at the end"
            }
            Some(Needs::Policy) if !self.place.switches => NOT_SWITCHED,
            _ if state.is_empty() || matches!(run.does, Work::ObjectStore(_)) => return None,
            _ => return self.bench.put(state).err(),
        };
        Some(because.to_owned())
    }
}

/// Fills in a target.
fn target(file: &StudyFile, bench: &Bench<'_>, text: &str, state: &str) -> String {
    let mut filled = text.to_owned();
    for (name, part) in &file.names {
        filled = filled.replace(&format!("{{{name}}}"), part);
    }
    filled = filled.replace("{state}", file.states.get(state).map_or("", |options| options));
    filled = filled.replace("{on}", bench.on.unwrap_or_default());
    let cache = bench.switches.cache.as_ref().map_or("", |(_, name)| name);
    filled = filled.replace("{cache}", cache).replace("{seed}", &bench.seed.to_string());
    while let Some((before, (more, after))) =
        filled.split_once("{seed+").and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        filled = format!("{before}{}{after}", bench.seed + more.parse::<u64>().unwrap_or(0));
    }
    filled
}

/// Returns the choices that a run rests on, in the words of its file.
fn chosen(run: &Run, name: &str, place: Place) -> [String; 2] {
    let of_work = match &run.does {
        Work::Load(of) => of.chosen.clone(),
        Work::Compare(of) => format!("blocks of {} ms", of.block_ms),
        Work::Profile(of) if place.is_simulated => told(&of.chosen),
        Work::Profile(of) => {
            let (choice, limits) = (told(&of.chosen), &of.real);
            format!("{choice}, at most {} s, scale at most {}", limits.seconds, limits.scale)
        }
        Work::Passes(of) => of.pass.iter().find(|pass| pass.name == name).map_or_else(String::new, told_pass),
        Work::ObjectStore(of) => told(&of.load(place.is_simulated)),
        Work::LiveSwitch(of) => format!("{} KiB random writes, {} in flight", of.block_kib, of.depth),
    };
    [of_work, run.chosen.clone()]
}

fn told_pass(pass: &Pass) -> String {
    match pass.chosen {
        PassChoice::RandomSeconds(seconds) => format!("random blocks, window of {seconds} s"),
        PassChoice::EachOnceInSteps(step) => format!("each block once, in steps of {step} blocks"),
    }
}

/// Writes keys and values on one line: `transactions 200, scale 0.1`.
fn told(chosen: &impl Serialize) -> String {
    let text = toml::to_string(chosen).unwrap_or_default().replace(" = ", " ").replace('_', " ");
    text.replace('"', "").trim().replace('\n', ", ")
}
