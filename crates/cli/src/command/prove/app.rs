//! `plumb prove app`: an application recorded, every state that a power cut may leave explored, and what was
//! found.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Args;
use plumb_block::{Bytes, Nanos};
use plumb_linux::orphans::Adoption;
use plumb_measure::Out;
use plumb_prove::drives::{FIRST, FurtherDrive};
use plumb_prove::explore::Limits;
use plumb_prove::file_system::{FileSystem, FileSystemOptions};
use plumb_prove::judge::Judge;
use plumb_prove::proof::{Again, Further, KeptRecording, Request, SubjectWords, prove};
use plumb_prove::session::{self, PowerSwitch, RecordOptions, RecordedWork, record, record_with_calls};
use plumb_prove::subject::AckBy;
use plumb_report::document::proof::RecordingFacts;
use plumb_report::{Format, Kind, ProofDocument, render};
use plumb_state::OutputFile;
use plumb_targets::cache::CacheOnOneDrive;
use plumb_trial::environment;

use super::judging::{self, Ready};
use super::kept_run::{self, KeptRun};
use super::progress::ProofProgress;
use super::{cut, window};
use crate::arguments::line::parse;
use crate::arguments::output::{OutputArguments, PrintFormat};
use crate::arguments::running::{Detail, RecordingArguments};
use crate::exit::{self, Exit, Refusal, usage};
use crate::progress::Bar;
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
    /// Without a checker plumb compares each state with the files that the program itself had made visible.
    /// A program that acknowledges nothing then acknowledges its work by ending with exit status 0.
    #[arg(long, value_name = "CMD", requires = "work")]
    check: Option<String>,

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
    read: Option<String>,

    /// A shell command that prepares the file system before the power can go
    #[arg(long, value_name = "CMD", requires = "run")]
    setup: Option<String>,

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
    seed: Option<u64>,

    /// Largest number of states that are explored
    #[arg(long, value_name = "N", default_value_t = Limits::default().states)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    states: u64,

    /// Time limit of one exploration; the states that fail most often come first
    ///
    /// The first recording is explored once for each drive profile, each time within this limit. All further
    /// recordings together may take three times as long.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    budget: Nanos,

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
    target: Option<window::Window>,

    /// Name under which `plumb prove cut NAME` cuts the power of the running program
    ///
    /// The program is killed then, and what a cut at that moment may leave is explored, and nothing else.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["recording", "target", "needless_syncs", "recordings"])]
    name: Option<String>,

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

    /// Explore a recording that was kept instead of running anything again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "run", "drive_at", "fs", "mkfs_options", "mount_options", "size", "block_size", "run_timeout"])]
    recording: Option<PathBuf>,

    /// Explore a log of the kernel's dm-log-writes, a file or a device, instead of running anything
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
    recorded_in: RecordingArguments,
}

/// Records or reads a recording, explores it, and reports.
pub(crate) fn run(typed: AppArguments) -> anyhow::Result<Exit> {
    let format = typed.printed.format(Kind::Proof)?;
    let (style, writing) = (typed.detail.style(), typed.writing);
    let named = [typed.keep.clone(), typed.keep_log_writes.clone(), typed.junit.clone()];
    let outputs = writing.each(named.iter().flatten().map(PathBuf::as_path), &read_by(&typed))?;
    let [recording, log_writes, junit] = named
        .each_ref()
        .map(|path| outputs.iter().copied().find(|output| Some(output.path) == path.as_deref()));
    let (run, document) = proved(typed, Keep { recording, log_writes })?;
    let kept = run.finish(&document);
    let junit = junit.map_or(Ok(()), |output| {
        let text = render(&document, Format::Junit, style)?;
        output.write(text.as_bytes()).map_err(|error| anyhow::Error::from(Refusal::from(error)))
    });
    terminal::show(&document, format, style)?;
    kept.and(junit)?;
    Ok(exit::of_proof(&document))
}

/// Returns the files that the command reads, of those that are named.
fn read_by(typed: &AppArguments) -> Vec<PathBuf> {
    let AppArguments { run, check, recover, read, setup, recording, log_writes, base, .. } = typed;
    let mut files = judging::files_of([run, check, recover, read, setup].into_iter().flatten());
    files.extend([recording, log_writes, base].into_iter().flatten().cloned());
    files.extend(typed.resume.as_deref().map(kept_run::recording_of));
    files
}

/// Files that a recording is kept in, beside the run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keep<'a> {
    recording: Option<OutputFile<'a>>,
    log_writes: Option<OutputFile<'a>>,
}

/// Records or reads a recording, keeps it as `keep` says, and explores it. Returns the run, whose result is
/// not saved yet.
pub(super) fn proved(typed: AppArguments, keep: Keep<'_>) -> anyhow::Result<(KeptRun, ProofDocument)> {
    let (typed, argv_begun) = resumed(typed)?;
    let started_at = time_of_day();
    let out = match &typed.resume {
        Some(run) => Out::At { path: run.clone(), replace: true },
        None => out(&typed.recorded_in, "prove"),
    };
    check_work(&typed)?;
    kept_run::check(&out)?;
    check_automatic(&typed)?;
    check_drives(&typed)?;
    if typed.fs.is_posix() {
        check_posix(&typed)?;
    } else {
        judging::private_mounts()?;
    }
    let stop = stop::on_signals()?;
    let adoption = Adoption::begin().context("cannot adopt the processes that programs leave running")?;
    let mut shown = ProofProgress::new(Bar::on_stderr());
    let (kept, again) = work(&typed, &mut shown, &stop)?;
    let mut ready = Ready::new(kept, &typed.drive, typed.mount_here, &stop)?;
    let seed = typed.seed.unwrap_or_else(seed_from_clock);
    let run = KeptRun::begin(&out, &ready.kept, argv_begun, seed, &started_at, typed.resume.is_some())?;
    if let Some(output) = keep.recording {
        kept_run::keep_in(output, &ready.kept)?;
    }
    if let Some(output) = keep.log_writes {
        kept_run::keep_log_in(output, &ready.kept.recorded)?;
    }
    let cut = ready.confine().map(|after| format!("where it was requested, after {after}"));
    let target = cut.or_else(|| typed.target.as_ref().map(|window| format!("in {window}")));
    if let Some(window) = &typed.target {
        let work = window.within(&ready.kept.recorded)?;
        (ready.kept.recorded.from, ready.kept.recorded.until) = (work.start, work.end);
    }
    let checks = run.checks();
    let earlier = typed.resume.as_deref().map(kept_run::further_of).unwrap_or_default();
    let keep_further = |number, recorded: &RecordedWork| run.keep_further(number, recorded, &ready.kept);
    let limits = Limits { states: typed.states, visits: Limits::VISITS_MAX, ..Limits::default() };
    let workers = typed.workers;
    let request = Request {
        judge: Judge { limits, seed, workers, results: checks.as_deref(), ..ready.judge() },
        profiles: &ready.profiles,
        target,
        budget: Some(typed.budget.into()),
        again: again.as_ref(),
        further: Some(Further {
            count: typed.recordings.map(|all| all - 1),
            earlier: &earlier,
            keep: &keep_further,
            kept: &|number| run.kept_further(number),
        }),
        recovery_depth: typed.recovery_depth.unwrap_or(2),
        needless_syncs: typed.needless_syncs,
        change: !typed.no_change,
        environment: environment(&argv(), &started_at),
        run_directory: run.path().map(|path| path.display().to_string()),
        keep: &|so_far| run.keep(so_far),
    };
    let proof = prove(&request, &mut |doing, done| shown.show(doing, done));
    shown.end();
    let mut document = proof?;
    document.notes.extend(
        adoption.end().iter().map(|name| format!("a program left `{name}` running, and plumb killed it")),
    );
    Ok((run, document))
}

/// Returns the arguments with those of the run that is to go on in their place, of all that they do not say
/// themselves; and the command line with which the run was begun.
fn resumed(typed: AppArguments) -> anyhow::Result<(AppArguments, Vec<String>)> {
    let Some(run) = &typed.resume else { return Ok((typed, argv())) };
    let manifest = plumb_measure::Recording::open(run).map_err(usage)?.manifest;
    let of_then = match &manifest.argv[..] {
        [_, prove, rest @ ..] if prove == "prove" => parse(rest.iter().cloned()).ok(),
        _ => None,
    };
    let of_then = of_then.ok_or_else(|| {
        Refusal::new(
            Exit::Usage,
            format!("{}: expected the directory of a run of `plumb prove app`", run.display()),
        )
    })?;
    let arguments = AppArguments {
        recording: Some(kept_run::recording_of(run)),
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
        ..of_then
    };
    Ok((arguments, manifest.argv))
}

/// Reads the work or records it, to be explored; also returns how it can be recorded again if it can.
fn work(
    typed: &AppArguments,
    shown: &mut ProofProgress,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(KeptRecording, Option<Again>)> {
    match (&typed.recording, &typed.log_writes) {
        (None, None) => recorded(typed, shown, stop),
        (None, Some(log)) => Ok((logged(typed, log)?, None)),
        (Some(path), _) => {
            let kept = kept_run::load(path)?;
            let again = typed.resume.as_ref().and_then(|_| again(typed, &kept));
            Ok((kept, again))
        }
    }
}

/// Records the work of the subject, to be explored; also returns how it can be recorded again if it can.
fn recorded(
    typed: &AppArguments,
    shown: &mut ProofProgress,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(KeptRecording, Option<Again>)> {
    let words = match (&typed.subject, &typed.run) {
        (None, Some(run)) => SubjectWords::Command {
            setup: typed.setup.as_deref().map(judging::from_here),
            run: judging::from_here(run),
            check: typed.check.as_deref().map(judging::from_here),
            recover: typed.recover.as_deref().map(judging::from_here),
            read: typed.read.as_deref().map(judging::from_here),
            ack: typed.ack.clone(),
            user: typed.user.clone(),
        },
        (name, ..) => SubjectWords::BuiltIn(name.clone().unwrap_or_default()),
    };
    let subject = judging::subject(&words, typed.run_timeout.into(), stop)?;
    let AppArguments { drive, drive_at, block_size, fs, mount_here, .. } = typed;
    let profiles = judging::profiles(drive, *block_size, *fs, drive_at, *mount_here)?;
    let least = Bytes(typed.fs.size_min_mib() << 20);
    if typed.size < least {
        let message = format!("--size {}: {} needs {least} at least", typed.size, typed.fs);
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let mut options = options(typed, profiles[0].cache);
    let power = Arc::<PowerSwitch>::default();
    let named = typed.name.as_deref().map(|name| cut::named(name, &power)).transpose()?;
    options.power = named.as_ref().map(|_| power);
    shown.say(&format!("recording {}", subject.name()));
    let program = judging::program(&words);
    let recorded = match &program {
        Some(program) => record_with_calls(&*subject, program, &options, stop),
        None => record(&*subject, &options, stop),
    };
    let kept = KeptRecording {
        schema: KeptRecording::SCHEMA.to_owned(),
        subject: words,
        file_system: typed.fs,
        check_timeout: typed.check_timeout.as_secs_f64(),
        recorded: recorded?,
    };
    options.power = None;
    drop(named);
    // Another run would not be cut at the same place.
    let program = program.filter(|_| !kept.recorded.is_cut);
    Ok((kept, program.map(|program| Again { options, program, writeback: None })))
}

/// Reads a log of dm-log-writes.
fn logged(typed: &AppArguments, log: &Path) -> anyhow::Result<KeptRecording> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| {
        Refusal::new(Exit::Usage, format!("{}: {why}", path.display()))
    };
    let open = |path: &Path| File::open(path).map_err(|error| wrong(path, &error));
    let mut base = typed.base.as_deref().map(open).transpose()?;
    let base = base.as_mut().map(|base| base as &mut dyn Read);
    let opened = BufReader::new(open(log)?);
    let recorded = session::logged(opened, base, typed.check.is_none());
    let recorded = recorded.map_err(|error| wrong(log, &error))?;
    let subject = match &typed.check {
        None => SubjectWords::BuiltIn("fsck".to_owned()),
        Some(check) => SubjectWords::Command {
            setup: None,
            run: log.display().to_string(),
            check: Some(judging::from_here(check)),
            recover: typed.recover.as_deref().map(judging::from_here),
            read: None,
            ack: typed.ack.clone(),
            user: None,
        },
    };
    Ok(KeptRecording {
        schema: KeptRecording::SCHEMA.to_owned(),
        subject,
        file_system: typed.fs,
        check_timeout: typed.check_timeout.as_secs_f64(),
        recorded,
    })
}

/// Checks that there is a program to record, or a recording.
fn check_work(typed: &AppArguments) -> Result<(), Refusal> {
    let AppArguments { subject, run, recording, log_writes, fs, .. } = typed;
    if subject.is_some() || run.is_some() || recording.is_some() || log_writes.is_some() {
        return Ok(());
    }
    let built_in = if fs.is_posix() { "" } else { ", a built-in one with --subject NAME" };
    let message = format!(
        "there is nothing to record: name a program with --run CMD{built_in}, or a recording that was kept with \
         --recording FILE"
    );
    Err(Refusal::new(Exit::Usage, message))
}

/// Checks that states can be judged without a checker where there is none.
fn check_automatic(typed: &AppArguments) -> Result<(), Refusal> {
    let why = match (&typed.run, &typed.check) {
        (Some(_), None) if typed.fs == FileSystem::None => "--fs none has no files to compare",
        (Some(_), None) if typed.ack != AckBy::ControlFile.name() => {
            "without a checker the program acknowledges through the control file"
        }
        _ => return Ok(()),
    };
    Err(Refusal::new(Exit::Usage, format!("{why}: name a checker with --check")))
}

/// Checks that further drives can be mounted, if there are any.
fn check_drives(typed: &AppArguments) -> Result<(), Refusal> {
    let AppArguments { drive_at, fs, drive, .. } = typed;
    let has_cache = drive.iter().any(|profile| profile.starts_with("cache:"));
    if typed.keep_log_writes.is_some() && (fs.is_posix() || has_cache || !drive_at.is_empty()) {
        return Err(kept_run::not_one_drive());
    }
    let Some(first) = drive_at.first() else { return Ok(()) };
    let names = drive_at.iter().map(|further| &*further.directory);
    let names: BTreeSet<&Path> = names.chain([Path::new(FIRST)]).collect();
    let why = if fs.is_posix() {
        format!("--fs {fs} has no drive: leave it out, or choose ext4, xfs, btrfs or f2fs")
    } else if has_cache {
        "a write-back cache has one drive: leave out either".to_owned()
    } else if names.len() <= drive_at.len() {
        "two drives have the same name (`first` is the first one): name another one".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::new(Exit::Usage, format!("--drive-at {}: {why}", first.directory.display())))
}

/// Checks that nothing is asked of the POSIX model that it does not have.
fn check_posix(typed: &AppArguments) -> Result<(), Refusal> {
    let fs = typed.fs;
    if !typed.mount_options.is_empty() || !typed.mkfs_options.is_empty() {
        let message =
            format!("--mount-options, --mkfs-options: with --fs {fs} nothing is mounted: leave them out");
        return Err(Refusal::new(Exit::Usage, message));
    }
    if typed.recovery_depth.is_some_and(|depth| depth > 1) {
        let message =
            format!("--recovery-depth: with --fs {fs} checks are not cut: choose ext4, xfs or btrfs");
        return Err(Refusal::new(Exit::Usage, message));
    }
    if typed.drive != ["volatile"] {
        return Err(Refusal::new(Exit::Usage, format!("--fs {fs} has no drive: leave --drive out")));
    }
    if typed.ack != AckBy::ControlFile.name() {
        let message =
            format!("--ack {}: with --fs {fs} the program acknowledges through the control file", typed.ack);
        return Err(Refusal::new(Exit::Usage, message));
    }
    Ok(())
}

/// Returns how the work of an earlier run can be recorded again; `None` if it cannot be.
fn again(typed: &AppArguments, kept: &KeptRecording) -> Option<Again> {
    if kept.recorded.facts.attached_by == RecordingFacts::BY_LOG_WRITES || kept.recorded.is_cut {
        return None;
    }
    let program = judging::program(&kept.subject)?;
    let options = options(typed, kept.recorded.cache);
    Some(Again { options, program, writeback: None })
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
        timeout: typed.run_timeout.into(),
        cache,
        power: None,
    }
}

/// Parses the logical block of a drive: 512 or 4096 bytes.
fn block_size(typed: &str) -> Result<Bytes, String> {
    let size = typed.parse().ok().filter(|size: &Bytes| [512, 4096].contains(&size.0));
    size.ok_or_else(|| "expected 512 or 4096".to_owned())
}
