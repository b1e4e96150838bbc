//! Runner of studies: creates the rows that a file describes, and starts each run that they name once.
//!
//! ```text
//! product      FACTOR [* FACTOR | / FACTOR | - FACTOR]...     from left to right
//! factor       a number, or a figure
//! figure       RUN.PATH or RUN@STATE.PATH: a number in the document of the run's experiment
//! in texts     {PRODUCT|FORMAT}, {RUN.said}, {cause: RUN / RUN}, {on}
//! in targets   {NAME of the file}, {state}, {seed}, {seed+N}, {on}, {cache}
//! ```
//!
//! If a real target cannot provide a figure, the row has a reason instead of a value; only an early end of a
//! run is an error.

use std::collections::HashMap;
use std::rc::Rc;

use plumb_report::document::comparison::Counts;
use plumb_report::document::study::{ExpectedRange, Study, StudyRow, StudySeries};
use plumb_report::quantity::{bytes, count, duration, rate, ratio};
use plumb_trial::TrialError;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::experiment::{Bench, Had};
use super::file::{Group, Needs, Place, Row, Run, StudyFile, Work};
use super::switches::NOT_SWITCHED;
use crate::explanation::{explain, main_cause};
use crate::host::simulated_files::SimulatedHost;
use crate::setting::{CacheSetting, failed};

/// Source of a row that is not in the field report.
const A_QUESTION: &str = "a question of readers, not a figure of the report";
const NOTHING: &str = "nothing completed";

pub(super) struct Runner<'b, 'a> {
    file: &'b StudyFile,
    bench: &'b mut Bench<'a>,
    place: Place,
    /// State of the drive in the run that is started.
    state: String,
    /// Runs by `RUN` or `RUN@STATE`.
    known: HashMap<String, Had<Rc<Value>>>,
}

impl<'b, 'a> Runner<'b, 'a> {
    pub(super) fn new(file: &'b StudyFile, bench: &'b mut Bench<'a>) -> Self {
        let place = match (bench.on, &bench.switches.policy) {
            (None, _) => Place::Simulated,
            (Some(_), None) => Place::AsIs,
            (Some(_), Some(_)) => Place::Switched,
        };
        Self { file, bench, place, state: String::new(), known: HashMap::new() }
    }

    /// Runs the study.
    ///
    /// # Errors
    /// If a run ends early.
    pub(super) fn study(mut self) -> Result<Study, TrialError> {
        let (file, place) = (self.file, self.place);
        let mut rows = Vec::new();
        for group in file.group.iter().filter(|group| place.is_on(&group.on)) {
            for row in group.row.iter().filter(|row| place.is_on(&row.on)) {
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
        for of in file.series.iter().filter(|series| place.is_on(&series.on)) {
            if let Ok(measured) = self.measured(&of.run)? {
                let points = Vec::deserialize(&measured["series"][of.target]).unwrap_or_default();
                series.push(StudySeries { chart: of.chart.clone(), name: self.text(&of.name)?, points });
            }
        }
        let (answer, notes) = match place {
            Place::Simulated => (&file.answer, &file.notes),
            _ => (&file.answer_real, &file.notes_real),
        };
        let notes = notes.iter().map(|note| self.text(note)).collect::<Result<_, _>>()?;
        Ok(Study {
            name: file.name.clone(),
            title: file.title.clone(),
            source: file.source.clone(),
            finding: file.finding.clone(),
            answer: self.text(answer)?,
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
        let why = of.why_real.as_ref().or(group.why_real.as_ref()).filter(|_| self.place != Place::Simulated);
        let mut why = why.or(of.why.as_ref()).unwrap_or(&group.why);
        if let Some(instead) = &of.instead {
            let one = instead.of.as_deref().unwrap_or(&of.ours);
            let (one, other) = (self.product(&fill(one), "")?, self.product(&fill(&instead.above), "")?);
            if one.is_ok() && one > other {
                why = &instead.why;
            }
        }
        let near = |factor| {
            let reported = of.reported.unwrap_or_default();
            ExpectedRange { low: Some(reported / factor), high: Some(reported * factor) }
        };
        let expected = of.factor.map(near).or(of.expected).filter(|_| self.place == Place::Simulated);
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
            expected,
            why: self.text(&fill(why))?,
            chosen: self.chosen(&fill(&of.ours)),
            ..StudyRow::default()
        };
        Ok(row.judged())
    }

    /// Computes a product of figures and numbers; `unknown` is the reason if a figure is missing.
    fn product(&mut self, product: &str, unknown: &str) -> Result<Had<f64>, TrialError> {
        let (mut value, mut sign) = (1.0, "*");
        for word in product.split_whitespace() {
            let factor = match word {
                "*" | "/" | "-" => {
                    sign = word;
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
            value = match sign {
                "/" => value / factor,
                "-" => value - factor,
                _ => value * factor,
            };
        }
        Ok(if value.is_finite() { Ok(value) } else { Err(unknown.to_owned()) })
    }

    fn figure(&mut self, figure: &str) -> Result<Had<Option<f64>>, TrialError> {
        let (run, path) = figure.split_once('.').unwrap_or((figure, ""));
        let pointer = format!("/{}", path.replace('.', "/"));
        Ok(self.measured(run)?.map(|measured| measured.pointer(&pointer).and_then(Value::as_f64)))
    }

    /// Returns the choices on which the runs of a product depend, each once.
    fn chosen(&self, product: &str) -> String {
        let runs = product.split_whitespace().filter_map(|word| word.split_once('.'));
        let runs = runs.map(|(run, _)| run.split_once('@').map_or(run, |(name, _)| name));
        let mut parts: Vec<String> = Vec::new();
        for name in runs {
            let chosen = self.file.run(name, self.place).map(|run| chosen(run, self.place));
            for part in chosen.iter().flatten().flat_map(|part| part.split("; ")) {
                if !part.is_empty() && !parts.iter().any(|known| known == part) {
                    parts.push(part.to_owned());
                }
            }
        }
        parts.join("; ")
    }

    /// Replaces the quoted parts of a text or a target by their values.
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
            let counts = |of: &Value| Counts::deserialize(&of["counts"]).unwrap_or_default();
            let cause = main_cause(&explain(&counts(&one), &counts(&other)));
            return Ok(cause.unwrap_or_else(|| "the counters do not explain it".to_owned()));
        }
        match quoted.strip_suffix(".said") {
            Some(run) => {
                let measured = self.measured(run)?;
                Ok(measured.ok().and_then(|of| Some(of["said"].as_str()?.to_owned())).unwrap_or_default())
            }
            None => self.part(quoted),
        }
    }

    /// Returns a part of a target.
    fn part(&mut self, quoted: &str) -> Result<String, TrialError> {
        let seed = self.bench.seed;
        Ok(match (quoted, quoted.strip_prefix("seed")) {
            (_, Some(more)) => (seed + more.parse::<u64>().unwrap_or(0)).to_string(),
            ("on", _) => self.bench.on.unwrap_or(quoted).to_owned(),
            ("cache", _) => CacheSetting::target(),
            ("state", _) => self.file.states.get(&self.state).cloned().unwrap_or_default(),
            (name, _) => return self.text(self.file.names.get(name).map_or("", |part| part)),
        })
    }

    /// Returns the document of a run, which is started when it is first named.
    fn measured(&mut self, reference: &str) -> Result<Had<Rc<Value>>, TrialError> {
        if let Some(known) = self.known.get(reference) {
            return Ok(known.clone());
        }
        let (name, state) = reference.split_once('@').unwrap_or((reference, ""));
        let measured = match self.file.run(name, self.place) {
            None => Err(NOT_SWITCHED.to_owned()),
            Some(run) => match self.unfit(run, state) {
                Some(because) => Err(because),
                None => {
                    self.bench.observer.note(&format!("study {}: {reference}", self.file.name));
                    self.start(run, state)?.map(Rc::new)
                }
            },
        };
        self.known.insert(reference.to_owned(), measured.clone());
        Ok(measured)
    }

    fn start(&mut self, run: &Run, state: &str) -> Result<Had<Value>, TrialError> {
        state.clone_into(&mut self.state);
        self.bench.check()?;
        let measured = match &run.does {
            Work::Load(of) => {
                let targets: Result<Vec<_>, _> = of.targets.iter().map(|text| self.text(text)).collect();
                self.bench.load(of, &targets?)?
            }
            Work::Compare(of) => {
                let mut levels = of.levels.clone();
                for [_, target] in &mut levels {
                    *target = self.text(target)?;
                }
                self.bench.compare(of, &levels, run.needs)?
            }
            Work::Profile(of) => {
                let drive = self.text(&of.drive)?;
                self.bench.profile(of, &drive)?
            }
            Work::Passes(of) => {
                let host = SimulatedHost::new(&self.text(&of.drive)?, of.host, of.cold)?;
                let passed = host.passes(of, self.bench.seed, self.bench.context.stop);
                passed.map_err(|error| failed(&error))?
            }
            Work::ObjectStore(of) => {
                let drive = self.text(&of.drive)?;
                match self.bench.object_store(of, &drive, state)? {
                    Ok(measured) => measured,
                    Err(because) => return Ok(Err(because)),
                }
            }
            Work::LiveSwitch(of) => {
                let drive = self.text(&of.drive)?;
                self.bench.live_switch(of, &drive)?
            }
        };
        self.bench.check().map(|()| Ok(measured))
    }

    /// Returns the reason why a run is not possible here.
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
            Some(Needs::Policy) if self.place != Place::Switched => NOT_SWITCHED,
            _ if state.is_empty() || matches!(run.does, Work::ObjectStore(_)) => return None,
            _ => return self.bench.switches.put(state).err(),
        };
        Some(because.to_owned())
    }
}

/// Returns the choices on which a run depends, in the words of its file.
fn chosen(run: &Run, place: Place) -> [String; 2] {
    let of_work = match &run.does {
        Work::Load(of) => of.chosen.clone(),
        Work::Profile(of) if place == Place::Simulated => told(&of.chosen),
        Work::Profile(of) => {
            let (choice, seconds, scale) = (told(&of.chosen), of.real_seconds, of.real_scale);
            format!("{choice}, at most {seconds} s, scale at most {scale}")
        }
        Work::ObjectStore(of) => told(&of.chosen),
        Work::Compare(_) | Work::Passes(_) | Work::LiveSwitch(_) => String::new(),
    };
    [of_work, run.chosen.clone()]
}

/// Formats keys and values on one line: `transactions 200, scale 0.1`.
fn told(chosen: &impl Serialize) -> String {
    let text = toml::to_string(chosen).unwrap_or_default().replace(" = ", " ").replace('_', " ");
    text.replace('"', "").trim().replace('\n', ", ")
}
