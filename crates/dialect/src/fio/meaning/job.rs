//! Translation of one section of a job file: its jobs, and its requirements on the span.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, ByteRange, Division, Job, Opening, PageCache, Scenario, Sequential, Stop, TargetUse, TraceUse,
    Workload,
};

use super::rw::Rw;
use super::targets::Extent;
use super::window::Window;
use super::{
    access, blocks, content, durability, opening, pace, placement, replay, reporting, rw, targets, window,
};
use crate::fio::invocation::ReportedJob;
use crate::fio::option_table;
use crate::fio::options::Options;
use crate::fio::section::Section;
use crate::fio::surroundings::Surroundings;
use crate::fio::value::Size;
use crate::{Error, Machine};

/// Default seed: the same in every run, as with fio's `randrepeat`.
const SEED: u64 = 0x0066_696f;

/// A translated section.
pub(super) struct JobMeaning {
    /// Jobs: one for all clones, or one for each.
    pub(super) jobs: Vec<Job>,
    /// Report of the section.
    pub(super) reported: ReportedJob,
    /// True if the section waits for the end of all before it.
    pub(super) begins_span: bool,
    /// True if the section begins a reporting group.
    pub(super) begins_group: bool,
    /// True if the end of the section's jobs ends the other jobs of the span.
    pub(super) exits_all: bool,
    /// Requirements of the section on its span.
    pub(super) window: Window,
    /// True if the section's files are removed at the end.
    pub(super) unlink: bool,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// Translates `section`; `first_job` is the index of its first job.
pub(super) fn from_section(
    section: &Section,
    first_job: u64,
    machine: &Machine,
    surroundings: &Surroundings<'_>,
) -> Result<JobMeaning, Error> {
    let options = Options::from_section(section)?;
    let mut reported = reporting::from_options(&options)?;
    let window = window::from_options(&options)?;
    let replay = replay::from_options(&options)?;
    let maker = Maker::new(&options, machine, surroundings, &window)?;
    reported.rw.clone_from(&maker.rw.name);
    reported.engine.clone_from(&maker.queueing.name);
    reported.continue_on_error = maker.base.continue_on_error;
    reported.latency_target = window.latency_target;
    reported.latency_window = window.latency_window.unwrap_or_default();
    let criterion = options.text("steadystate")?;
    let duration = options.time("steadystate_duration", Nanos::secs(1))?.unwrap_or_default();
    reported.steady = window.steady.and(criterion).map(|criterion| (criterion.to_owned(), duration));
    let jobs = match &replay {
        Some((trace, redirect)) => vec![maker.replaying(trace, redirect.as_ref())?],
        None => maker.jobs(first_job)?,
    };
    let begins_span = options.truth("stonewall", false)?;
    let begins_group = options.truth("new_group", false)? || begins_span;
    let exits_all = options.truth("exitall", false)?;
    let unlink = options.truth("unlink", false)?;
    let notes = settle(options)?;
    Ok(JobMeaning { jobs, reported, begins_span, begins_group, exits_all, window, unlink, notes })
}

/// Handles unused options. Returns all notes, or the error of a refused option.
fn settle(options: Options<'_>) -> Result<Vec<String>, Error> {
    let (mut notes, left) = options.finish();
    for setting in left {
        notes.extend(option_table::settle(setting)?);
    }
    Ok(notes)
}

/// Properties common to all clones of a section.
struct Maker<'a> {
    options: &'a Options<'a>,
    surroundings: &'a Surroundings<'a>,
    rw: Rw,
    queueing: opening::Queueing,
    window: Window,
    clones: u32,
    seed: u64,
    base: Job,
}

impl<'a> Maker<'a> {
    fn new(
        options: &'a Options<'a>,
        machine: &Machine,
        surroundings: &'a Surroundings<'a>,
        window: &Window,
    ) -> Result<Self, Error> {
        let rw = rw::from_options(options)?;
        let queueing = opening::from_options(options)?;
        let most = u64::from(Scenario::THREADS_MAX);
        let clones = options.whole("numjobs", 1..=most)?.unwrap_or(1) as u32;
        let base = base(options, machine, &rw, &queueing)?;
        let seed = seed(options, machine)?;
        Ok(Self { options, surroundings, rw, queueing, window: *window, clones, seed, base })
    }

    /// Returns the jobs: one if all clones do the same to the same files, otherwise one for each.
    fn jobs(&self, first_job: u64) -> Result<Vec<Job>, Error> {
        let files = targets::files(self.options, self.clones, self.surroundings)?;
        let apart = self.clones > 1
            && (!files.together()
                || self.options.get("offset_increment").is_some()
                || self.options.truth("file_append", false)?);
        let seed = |nth: u64| self.seed.wrapping_add(first_job + nth);
        if !apart {
            return Ok(vec![self.job(&files, 0, self.clones, seed(0))?]);
        }
        (0..self.clones).map(|clone| self.job(&files, clone, 1, seed(u64::from(clone)))).collect()
    }

    fn job(&self, files: &targets::Files, clone: u32, sharing: u32, seed: u64) -> Result<Job, Error> {
        let (options, rw, names) = (self.options, &self.rw, files.names(clone));
        let verify = content::verify(options, rw, &self.base.workload.content, sharing > 1)?;
        let base = Workload { verify, seed, ..self.base.workload.clone() };
        let extent = targets::extent(options, files, clone, &base, self.surroundings)?;
        if names.len() > 1 && self.base.workload.durability.flush_every.is_some() {
            options.note(
                "each file is flushed after so many writes to it, where fio counts the writes to all files",
            );
        }
        if sharing > 1 && !rw.random {
            options.note("the clones of a sequential job all begin at the same place; offset_increment sets them apart");
        }
        let stop = self.stop(&extent, sharing, names.len())?;
        let mut durability = base.durability;
        // fio omits the flush after the write that reaches size or number_ios, but not after the last offset.
        durability.flush_before_next &= !extent.exhausts || stop.operations.is_some();
        // A walk whose skip exceeds the range stays at its start.
        let (access, length) = match base.access {
            Access::Sequential(Sequential { stride: Some(stride), .. }) if stride > extent.range.length => {
                (Access::SEQUENTIAL, base.block_max().min(extent.range.length))
            }
            ref access => (access.clone(), extent.range.length),
        };
        let workload = Workload {
            stop,
            durability,
            access,
            rate: pace::together(base.rate, sharing, names.len()),
            burst: pace::burst(options, names.len())?,
            range: ByteRange { length, ..extent.range },
            ..base
        };
        let targets = names.iter().map(|name| TargetUse { name: name.clone(), weight: 1 }).collect();
        let layout = targets::layout(options, rw)?;
        Ok(Job { targets, threads: sharing, size: extent.file_size, layout, workload, ..self.base.clone() })
    }

    fn stop(&self, extent: &Extent, sharing: u32, targets: usize) -> Result<Stop, Error> {
        if !self.window.has_rounds() {
            return pace::stop(self.options, extent, sharing, targets);
        }
        self.options.get("time_based");
        self.options.note_unused(&["number_ios", "io_size", "loops"], "the job runs in rounds of equal time");
        let runtime = self.options.time("runtime", Nanos::secs(1))?;
        match self.window.round().or(runtime) {
            Some(round) => Ok(Stop::after(round)),
            None => self.options.refuse(
                "latency_target",
                "how long each depth is tried is not known",
                "give latency_window or runtime",
            ),
        }
    }

    /// Returns the job of a trace. The trace names the targets; missing files are created with the given
    /// size.
    fn replaying(&self, trace: &TraceUse, redirect: Option<&TargetUse>) -> Result<Job, Error> {
        if self.clones > 1 {
            return Err(self.options.error("numjobs", "one job replays a trace").remedy("leave it out"));
        }
        self.options.note_unused(
            &["filename", "directory", "time_based", "runtime", "numjobs", "thinktime", "verify"],
            "the trace says what is done",
        );
        let Workload { depth, content, .. } = self.base.workload.clone();
        let blank = Workload::over(ByteRange::ALL, Bytes::kib(4));
        let workload = Workload { depth, content, seed: self.seed, stop: Stop::default(), ..blank };
        let size = match (self.options.bytes("filesize")?, self.options.size("size")?) {
            (Some(size), _) | (None, Some(Size::Bytes(size))) => Some(Bytes(size)),
            (None, Some(Size::Percent(_)) | None) => None,
        };
        let targets = redirect.cloned().into_iter().collect();
        Ok(Job {
            workload,
            targets,
            size,
            depth_shared: false,
            trace: Some(trace.clone()),
            ..self.base.clone()
        })
    }
}

/// Returns the job without the properties of single clones.
fn base(
    options: &Options<'_>,
    machine: &Machine,
    rw: &Rw,
    queueing: &opening::Queueing,
) -> Result<Job, Error> {
    let blocks = blocks::from_options(options)?;
    let access = access::from_options(options, rw, &blocks)?;
    let sync = durability::from_options(options, rw, queueing.caching)?;
    let (rate, mix) = pace::rate(options, rw, &blocks)?;
    if let Some(writes) = mix.filter(|writes| *writes != rw.write_percent) {
        options.note(format!("the rates make {writes} % of operations writes, not {} %", rw.write_percent));
    }
    let workload = Workload {
        blocks,
        access,
        write_percent: mix.unwrap_or(rw.write_percent),
        trim_percent: rw.trim_percent(),
        depth: queueing.depth,
        durability: sync.durability,
        rate,
        division: Division::Overlap,
        content: content::from_options(options, rw)?,
        ..Workload::over(plumb_workload::ByteRange::ALL, plumb_block::Bytes::kib(4))
    };
    Ok(Job {
        targets: Vec::new(),
        threads_shared: true,
        depth_shared: true,
        opening: Opening {
            caching: queueing.caching,
            engine: queueing.engine,
            flush: sync.flush,
            durable_write: sync.durable_write,
            raw_flush: false,
            untorn: queueing.untorn,
        },
        affinity: placement::affinity(options, machine)?,
        priority: placement::priority(options)?,
        continue_on_error: continues(options, rw)?,
        page_cache: match options.truth("invalidate", true)? {
            true => PageCache::Evicted,
            false => PageCache::AsIs,
        },
        start_delay: options.time("startdelay", Nanos::secs(1))?.unwrap_or_default(),
        ..Job::on(options.name(), workload)
    })
}

fn seed(options: &Options<'_>, machine: &Machine) -> Result<u64, Error> {
    let given = options.whole("randseed", 0..=u64::MAX)?;
    let repeat = options.truth("randrepeat", true)?;
    Ok(match (given, repeat) {
        (Some(seed), _) => seed,
        (None, true) => SEED,
        (None, false) => SEED ^ machine.started_unix.rotate_left(32) ^ machine.uptime_ms,
    })
}

fn continues(options: &Options<'_>, rw: &Rw) -> Result<bool, Error> {
    let choices = ["none", "0", "read", "write", "io", "verify", "all", "1"];
    let choice = options.choice("continue_on_error", &choices)?.unwrap_or("none");
    match choice {
        "io" | "all" | "1" => Ok(true),
        "read" if !rw.writes => Ok(true),
        "write" if !rw.reads => Ok(true),
        "read" | "write" => options.refuse(
            "continue_on_error",
            format!("is {choice}, and the job does both"),
            "use continue_on_error=io",
        ),
        "verify" => {
            options.note("continue_on_error=verify has no effect: mismatches never end a run before its end");
            Ok(false)
        }
        _ => Ok(false),
    }
}
