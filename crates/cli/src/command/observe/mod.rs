//! `plumb observe`: the requests of other programs to devices, and their waits for syncs.

mod compare;
mod recorded;
mod serve;
mod view;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, Subcommand};
use plumb_block::{Bytes, Clock, FailureKind, Nanos, RealClock};
use plumb_dialect::native;
use plumb_fleet::MonotonicClock;
use plumb_measure::{Manifest, RunDirectory};
use plumb_observe::event::Request;
use plumb_observe::workload::Destination;
use plumb_observe::{
    Exposures, Look, Meter, NoTarget, Options, RequestedTarget, SoFar, Surroundings, Target, observe,
    requests, workload,
};
use plumb_report::document::observation::{ObservedDevice, Source, WritebackError};
use plumb_report::progress::Bar;
use plumb_report::quantity::{count, duration};
use plumb_report::{Format, Kind, ObservationDocument, Record};
use plumb_serve::http;
use plumb_serve::nbd::server::ListenAddress;
use plumb_targets::{Name, Servers, open_to_read};
use plumb_trial::environment;

use self::recorded::recorded;
use self::serve::ServedObservation;
use self::view::View;
use crate::arguments::output::PrintFormat;
use crate::arguments::running::{Detail, RecordingArguments};
use crate::exit::{self, Exit, Refusal, refuse_if, usage};
use crate::strictness::Strictness;
use crate::surroundings::{argv, out, time_of_day};
use crate::{stop, terminal};

/// Default duration of an observation.
const DURATION: Nanos = Nanos(30_000_000_000);
/// Prefix of notes on the workload.
const AS_WORKLOAD: &str = "As a workload: ";

/// Arguments of `plumb observe`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ObserveArguments {
    #[command(subcommand)]
    action: Option<Action>,

    /// A path, a block device, or the number of a process; a file with a number for a name is ./1234
    #[arg(value_name = "PATH|DEV|PID", required_unless_present_any = ["all", "from", "serve"], conflicts_with = "all")]
    target: Option<String>,

    /// Observe every disk, and the syncs of every program
    #[arg(long)]
    all: bool,

    /// How long, such as 10s, 5m [default: 30s]
    ///
    /// Without it, an observation that Ctrl-C ends earlier is complete. One that is interrupted before a
    /// duration that was given is not (exit code 3).
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::running::time_within_a_day)]
    duration: Option<Nanos>,

    /// Read counters alone, as without root
    #[arg(long)]
    counters: bool,

    /// Do not trace system calls: who waits for syncs is then not shown, and system calls are not slowed down
    #[arg(long)]
    no_syscalls: bool,

    /// Keep each request in the recording, 48 bytes each: for `plumb cache advise` and `plumb load --trace`
    #[arg(long, conflicts_with_all = ["no_record", "counters", "from"])]
    requests: bool,

    /// Measure once a second how much data on the path a power cut would take
    ///
    /// The data is counted in memory, by process, in the journal of the file system and in the drive. The
    /// report says how long the data has been there, and the largest amount at one moment.
    #[arg(long, conflicts_with_all = ["from", "workload"])]
    exposure: bool,

    /// Print a line on stderr for each sync and each request that takes TIME or longer
    ///
    /// The line names the process, the file, and what the device did meanwhile.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "counters", "tui"])]
    slow: Option<Nanos>,

    /// Observe until it is stopped, and serve metrics for Prometheus at ADDRESS
    ///
    /// `/metrics` has the metrics, and `/slow` the slowest events of the last ten minutes. ADDRESS is a port
    /// of this machine, such as 9950, or the path of a Unix socket. Other machines reach it only where an
    /// address is given, such as 0.0.0.0:9950. Nothing is recorded. Without a target every disk is observed.
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = http::parse_address,
        conflicts_with_all = ["from", "counters", "requests", "workload", "tui", "json", "format", "out", "duration", "strict"]
    )]
    serve: Option<ListenAddress>,

    /// Print a workload of the same kind for TARGET, which `plumb load` runs
    ///
    /// Offsets are scaled to the size of TARGET, and trims are left out where it takes none. Without TARGET
    /// the workload is for sim:nearline-4tb.
    #[arg(
        long,
        value_name = "TARGET",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = workload::DESTINATION,
        conflicts_with_all = ["json", "format", "counters"]
    )]
    workload: Option<String>,

    /// Show a recorded observation instead
    #[arg(long, value_name = "RUN", conflicts_with_all = ["target", "all"])]
    from: Option<PathBuf>,

    #[command(flatten)]
    printed: PrintFormat,

    /// Show a live view: the requests to each device, and who waits for syncs; times are those of the whole
    /// observation
    #[arg(long, conflicts_with = "from")]
    tui: bool,

    #[command(flatten)]
    recording: RecordingArguments,

    #[command(flatten)]
    detail: Detail,

    /// Exit with 3 if not everything was seen: counters alone, no system calls, or lost events
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Compare two observations, such as before and after a change
    Compare(compare::CompareArguments),
}

impl ObserveArguments {
    /// Returns true if a recording is shown, and nothing is traced.
    pub(crate) fn reads(&self) -> bool {
        self.action.is_some() || self.from.is_some()
    }
}

/// Observes the typed target.
pub(crate) fn run(arguments: &ObserveArguments) -> anyhow::Result<Exit> {
    if let Some(Action::Compare(compare)) = &arguments.action {
        return compare::run(compare);
    }
    let format = arguments.printed.format(Kind::Observation)?;
    if format == Format::Prometheus && arguments.from.is_none() && !arguments.exposure {
        let problem = "an observation prints metrics of the data that a power cut would take: add --exposure";
        return Err(Refusal::new(FailureKind::Usage, problem).into());
    }
    let strictness = Strictness { strict: arguments.strict };
    // An unusable target of the workload is refused before the observation.
    let wanted_workload = arguments.workload.as_deref().map(destination).transpose()?;
    let wanted_workload = wanted_workload.as_ref();
    if let Some(run) = &arguments.from {
        let mut document = recorded(run)?;
        show(&mut document, arguments, wanted_workload)?;
        return Ok(exit::of_observation(&document, strictness));
    }
    let wanted = match &arguments.target {
        Some(target) => RequestedTarget::parse(target),
        None => RequestedTarget::All,
    };
    let target = wanted.find().map_err(|error: NoTarget| usage(error))?;
    let exposures = arguments.exposure.then(|| Exposures::open(&wanted, arguments.serve.is_some()));
    let exposures = exposures.transpose().map_err(usage)?.unwrap_or_default();
    if let Some(address) = &arguments.serve {
        let (syncs, slow) = (!arguments.no_syscalls, arguments.slow);
        return serve::run(address, ServedObservation { target: &target, syncs, slow, exposures });
    }
    let stop = stop::on_signals()?;
    let started_at = time_of_day();
    let mut manifest = Manifest::starting("observe", argv(), 0, started_at.clone());
    manifest.target = Some(target.shown.clone());
    let directory = RunDirectory::create(&out(&arguments.recording, "observe"), &manifest)?;
    let mut document = observed(arguments, &target, exposures, directory.as_ref(), &stop)?;
    document.environment = environment(&argv(), &started_at);
    document.run_directory = directory.as_ref().map(|directory| directory.path().display().to_string());
    put_workload(&mut document, &destination(workload::DESTINATION)?);
    Record::new(directory).close(&document, document.incomplete_because.clone(), time_of_day())?;
    show(&mut document, arguments, wanted_workload)?;
    terminal::say_report(document.run_directory.as_ref());
    if !document.complete {
        let why = document.incomplete_because.as_deref().unwrap_or("interrupted");
        terminal::say_so_far(why, "the requests until then", document.run_directory.is_some());
        return Ok(exit::of_observation(&document, strictness).and(Exit::NOT_MEASURED));
    }
    Ok(exit::of_observation(&document, strictness))
}

/// Observes; if requests are kept, they are written into the directory.
fn observed(
    arguments: &ObserveArguments,
    target: &Target,
    mut exposures: Exposures,
    directory: Option<&RunDirectory>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<ObservationDocument> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let kept =
        directory.filter(|_| arguments.requests).map(|directory| directory.path().join(requests::FILE_NAME));
    let mut file = kept
        .as_ref()
        .map(|path| File::create_new(path).map(|file| BufWriter::with_capacity(1 << 20, file)))
        .transpose()?;
    let mut keep = file
        .as_mut()
        .map(|file| |at: Nanos, request: &Request| -> io::Result<()> { requests::write(file, at, request) });
    let meter = arguments.slow.map(|slow| Mutex::new(Meter::new(&target.devices, Some(slow))));
    let length = arguments.duration.unwrap_or(DURATION);
    let options = Options {
        duration: length,
        may_end_early: arguments.duration.is_none(),
        syncs: !arguments.no_syscalls,
        counters_only: arguments.counters,
        requests: keep.as_mut().map(|keep| keep as _),
        meter: meter.as_ref(),
    };
    let names: Vec<&str> = target.devices.iter().map(|device| device.name.as_str()).collect();
    let (seconds, mut bar) = (length.as_secs_f64(), None);
    let of_all = duration(seconds);
    let begun = || {
        terminal::say(&format!("plumb: observing {} for {of_all}; Ctrl-C ends it", names.join(", ")));
        Bar::on_stderr()
    };
    let mut view = View::open(arguments.tui, length, stop);
    let lost_lines = RefCell::new(Vec::new());
    let mut lost = |error: &WritebackError| lost_lines.borrow_mut().push(serve::dated_lost_line(error));
    let mut progress = |elapsed: Nanos, so_far: SoFar, look: &mut Look<'_>| {
        exposures.look(elapsed, &Servers);
        match &mut view {
            Some(view) => view.show(elapsed, look),
            None => {
                let bar = bar.get_or_insert_with(begun);
                bar.set(elapsed.as_secs_f64() / seconds, &words(elapsed, &of_all, so_far));
                let slow = meter.iter().flat_map(|meter| {
                    meter.lock().unwrap_or_else(PoisonError::into_inner).take_slow(serve::clocks())
                });
                let slow = slow.map(|event| serve::dated_slow_line(&event));
                lost_lines.take().into_iter().chain(slow).for_each(|line| bar.say(&line));
            }
        }
    };
    let around = Surroundings {
        clock: &clock,
        now: &|| MonotonicClock.now(),
        stop,
        progress: &mut progress,
        lost: &mut lost,
    };
    let document = observe(target, options, around);
    bar.iter().for_each(Bar::finish);
    drop(view);
    let mut document = document.map_err(|error| Refusal::because(FailureKind::NotMeasured, error))?;
    document.exposures = exposures.finish(clock.now(), &Servers);
    match (file, kept) {
        // Counters have no single requests, so the file is empty.
        (Some(_), Some(path)) if document.source == Source::Counters => std::fs::remove_file(path)?,
        (Some(mut file), _) => file.flush()?,
        _ => {}
    }
    Ok(document)
}

/// Opens the target of a workload.
///
/// # Errors
/// If the name is invalid, or the target cannot be opened.
fn destination(name: &str) -> anyhow::Result<Destination> {
    let opened = open_to_read(Name::parse(name)?)?;
    let takes_trims = opened.device.info().discard_max > Bytes(0);
    Ok(Destination { name: name.to_owned(), size: opened.size, takes_trims })
}

/// Adds a workload for `target` to the document, derived from the first device with requests.
fn put_workload(document: &mut ObservationDocument, target: &Destination) {
    let of = |device: &ObservedDevice| workload::scenario(device, document.seconds, target);
    if let Some((scenario, notes)) = document.devices.iter().find_map(of) {
        document.workload = native::write(&scenario);
        document.notes.retain(|note| !note.starts_with(AS_WORKLOAD));
        document.notes.extend(notes.into_iter().map(|note| format!("{AS_WORKLOAD}{note}")));
    }
}

/// Prints the workload for `target` if there is one, otherwise the observation.
fn show(
    document: &mut ObservationDocument,
    arguments: &ObserveArguments,
    target: Option<&Destination>,
) -> anyhow::Result<()> {
    if let Some(target) = target {
        put_workload(document, target);
        for note in document.notes.iter().filter_map(|note| note.strip_prefix(AS_WORKLOAD)) {
            terminal::say(&format!("plumb: {note}"));
        }
        let why = "no single requests were seen, so no workload can be made: run as root, on a kernel \
                       with tracing";
        refuse_if!(document.workload.is_empty(), NotMeasured, why);
        return terminal::print(&document.workload);
    }
    terminal::show(&*document, arguments.printed.format(Kind::Observation)?, arguments.detail.style())
}

/// Returns the progress as text.
fn words(elapsed: Nanos, of_all: &str, so_far: SoFar) -> String {
    let lost = if so_far.lost > 0 { format!(", {} lost", count(so_far.lost)) } else { String::new() };
    format!(
        "{} of {of_all}: {} events{lost}, {} syncs",
        duration(elapsed.as_secs_f64().floor()),
        count(so_far.events),
        count(so_far.syncs)
    )
}
