//! An entry of fio's `jobs`: the requested load and its figures, phase by phase.

use plumb_block::{Bytes, Errno, Nanos};
use plumb_report::document::{CpuSeconds, FlushMethod, RunJob};
use plumb_report::quantity::duration;
use plumb_workload::Caching;

use super::field::Field;
use super::histogram::Timing;
use crate::error::Error;
use crate::fio::value::time;
use crate::imported::{DirectionFigures, Distribution, Figures, Target, description, short_of};

/// Maximum plausible processor use of a thread in percent. fio's clock is coarse, so a short job may exceed
/// 100.
const PROCESSOR_PERCENT_MAX: f64 = 10_000.0;

/// Phase of a job: the load itself, or reading back its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Work,
    Verification,
}

/// Figures of a job in one phase.
pub(super) struct Part {
    pub(super) phase: Phase,
    pub(super) seconds: f64,
    pub(super) job: RunJob,
    pub(super) target: Target,
}

/// A job.
pub(super) struct Job {
    pub(super) parts: Vec<Part>,
    pub(super) failed_because: Option<String>,
    pub(super) incomplete_because: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Options of a job: its own, then the global ones.
pub(super) struct Options<'a> {
    own: Field<'a>,
    global: &'a Field<'a>,
}

impl<'a> Options<'a> {
    /// Returns the options of `job`; `global` are the options of all jobs.
    pub(super) fn of_job(job: &Field<'a>, global: &'a Field<'a>) -> Self {
        Self { own: job.get("job options"), global }
    }
}

impl Options<'_> {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.own.get(name).text().or_else(|| self.global.get(name).text())
    }

    fn is(&self, name: &str) -> bool {
        matches!(self.text(name), Some("1" | "true" | ""))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn seconds(&self, name: &str) -> Option<f64> {
        Some(time(self.text(name)?, Nanos::secs(1)).ok()?.as_secs_f64())
    }

    /// Returns the value of `rw`, such as `randrw`, if given.
    fn pattern(&self) -> Option<&str> {
        Some(self.text("rw").or_else(|| self.text("readwrite"))?.split(':').next().unwrap_or_default())
    }

    /// Returns true if the job writes, and reads only to verify.
    fn only_writes(&self) -> bool {
        matches!(self.pattern(), Some("write" | "randwrite" | "trimwrite" | "randtrimwrite"))
    }

    fn only_reads(&self) -> bool {
        matches!(self.pattern(), None | Some("read" | "randread"))
    }

    /// Returns true if the engine discards writes.
    fn is_null_device(&self) -> bool {
        self.text("ioengine") == Some("null")
    }

    /// Returns true if the job syncs its files after writing them.
    fn flushes_at_end(&self) -> bool {
        self.is("end_fsync") || self.is("fsync_on_close")
    }

    /// Returns the call that makes the job's writes durable.
    fn flush(&self) -> Option<FlushMethod> {
        let every = |name: &str| self.number(name).filter(|every| *every > 0);
        every("fdatasync")
            .map(|_| FlushMethod::Fdatasync)
            .or_else(|| (self.flushes_at_end() || every("fsync").is_some()).then_some(FlushMethod::Fsync))
            .or_else(|| self.text("sync_file_range").map(|_| FlushMethod::Range))
    }

    fn verifies(&self) -> bool {
        self.text("verify").is_some_and(|verify| !matches!(verify, "0" | "none" | "null"))
    }
}

/// Directions of a job, as printed.
struct JobSides {
    read: Side,
    write: Side,
    trim: Side,
    sync: DirectionFigures,
    /// Reads, writes and trims together, if fio does not separate them.
    mixed: Side,
    /// Latencies of all directions together, if fio prints them in addition.
    together: Option<Distribution>,
    /// Run time of the job, if printed.
    job_seconds: Option<f64>,
    /// Number of clones of the job that the entry is of.
    threads: u64,
}

/// A direction and its run time.
#[derive(Default)]
struct Side {
    counted: DirectionFigures,
    seconds: f64,
    /// Part of an operation that its times leave out, if fio did not time whole operations.
    without_submission: Option<String>,
}

/// Returns the number of clones of a job that its entry is of. Without group reporting each clone has an
/// entry of its own. fio lists `group_reporting` only if it was in a job file, so a single entry of several
/// clones tells it, too.
fn threads<'a>(job: &Field<'a>, options: &Options<'_>, all: &[Field<'a>]) -> u64 {
    let name = |job: &Field<'a>| ["hostname", "jobname"].map(|key| job.get(key).text().map(str::to_owned));
    let alike = all.iter().filter(|other| name(other) == name(job)).count();
    let is_grouped = alike == 1 || options.is("group_reporting");
    options.number("numjobs").filter(|_| is_grouped).unwrap_or(1).max(1)
}

/// Reads a job of version `version` of fio, one of `all`. `global` are the options of all jobs.
///
/// # Errors
/// Fails if a value is impossible.
pub(super) fn read_job<'a>(
    job: &Field<'a>,
    all: &[Field<'a>],
    global: &'a Field<'a>,
    version: &str,
) -> Result<Job, Error> {
    let options = Options::of_job(job, global);
    let threads = threads(job, &options, all);
    let measured = JobSides { threads, ..measured(job, &options, version)? };
    let name = match (job.get("hostname").text(), job.get("jobname").text().unwrap_or("job")) {
        (Some(host), name) => format!("{host}: {name}"),
        (None, name) => name.to_owned(),
    };
    let mut notes: Vec<String> = Vec::new();
    let sides = [
        ("reads", &measured.read),
        ("writes", &measured.write),
        ("trims", &measured.trim),
        ("operations", &measured.mixed),
    ];
    for (what, side) in sides {
        let unknown = side.counted.distribution.as_ref().and_then(|of| of.unknown_because.as_ref());
        notes.extend(unknown.map(|why| format!("Percentiles of {what}: {why}.")));
        notes.extend(side.without_submission.as_ref().map(|why| format!("Times of {what}: {why}.")));
    }
    if measured.mixed.counted.operations > 0 {
        notes.push(
            "fio counted reads and writes together (unified_rw_reporting): how many of each is not known."
                .to_owned(),
        );
    }
    let reads_back = options.verifies() && measured.read.counted.operations > 0;
    let is_interleaved = options.text("verify_backlog").is_some_and(|backlog| backlog != "0");
    let is_apart = reads_back && options.only_writes() && !is_interleaved;
    if reads_back && !is_apart && measured.write.counted.operations > 0 {
        notes.push(format!("Reads of {name} include those of the verification (`verify`)."));
    }
    let errors = job.get("total_err").count()?.unwrap_or(0);
    let error = job.get("error").count()?.unwrap_or(0);
    let errno = job.get("first_error").count()?.filter(|_| error == 0).unwrap_or(error);
    let cause = Errno(i32::try_from(errno).unwrap_or(i32::MAX)).to_string();
    let failed_because = (error > 0).then(|| format!("the job {name} of fio ended with an error: {cause}"));
    let incomplete_because = incomplete(&options, &measured, &name);
    let parts = parts(job, &options, measured, &name, is_apart)?;
    let mut job = Job { parts, failed_because, incomplete_because, notes };
    if let Some(part) = job.parts.first_mut() {
        // `failed_because` reports the error that ended the job, so it is not counted here.
        let survived = errors.saturating_sub(u64::from(error > 0));
        part.target.figures.add_errors(survived);
        if survived > 0 {
            job.notes.push(format!("{name}: {survived} operations failed, the first with: {cause}."));
        }
    }
    Ok(job)
}

fn measured(job: &Field<'_>, options: &Options<'_>, version: &str) -> Result<JobSides, Error> {
    let side = |name: &str| side(job, name, options, version);
    let (mut read, mut write, mut trim, mut mixed) =
        (side("read")?, side("write")?, side("trim")?, side("mixed")?);
    // With both forms (unified_rw_reporting=both) the separate directions are preferred.
    let known = [&read, &write, &trim].iter().any(|side| side.counted.operations > 0);
    let mut together = None;
    match options.pattern() {
        _ if known => together = std::mem::take(&mut mixed.counted).distribution,
        Some("read" | "randread") => read = std::mem::take(&mut mixed),
        Some("write" | "randwrite") => write = std::mem::take(&mut mixed),
        Some("trim" | "randtrim") => trim = std::mem::take(&mut mixed),
        _ => {}
    }
    let sync = job.get("sync");
    let timing = Timing::find(&sync, "lat");
    // fdatasync and sync_file_range appear only in the number of latencies.
    let operations = sync.get("total_ios").count()?.unwrap_or(0).max(timing.count()?);
    let distribution = timing.distribution(operations)?;
    // Results never include the sync after the last write, and those of combined directions include none.
    let is_uncounted = operations == 0
        && options.flush().is_some()
        && (sync.is_missing() || options.flushes_at_end())
        && !options.only_reads();
    let sync = DirectionFigures { operations, distribution, is_uncounted, ..DirectionFigures::default() };
    let job_seconds = job.get("job_runtime").seconds(1e3)?;
    Ok(JobSides { read, write, trim, sync, mixed, together, job_seconds, threads: 1 })
}

/// Checks the figures of a direction: operations without failures must have bytes, and none may exceed the
/// run time of fio.
fn check(job: &Field<'_>, of: &Field<'_>, counted: &DirectionFigures) -> Result<(), Error> {
    let failed = job.get("error").count()?.unwrap_or(0) + job.get("total_err").count()?.unwrap_or(0);
    if let Some(expected) = counted.missing_bytes().filter(|_| failed == 0) {
        return Err(of.get("io_bytes").wrong(&expected));
    }
    if let Some(expected) = counted.missing_operations() {
        return Err(of.get("total_ios").wrong(&expected));
    }
    // `elapsed` is in whole seconds since the start of fio, including the time before the measurement.
    let elapsed = job.get("elapsed").number()?.filter(|seconds| *seconds > 0.0);
    let most = elapsed.map_or(f64::INFINITY, |seconds| seconds + 1.0);
    ["lat", "clat"].iter().try_for_each(|name| Timing::find(of, name).check(most))
}

/// Reads a direction.
fn side(job: &Field<'_>, name: &str, options: &Options<'_>, version: &str) -> Result<Side, Error> {
    let of = &job.get(name);
    let operations = of.get("total_ios").count()?.unwrap_or(0);
    let seconds = seconds(of, operations)?;
    let distribution = times(of, operations, options)?;
    let without_submission = without_submission(of, operations)?;
    let bytes = bytes(of, version, seconds)?;
    let counted = DirectionFigures { operations, bytes, distribution, ..DirectionFigures::default() };
    check(job, of, &counted)?;
    Ok(Side { counted, seconds, without_submission })
}

/// Share of the mean time of an operation that its submission takes at most where the times of the completion
/// stand for the whole.
const SUBMISSION_MAX: f64 = 0.01;

/// Returns the timings of whole operations, of their completion and of their submission.
fn timings<'a>(of: &Field<'a>) -> [Timing<'a>; 3] {
    ["lat", "clat", "slat"].map(|name| Timing::find(of, name))
}

/// Returns what the times of a direction leave out: with `disable_lat`, fio times the completion alone.
/// `None` if the submission is known to take next to nothing.
fn without_submission(of: &Field<'_>, operations: u64) -> Result<Option<String>, Error> {
    let [whole, completion, submission] = timings(of);
    let (None, Some(completion)) = (whole.mean()?, completion.mean()?.filter(|_| operations > 0)) else {
        return Ok(None);
    };
    let alone =
        "those of the completion (clat) alone, because fio did not time whole operations (disable_lat)";
    Ok(match submission.mean()? {
        Some(submission) if submission <= completion * SUBMISSION_MAX => None,
        Some(submission) => Some(format!("{alone}; the submission took {} more", duration(submission))),
        None => Some(alone.to_owned()),
    })
}

/// Returns the latencies from submission (`lat`). By default fio lists percentiles of `clat` only, which
/// exclude the submission, although libaio serves a buffered read within it. With `disable_slat`, the
/// submission is the difference of the means.
fn times(of: &Field<'_>, operations: u64, options: &Options<'_>) -> Result<Option<Distribution>, Error> {
    let [whole, completion, submission] = timings(of);
    let submission = match (submission.mean()?, whole.mean()?.zip(completion.mean()?)) {
        (None, Some((whole, completion))) if options.is("disable_slat") => (whole - completion).max(0.0),
        (submission, _) => submission.unwrap_or(0.0),
    };
    let completion = completion.distribution(operations)?;
    let Some(mut whole) = whole.distribution(operations)? else { return Ok(completion) };
    let Some(listed) = completion.filter(|of| of.is_listed() && !whole.is_listed()) else {
        return Ok(Some(whole));
    };
    if submission <= whole.latency.mean * SUBMISSION_MAX {
        return Ok(Some(listed.with_figures(whole.latency)));
    }
    let (taken, mean) = (duration(submission), duration(whole.latency.mean));
    whole.unknown_because = Some(format!(
        "fio listed percentiles of the completion (clat) alone, and the submission takes {taken} of {mean}"
    ));
    Ok(Some(whole))
}

/// Returns the run time of a direction with `operations`. plumb prints the rate of the exact time beside
/// rounded milliseconds, which are too coarse for a short run; fio prints the rate of the milliseconds.
fn seconds(of: &Field<'_>, operations: u64) -> Result<f64, Error> {
    /// Maximum rounding error of a printed rate, in operations per second.
    const PRINTED: f64 = 1e-5;
    let seconds = of.get("runtime").seconds(1e3)?.unwrap_or(0.0);
    let rate = of.get("iops").number()?.filter(|rate| *rate > 0.0);
    let is_other = |rate: &f64| seconds > 0.0 && (operations as f64 / seconds - rate).abs() > PRINTED;
    let exact = rate.filter(is_other).map(|rate| operations as f64 / rate);
    Ok(exact.filter(|exact| (exact - seconds).abs() <= 0.5e-3).unwrap_or(seconds))
}

/// Returns the bytes of a direction that ran for `seconds`, whatever unit its version uses.
fn bytes(of: &Field<'_>, version: &str, seconds: f64) -> Result<u64, Error> {
    /// Number of bytes above which the rounding of a rate cannot be mistaken for another unit.
    const CERTAIN_MIN: f64 = 16.0;
    let (field, kibibytes) = (of.get("io_bytes"), of.get("io_kbytes").count()?);
    let number = field.count()?.unwrap_or(0);
    let by_rate = of.get("bw").number()?.unwrap_or(0.0) * seconds;
    let is_old = version.strip_prefix("fio-").is_some_and(|rest| rest.starts_with(['0', '1', '2']));
    let is_kibibytes = match kibibytes {
        Some(_) => false,
        None if by_rate >= CERTAIN_MIN => (number as f64) < by_rate * 32.0,
        None => is_old,
    };
    if !is_kibibytes {
        return Ok(number);
    }
    let bytes = number.checked_mul(Bytes::KIB);
    bytes.ok_or_else(|| field.wrong("expected a size in KiB of less than 16 EiB"))
}

/// Returns the reason why a job ended early, if its options determine its length.
fn incomplete(options: &Options<'_>, measured: &JobSides, name: &str) -> Option<String> {
    const ENDS_EARLIER: [&str; 6] = ["ss", "steadystate", "number_ios", "exitall", "exit_what", "io_size"];
    if !options.is("time_based") || ENDS_EARLIER.iter().any(|option| options.text(option).is_some()) {
        return None;
    }
    short_of(name, measured.seconds(), options.seconds("runtime")?)
}

impl JobSides {
    /// Returns the run time of the job, or of its longest direction if that is longer.
    fn seconds(&self) -> f64 {
        let sides = [&self.read, &self.write, &self.trim, &self.mixed];
        sides.iter().map(|side| side.seconds).chain(self.job_seconds).fold(0.0, f64::max)
    }
}

/// Splits the figures of a job into its phases.
fn parts(
    job: &Field<'_>,
    options: &Options<'_>,
    measured: JobSides,
    name: &str,
    is_verified_apart: bool,
) -> Result<Vec<Part>, Error> {
    let job_seconds = measured.job_seconds.unwrap_or_else(|| measured.seconds());
    let share = |name: &str| {
        let percent = job.get(name).number()?;
        match percent.filter(|percent| *percent > PROCESSOR_PERCENT_MAX) {
            Some(_) => Err(job.get(name).wrong(&format!("expected at most {PROCESSOR_PERCENT_MAX} percent"))),
            None => Ok(percent.map(|percent| percent / 100.0)),
        }
    };
    let (user, system) = (share("usr_cpu")?, share("sys_cpu")?);
    let depth = options.text("iodepth").map_or(Some(1), |text| text.parse::<u64>().ok());
    let JobSides { read, write, trim, sync, mixed, together, threads, .. } = measured;
    let (work_read, verification) =
        if is_verified_apart { (Side::default(), Some(read)) } else { (read, None) };
    let longest = [&work_read, &write, &trim, &mixed].iter().map(|side| side.seconds).fold(0.0, f64::max);
    let is_null_device = options.is_null_device();
    let target_name = options.text("filename").unwrap_or(name);
    let target_name = match job.get("hostname").text() {
        Some(host) if target_name != name => format!("{host}: {target_name}"),
        _ => target_name.to_owned(),
    };
    let part = |phase, seconds, figures: Figures| {
        let job = asked(options, &figures, threads, name, phase);
        let target = Target { name: target_name.clone(), is_null_device, figures, ..Target::default() };
        Part { phase, seconds, job, target }
    };
    let figures = Figures {
        worker_busy: user.zip(system).map(|(user, system)| user + system).filter(|_| threads == 1),
        cpu: user
            .zip(system)
            .map(|(user, system)| CpuSeconds { user: user * job_seconds, system: system * job_seconds }),
        depth: depth.map(|depth| depth.saturating_mul(threads)),
        ..Figures::from_directions(work_read.counted, write.counted, trim.counted, mixed.counted)
    };
    let distribution = together.or_else(|| figures.distribution.clone());
    let mut parts = vec![part(Phase::Work, longest, Figures { sync, distribution, ..figures })];
    parts.extend(verification.map(|read| {
        let figures = Figures::from_directions(
            read.counted,
            DirectionFigures::default(),
            DirectionFigures::default(),
            DirectionFigures::default(),
        );
        part(Phase::Verification, read.seconds, figures)
    }));
    Ok(parts)
}

/// Returns the requested load of a job in a phase.
fn asked(options: &Options<'_>, figures: &Figures, threads: u64, name: &str, phase: Phase) -> RunJob {
    let block = options.text("bs").and_then(|text| text.split(',').next()?.parse::<Bytes>().ok());
    let block = block.map(|bytes| bytes.0);
    let all = figures.read.operations.saturating_add(figures.write.operations);
    let measured = figures.write.operations.saturating_mul(100).checked_div(all).unwrap_or(0);
    // The requested mix is the same in every run of the job, so it takes precedence over the measured one.
    let percent = match options.pattern() {
        Some("rw" | "randrw" | "readwrite") => {
            let reads = options.number("rwmixread").map(|reads| 100_u64.saturating_sub(reads));
            options.number("rwmixwrite").or(reads).unwrap_or(50)
        }
        _ => measured,
    };
    let is_random = options.pattern().is_some_and(|rw| rw.starts_with("rand"));
    let does = match figures.mixed.operations {
        0 => description(is_random, percent, block.unwrap_or(4096)),
        _ => format!("reads and writes of {}", Bytes(block.unwrap_or(4096))),
    };
    let is_work = phase == Phase::Work;
    let is_synchronous = matches!(options.text("sync"), Some("1" | "sync" | "dsync"));
    RunJob {
        name: name.to_owned(),
        description: if is_work { does } else { format!("verification: {does}") },
        block_bytes: block,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        caching: match options.is("direct") || options.is_null_device() {
            true => Caching::Direct,
            false => Caching::Cached,
        },
        scheduled: options.text("rate").is_some() || options.text("rate_iops").is_some(),
        flush: options.flush().filter(|_| is_work),
        durable_write_every: is_synchronous.then_some(1).filter(|_| is_work && figures.write.operations > 0),
        ..RunJob::default()
    }
}
