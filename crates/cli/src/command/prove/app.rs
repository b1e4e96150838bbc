//! `plumb prove app`: records an application, explores every state that a power cut may leave, and reports
//! the failures.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Args;
use plumb_block::{Bytes, FailureKind, Nanos};
use plumb_caches::CacheOnOneDrive;
use plumb_linux::orphans::Adoption;
use plumb_measure::{Manifest, Out};
use plumb_prove::drives::FurtherDrive;
use plumb_prove::explore::Limits;
use plumb_prove::file_system::{FileSystem, FileSystemOptions};
use plumb_prove::judge::Judge;
use plumb_prove::profile::DriveProfile;
use plumb_prove::proof::{
    Again, KeptRecording, ProofRun, ReadyRecording, Request, SubjectWords, Watch, files_of, from_here,
    not_one_drive, prove, record_subject, recording_of,
};
use plumb_prove::session::{PowerSwitch, RecordOptions, Window, private_mounts, read_log};
use plumb_report::progress::Bar;
use plumb_report::{Format, Kind, ProofDocument, render};
use plumb_state::OutputFile;
use plumb_trial::environment;

use super::cut;
use super::progress::ProofProgress;
use crate::arguments::line::parse;
use crate::arguments::output::{OutputArguments, PrintFormat};
use crate::arguments::running::{Detail, RecordingArguments};
use crate::exit::{self, Exit, Refusal, refuse_if, usage};
use crate::surroundings::{argv, out, seed_from_clock, time_of_day};
use crate::{stop, terminal};

/// Arguments of `plumb prove app`.
#[derive(Debug, Args)]
pub(crate) struct AppArguments {
    /// A built-in subject with its options, such as sqlite:journal=wal; a wrong name lists them
    #[arg(long, value_name = "NAME", conflicts_with_all = ["run", "check", "recover", "read", "setup", "user", "ack"])]
    subject: Option<String>,

    /// The program to put to the test, a shell command
    #[arg(long, value_name = "CMD", group = "work")]
    run: Option<String>,

    /// The checker, a shell command that looks at a state and exits with 0 (intact), 1 (lost) or 2 (corrupt)
    ///
    /// It runs for each state. --recording runs the checker with which the recording was made.
    /// Without a checker plumb compares each state with the files that the program itself had made visible.
    /// A program that acknowledges nothing then acknowledges its work by ending with exit status 0.
    #[arg(long, value_name = "CMD", requires = "work")]
    pub(super) check: Option<String>,

    /// A shell command that recovers a state before --check looks at it; its exit codes are those of --check
    ///
    /// Power cuts after the first (--recovery-depth) happen during this command, and no longer during the
    /// check.
    #[arg(long, value_name = "CMD", requires = "check")]
    recover: Option<String>,

    /// Without --check: compare what this shell command prints of a state
    ///
    /// The files themselves are not compared then: for programs that repair their files when they start.
    #[arg(long, value_name = "CMD", requires = "run", conflicts_with = "check")]
    pub(super) read: Option<String>,

    /// A shell command that prepares the file system before the power can go
    #[arg(long, value_name = "CMD", requires = "run")]
    pub(super) setup: Option<String>,

    /// The user, by name or number, that --run, --check and --setup run as; needs root. The file system and
    /// the control file belong to that user
    #[arg(long, value_name = "NAME", requires = "run")]
    user: Option<String>,

    /// How the program acknowledges: control-file, fd:N, or stdout (lines ACK N); only the control file can
    /// prove
    #[arg(long, value_name = "HOW", requires = "run", default_value = "control-file")]
    ack: String,

    /// The drive profile, or several with commas between, which are compared over one recording; a wrong name
    /// lists them
    ///
    /// cache:PROFILE puts a write-back cache in front of such a drive, with its log on another one: both lose
    /// their power at once, and the cache recovers each state. cache:PROFILE?size=8M&mode=ordered says how
    /// long the log is, and when writes are acknowledged.
    #[arg(long, value_name = "PROFILE", value_delimiter = ',', default_value = "volatile")]
    drive: Vec<String>,

    /// Another drive, mounted at directory DIR of the first one's file system, such as log=64M
    ///
    /// Each drive has a file system of the same kind. The power of all drives goes at one moment, and each
    /// loses what it may lose. log=64M,protected has a profile of its own in place of that of --drive. With
    /// --fs none nothing is mounted: the program and the checker start in a directory with a link to each
    /// drive, `first` and DIR. May be given several times; DIR is a plain name.
    #[arg(long, value_name = "DIR=SIZE[,PROFILE]", requires = "check")]
    drive_at: Vec<FurtherDrive>,

    /// The file system: ext4, xfs, btrfs, f2fs or none; or posix, any that promises only what POSIX does
    ///
    /// posix follows from the system calls of the program, and needs no root, mount and drive. With
    /// posix:garbage a block that was not written may hold other bytes than zeroes.
    #[arg(long, value_name = "FS", default_value = "ext4")]
    fs: FileSystem,

    /// Arguments for mkfs of the file system, after those that plumb gives it, such as `-O fast_commit`
    #[arg(
        long,
        value_name = "ARGS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    mkfs_options: String,

    /// Mount options with commas between, such as data=journal: for the recording, and for each state
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    mount_options: String,

    /// Capacity of the drive, in memory as far as it is written; with --fs posix the most memory that the
    /// recording takes; default 512M
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    size: Bytes,

    /// Logical block of the drive, which never tears: 4096 bytes, or 512. A torn superblock makes an ext4
    /// unmountable on the latter
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = block_size)]
    block_size: Bytes,

    /// Seed of all random choices; default from the clock, and always reported
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Largest number of states that are explored
    #[arg(long, value_name = "N", default_value_t = Limits::default().states)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    states: u64,

    /// Time limit of one exploration; the states that fail most often come first
    ///
    /// The first recording is explored once for each drive profile, each time within this limit. All further
    /// recordings together may take three times as long.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(super) budget: Nanos,

    /// Largest number of recordings of the program; default 12 and one for each of its sync calls
    ///
    /// The first recording is as the kernel writes back. In each further one plumb chooses what the file
    /// system writes back before a sync asks for it. 1 for the first alone.
    #[arg(long, value_name = "N", conflicts_with = "recording")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    recordings: Option<u64>,

    /// Number of power cuts in a row; default 2, and 1 with --fs posix or none
    ///
    /// Each later cut happens while the state left by the previous cut is checked, if that was intact and
    /// the check wrote something. 1 for no cut during checks.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4))]
    recovery_depth: Option<u32>,

    /// Cut the power only between two events, such as ack:3..ack:4 or flush:2:submitted..flush:3:completed
    #[arg(long, value_name = "EVENT..EVENT")]
    target: Option<Window>,

    /// Name under which `plumb prove cut NAME` cuts the power of the running program
    ///
    /// The program is killed then, and what a cut at that moment may leave is explored, and nothing else.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["recording", "target", "needless_syncs", "recordings"])]
    pub(super) name: Option<String>,

    /// How many checks run side by side; default one for each processor
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    workers: usize,

    /// How long the program may run
    #[arg(long, value_name = "TIME", default_value = "10m")]
    run_timeout: Nanos,

    /// How long each check may take; one that takes longer ends the run
    #[arg(long, value_name = "TIME", default_value = "20s")]
    check_timeout: Nanos,

    /// Let this kernel mount the states of a drive that breaks its contract: the kernel may crash
    #[arg(long)]
    mount_here: bool,

    /// Explore a recording that was kept instead of making another one
    ///
    /// The checker of the recording (--check, --recover, --read) runs for each state, as the user of the
    /// recording; no other checker can be given.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "run", "check", "recover", "read", "setup", "user", "ack", "drive_at", "fs", "mkfs_options", "mount_options", "size", "block_size", "run_timeout"])]
    recording: Option<PathBuf>,

    /// Explore a log of the kernel's dm-log-writes, a file or a device, instead of making a recording
    ///
    /// The log is of a device with the file system --fs. A mark that is a number acknowledges; the power can
    /// go from the mark `mkfs` on. Without --check only the file system's own checker looks.
    #[arg(long, value_name = "LOG", group = "work", conflicts_with_all = ["subject", "recording", "drive_at", "size", "block_size", "run_timeout", "name", "recordings", "needless_syncs"])]
    log_writes: Option<PathBuf>,

    /// Contents of the device of the log before its first entry; without this the device was blank
    #[arg(long, value_name = "IMAGE", requires = "log_writes")]
    base: Option<PathBuf>,

    /// Write the recording to FILE as a log of dm-log-writes, which xfstests' replay-log replays
    #[arg(long, value_name = "FILE")]
    keep_log_writes: Option<PathBuf>,

    /// Keep the recording in FILE as well; a run directory always holds it
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,

    /// Resume an interrupted run from its directory, with the options that it was started with
    #[arg(long, value_name = "RUN")]
    #[arg(conflicts_with_all = ["subject", "run", "recording", "log_writes", "keep_log_writes", "drive", "drive_at", "fs", "mkfs_options", "mount_options", "size", "block_size", "seed", "target", "name", "keep", "out", "no_record"])]
    resume: Option<PathBuf>,

    /// Do not look for changes that remove a failure
    #[arg(long)]
    no_change: bool,

    /// Look for sync calls that can go: where no state fails, run the program without each of them, as if it
    /// had succeeded, and explore that
    #[arg(long, conflicts_with = "recording")]
    needless_syncs: bool,

    #[command(flatten)]
    printed: PrintFormat,

    /// Write the result to FILE as JUnit XML, for a build server
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    writing: OutputArguments,

    #[command(flatten)]
    detail: Detail,

    #[command(flatten)]
    pub(super) recorded_in: RecordingArguments,
}

/// Records the application or reads a recording, explores it, and reports.
pub(crate) fn run(typed: AppArguments) -> anyhow::Result<Exit> {
    let format = typed.printed.format(Kind::Proof)?;
    let (style, writing) = (typed.detail.style(), typed.writing);
    let named = [typed.keep.clone(), typed.keep_log_writes.clone(), typed.junit.clone()];
    let outputs = writing.each(named.iter().flatten().map(PathBuf::as_path), &read_by(&typed))?;
    let [recording, log_writes, junit] = named
        .each_ref()
        .map(|path| outputs.iter().copied().find(|output| Some(output.path) == path.as_deref()));
    let (run, document) = proved(typed, Keep { recording, log_writes })?;
    let kept = run.finish(&document, time_of_day()).map_err(anyhow::Error::from);
    let junit = junit.map_or(Ok(()), |output| {
        let text = render(&document, Format::Junit, style)?;
        output.write(text.as_bytes()).map_err(anyhow::Error::from)
    });
    terminal::show(&document, format, style)?;
    kept.and(junit)?;
    Ok(exit::of_proof(&document))
}

/// Returns the named files that the command reads.
fn read_by(typed: &AppArguments) -> Vec<PathBuf> {
    let AppArguments { run, check, recover, read, setup, recording, log_writes, base, .. } = typed;
    let mut files = files_of([run, check, recover, read, setup].into_iter().flatten());
    files.extend([recording, log_writes, base].into_iter().flatten().cloned());
    files.extend(typed.resume.as_deref().map(|run| recording_of(run, 0)));
    files
}

/// Files to which a recording is written, beside the run directory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keep<'a> {
    recording: Option<OutputFile<'a>>,
    log_writes: Option<OutputFile<'a>>,
}

/// Records the application or reads a recording, writes it to the files in `keep`, and explores it. The
/// result is not yet saved in the returned run.
pub(super) fn proved(typed: AppArguments, keep: Keep<'_>) -> anyhow::Result<(ProofRun, ProofDocument)> {
    let (typed, argv_begun) = resumed(typed)?;
    let started_at = time_of_day();
    let out = match &typed.resume {
        Some(run) => Out::At { path: run.clone(), replace: true },
        None => out(&typed.recorded_in, "prove"),
    };
    let subject = subject(&typed)?;
    ProofRun::check(&out)?;
    check(&typed, &subject)?;
    if !typed.fs.is_posix() {
        private_mounts()?;
    }
    let stop = stop::on_signals()?;
    let adoption = Adoption::begin().context("cannot adopt the processes that programs leave running")?;
    let shown = RefCell::new(ProofProgress::new(Bar::on_stderr()));
    let watch = |doing: &str, done| shown.borrow_mut().show(doing, done);
    let (kept, again) = work(&typed, subject, &watch, &stop)?;
    let mut ready = ReadyRecording::new(kept, &typed.drive, typed.mount_here, &stop)?;
    let seed = typed.seed.unwrap_or_else(seed_from_clock);
    let say = |line: &str| terminal::say(&format!("plumb: {line}"));
    let manifest = Manifest::starting("prove", argv_begun, seed, &started_at);
    let run = ProofRun::begin(&out, &manifest, &ready.kept, typed.resume.is_some(), say)?;
    keep.recording.map_or(Ok(()), |output| ready.kept.keep_in(output))?;
    keep.log_writes.map_or(Ok(()), |output| ready.kept.keep_log_in(output))?;
    let target = ready.confine(typed.target.as_ref())?;
    let checks = run.checks();
    let limits = Limits { states: typed.states, visits: Limits::VISITS_MAX, ..Limits::default() };
    let workers = typed.workers;
    let request = Request {
        judge: Judge { limits, seed, workers, results: checks.as_deref(), ..ready.judge() },
        profiles: &ready.profiles,
        target,
        budget: typed.budget,
        again: again.as_ref(),
        further: typed.recordings.map(|all| all - 1),
        recovery_depth: typed.recovery_depth.unwrap_or(2),
        needless_syncs: typed.needless_syncs,
        change: !typed.no_change,
        environment: environment(&argv(), &started_at),
        run: &run,
        watch: &watch,
    };
    let proof = prove(&request);
    shown.borrow().end();
    let mut document = proof?;
    document.notes.extend(
        adoption.end().iter().map(|name| format!("a program left `{name}` running, and plumb killed it")),
    );
    Ok((run, document))
}

/// Returns the arguments, and the command line that started the run. With `--resume`, the arguments of that
/// run replace those that cannot be given again.
fn resumed(typed: AppArguments) -> anyhow::Result<(AppArguments, Vec<String>)> {
    let Some(run) = &typed.resume else { return Ok((typed, argv())) };
    let manifest = plumb_measure::Recording::open(run).map_err(usage)?.manifest;
    let recorded = match &manifest.argv[..] {
        [_, prove, rest @ ..] if prove == "prove" => parse(rest.iter().cloned()).ok(),
        _ => None,
    };
    let problem = || format!("{}: expected the directory of a run of `plumb prove app`", run.display());
    let recorded = recorded.ok_or_else(|| Refusal::new(FailureKind::Usage, problem()))?;
    let arguments = AppArguments {
        recording: Some(recording_of(run, 0)),
        seed: Some(manifest.seed),
        resume: typed.resume,
        printed: typed.printed,
        junit: typed.junit,
        writing: typed.writing,
        detail: typed.detail,
        budget: typed.budget,
        keep: None,
        keep_log_writes: None,
        log_writes: None,
        ..recorded
    };
    Ok((arguments, manifest.argv))
}

/// Returns the typed subject; a recording that is read has its own.
fn subject(typed: &AppArguments) -> Result<SubjectWords, Refusal> {
    let AppArguments { subject, run, recording, log_writes, fs, .. } = typed;
    let command = |run| SubjectWords::Command {
        setup: typed.setup.as_deref().map(from_here),
        run,
        check: typed.check.as_deref().map(from_here),
        recover: typed.recover.as_deref().map(from_here),
        read: typed.read.as_deref().map(from_here),
        ack: typed.ack.clone(),
        user: typed.user.clone(),
    };
    Ok(match (subject, run, log_writes, recording) {
        (Some(name), ..) => SubjectWords::BuiltIn(name.clone()),
        (_, Some(run), ..) => command(from_here(run)),
        (_, _, Some(log), _) if typed.check.is_some() => command(log.display().to_string()),
        (_, _, Some(_), _) => SubjectWords::BuiltIn("fsck".to_owned()),
        (.., Some(_)) => SubjectWords::BuiltIn(String::new()),
        _ => {
            let built_in = if fs.is_posix() { "" } else { ", a built-in one with --subject NAME" };
            let message = format!(
                "there is nothing to record: name a program with --run CMD{built_in}, or a recording that was kept with \
                 --recording FILE"
            );
            return Err(Refusal::new(FailureKind::Usage, message));
        }
    })
}

/// Checks that the arguments are compatible with one another.
fn check(typed: &AppArguments, subject: &SubjectWords) -> anyhow::Result<()> {
    let AppArguments { fs, drive, drive_at, .. } = typed;
    let is_one_drive =
        !fs.is_posix() && drive_at.is_empty() && !drive.iter().any(|profile| profile.starts_with("cache:"));
    if typed.keep_log_writes.is_some() && !is_one_drive {
        return Err(not_one_drive().into());
    }
    if typed.log_writes.is_none() {
        subject.check(*fs)?;
    }
    options(typed, None).check(drive)?;
    let message = format!("--recovery-depth: with --fs {fs} checks are not cut: choose ext4, xfs or btrfs");
    refuse_if!(fs.is_posix() && typed.recovery_depth.is_some_and(|depth| depth > 1), Usage, message);
    Ok(())
}

/// Reads or makes the recording to be explored. Also returns the means to record again, if that is possible.
fn work(
    typed: &AppArguments,
    subject: SubjectWords,
    watch: Watch<'_>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(KeptRecording, Option<Again>)> {
    let AppArguments { fs, drive, drive_at, block_size, mount_here, check_timeout, .. } = typed;
    if let Some(path) = &typed.recording {
        let kept = KeptRecording::open(path)?;
        let again = typed.resume.as_ref().and_then(|_| Again::new(&kept, options(typed, None)));
        return Ok((kept, again));
    }
    if let Some(log) = &typed.log_writes {
        let recorded = read_log(log, typed.base.as_deref(), typed.check.is_none())?;
        return Ok((KeptRecording::new(subject, *fs, *check_timeout, recorded), None));
    }
    let profiles = DriveProfile::parse_all(drive, *block_size, *fs, drive_at, *mount_here)?;
    let power = Arc::<PowerSwitch>::default();
    let named = typed.name.as_deref().map(|name| cut::named(name, &power)).transpose()?;
    let options =
        RecordOptions { power: named.is_some().then_some(power), ..options(typed, profiles[0].cache) };
    Ok(record_subject(subject, options, *check_timeout, stop, watch)?)
}

/// Returns the options of a recording.
fn options(typed: &AppArguments, cache: Option<CacheOnOneDrive>) -> RecordOptions {
    RecordOptions {
        size: typed.size,
        logical_block: typed.block_size,
        file_system: typed.fs,
        file_system_options: FileSystemOptions {
            make: typed.mkfs_options.split_whitespace().map(str::to_owned).collect(),
            mount: typed.mount_options.clone(),
            further: typed.drive_at.clone(),
        },
        directory: std::env::temp_dir(),
        timeout: typed.run_timeout,
        cache,
        power: None,
    }
}

/// Parses the size of a logical block: 512 or 4096 bytes.
fn block_size(typed: &str) -> Result<Bytes, String> {
    let size = typed.parse().ok().filter(|size: &Bytes| [512, 4096].contains(&size.0));
    size.ok_or_else(|| "expected 512 or 4096".to_owned())
}
