//! Translation of sections to a scenario.
//!
//! A section becomes one job if all clones use the same files, otherwise a job for each clone. `stonewall`
//! begins a span. All jobs of a span must agree on properties of the span (warm-up, steady state, latency
//! target).

mod access;
mod blocks;
mod content;
mod durability;
mod job;
mod opening;
mod pace;
mod placement;
mod replay;
mod reporting;
mod rw;
mod targets;
mod window;

use plumb_block::Nanos;
use plumb_workload::{Job, Scenario, Span};

use self::job::JobMeaning;
use self::window::Window;
use super::command_line::TypedLine;
use super::invocation::{Invocation, ReportedJob};
use super::option_table;
use super::section::Section;
use super::surroundings::Surroundings;
use crate::native::InvalidField;
use crate::{Error, Machine, Meaning};

/// Translates the command line `typed`.
pub(super) fn invocation(
    typed: &TypedLine,
    machine: &Machine,
    surroundings: &Surroundings<'_>,
) -> Result<Invocation, Error> {
    let mut assembly = Assembly::default();
    for section in &typed.sections {
        let meant = job::from_section(section, assembly.jobs, machine, surroundings)?;
        if typed.read_only && meant.jobs.iter().any(may_change) {
            return Err(Error::new(
                &section.place,
                format!("{} writes, and --readonly is given", section.name),
            )
            .remedy("leave out one of them"));
        }
        assembly.add(section, meant)?;
    }
    let mut invocation = assembly.finish(typed)?;
    check(&invocation, typed)?;
    let mut notes = typed.notes.clone();
    notes.append(&mut invocation.meaning.notes);
    invocation.meaning.notes = notes;
    Ok(invocation)
}

/// Returns true if a job may write. A trace may, unless its writes are left out.
fn may_change(job: &Job) -> bool {
    job.trace.as_ref().map_or(job.workload.changes(), |trace| !(trace.skip.writes && trace.skip.trims))
}

/// Spans and reports under construction.
#[derive(Default)]
struct Assembly {
    spans: Vec<Span>,
    window: Window,
    group: u32,
    jobs: u64,
    /// Position of `exitall` in the last span, if any.
    exits_all: Option<String>,
    reported: Vec<super::invocation::ReportedJob>,
    remove_after: Vec<String>,
    notes: Vec<String>,
}

impl Assembly {
    fn add(&mut self, section: &Section, meant: JobMeaning) -> Result<(), Error> {
        let first = self.spans.is_empty();
        if meant.begins_group && !first {
            self.group += 1;
        }
        if meant.begins_span || first {
            self.end_span()?;
            let mut span = Span::new(Vec::new());
            meant.window.put_into(&mut span);
            self.spans.push(span);
            self.window = meant.window;
        } else if meant.window != self.window {
            let problem = "ramp_time, steadystate and latency_target hold for all jobs that run at the same time, and \
                           those before it say otherwise";
            return Err(Error::new(&section.place, format!("{}: {problem}", section.name))
                .remedy("say them in [global], or begin with stonewall"));
        }
        self.put(section, meant)
    }

    fn put(&mut self, section: &Section, meant: JobMeaning) -> Result<(), Error> {
        let span = self.spans.len().saturating_sub(1);
        let Some(last) = self.spans.last_mut() else { return Ok(()) };
        let begin = last.jobs.len();
        self.jobs += meant.jobs.len() as u64;
        if meant.unlink {
            let names = meant.jobs.iter().flat_map(|job| &job.targets).map(|target| target.name.clone());
            self.remove_after.extend(names);
        }
        if meant.exits_all {
            self.exits_all = Some(section.place.clone());
        }
        last.jobs.extend(meant.jobs);
        let mut reported = meant.reported;
        (reported.span, reported.group, reported.jobs) = (span, self.group, begin..last.jobs.len());
        self.reported.push(reported);
        for note in meant.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let replays = self.spans.iter().flat_map(|span| &span.jobs).any(|job| job.trace.is_some());
        if replays && self.reported.len() > 1 {
            return Err(Error::new(&section.place, "a trace is replayed by a job that runs alone")
                .remedy("use --section to run one of them"));
        }
        Ok(())
    }

    /// Applies `exitall`: the shortest job ends the others.
    fn end_span(&mut self) -> Result<(), Error> {
        let Some(place) = self.exits_all.take() else { return Ok(()) };
        let Some(span) = self.spans.last_mut() else { return Ok(()) };
        if span.jobs.len() < 2 {
            return Ok(());
        }
        let timed = |job: &plumb_workload::Job| {
            let stop = job.workload.stop;
            let duration = stop.duration.filter(|_| stop.bytes.is_none() && stop.operations.is_none())?;
            Some(job.start_delay.saturating_add(duration))
        };
        let ends: Option<Vec<Nanos>> = span.jobs.iter().map(timed).collect();
        let Some(first) = ends.and_then(|ends| ends.into_iter().min()) else {
            let error =
                Error::new(place, "exitall: which job ends first is known only of jobs that end by time");
            return Err(error.remedy("give runtime and time_based to all of them"));
        };
        for job in &mut span.jobs {
            job.workload.stop.duration = Some(first.since(job.start_delay));
        }
        Ok(())
    }

    fn finish(mut self, typed: &TypedLine) -> Result<Invocation, Error> {
        self.end_span()?;
        let scenario = Scenario { spans: self.spans };
        Ok(Invocation {
            meaning: Meaning { scenario, notes: self.notes },
            output: typed.output.clone(),
            reported: self.reported,
            global_options: reporting::typed(&typed.global, None),
            global_command: reporting::arguments(&typed.global).collect(),
            remove_after: self.remove_after,
        })
    }
}

/// Validates the scenario as a whole; the error names the section.
fn check(invocation: &Invocation, typed: &TypedLine) -> Result<(), Error> {
    let Err(invalid) = invocation.meaning.scenario.validate() else { return Ok(()) };
    let field = InvalidField::from_invalid(invalid);
    let is_its = |reported: &ReportedJob| reported.span == field.span && reported.jobs.contains(&field.job);
    let section = invocation.reported.iter().position(is_its).and_then(|index| typed.sections.get(index));
    let place = section.map_or("the job files", |section| {
        let names = field.called_in("fio");
        let setting = names.iter().find_map(|name| section.last(option_table::find(name, "").ok()?.name));
        setting.map_or(&section.place, |setting| &setting.place)
    });
    let name = section.map_or_else(String::new, |section| format!("{}: ", section.name));
    Err(Error::new(place, name + &field.problem_in("fio")))
}
