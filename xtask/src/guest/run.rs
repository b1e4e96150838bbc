//! Commands: plan the boots, run them in parallel, judge, print a line per scenario, and record.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::boot::{self, End, Run};
use super::interrupt::Interrupts;
use super::kernel::{self, Kernel};
use super::lab::{Files, Lab};
use super::modules::Modules;
use super::oracle::Oracle;
use super::scenario::{Group, Scenario};
use super::{Options, cache_directory, disk, initramfs, scenarios, simulated};
use crate::packages::{Outcome, ensure_installed};
use crate::tally::Tally;

/// Parameters of `guest run`.
pub(crate) struct Request {
    /// Options of every boot.
    pub options: Options,
    /// Directory for recordings.
    pub record: Option<PathBuf>,
    /// Number of guests in parallel.
    pub jobs: usize,
    /// File with the scenarios; `None` for the built-in ones.
    pub group: Option<PathBuf>,
    /// Names of scenarios; empty for all.
    pub scenarios: Vec<String>,
}
/// Runs the requested scenarios.
///
/// # Errors
/// If the laboratory cannot be built, or after an interrupt. A failed scenario is counted instead.
pub(crate) fn run(request: &Request) -> Result<Tally> {
    let known = match &request.group {
        Some(file) => {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
            &*vec![Group::parse("group", &text).with_context(|| format!("reading {}", file.display()))?]
                .leak()
        }
        None => scenarios::GROUPS.as_slice(),
    };
    let mut groups = select(known, &request.scenarios)?;
    let mut unserved = Tally::default();
    if request.options.plumb.is_none() {
        unserved.skipped = without_simulated(&mut groups);
    }
    let Some(workshop) = Workshop::open(&request.options)? else {
        let skipped: usize = groups.iter().map(|(_, chosen)| chosen.len()).sum();
        return Ok(Tally { skipped: skipped + unserved.skipped, ..Tally::default() });
    };
    let interrupts = Interrupts::install()?;
    let began = Instant::now();
    let labs: Mutex<VecDeque<Lab>> =
        Mutex::new(groups.into_iter().map(|(group, chosen)| workshop.lab(group, chosen, false)).collect());
    let tally = Mutex::new(unserved);
    std::thread::scope(|scope| {
        for _ in 0..request.jobs.max(1) {
            scope.spawn(|| {
                while let Some(lab) = next(&labs).filter(|_| !interrupts.seen()) {
                    let began = Instant::now();
                    let console = workshop.console(&lab);
                    let runs = boot::run(&lab, &console, &interrupts);
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    for run in &runs {
                        report(run, request.record.as_deref(), &console, &mut tally);
                    }
                    eprintln!(
                        "boot {}: {} scenarios in {:.1} s",
                        lab.name,
                        runs.len(),
                        began.elapsed().as_secs_f64()
                    );
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Tally { passed, skipped, failed } = tally;
    eprintln!(
        "{passed} passed, {skipped} skipped, {failed} failed in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    ensure!(!interrupts.seen(), "interrupted");
    Ok(tally)
}

/// Returns the notes of the programs of a boot by scenario. A scenario that did not end has the reason
/// instead.
///
/// # Errors
/// If the laboratory cannot be built.
pub(crate) fn notes(options: &Options, group: &'static Group) -> Result<Vec<(&'static str, Vec<String>)>> {
    let Some(workshop) = Workshop::open(options)? else { return Ok(Vec::new()) };
    let interrupts = Interrupts::install()?;
    let lab = workshop.lab(group, group.scenarios.iter().collect(), false);
    let runs = boot::run(&lab, &workshop.console(&lab), &interrupts);
    let noted = runs.into_iter().map(|run| {
        let mut notes = run.evidence.notes;
        match run.end {
            End::Completed => {}
            End::Skipped(reason) | End::Failed(reason) => notes.push(reason),
        }
        (&*run.scenario.name, notes)
    });
    Ok(noted.collect())
}

/// Removes the scenarios with drives that plumb would have to serve. Returns their number.
fn without_simulated(groups: &mut Vec<(&'static Group, Vec<&'static Scenario>)>) -> usize {
    let mut skipped = 0;
    for (_, chosen) in groups.iter_mut() {
        chosen.retain(|scenario| {
            if scenario.needs_plumb() {
                say(&format!("SKIP {:28} its drive is served by plumb: give --plumb", scenario.name));
                skipped += 1;
            }
            !scenario.needs_plumb()
        });
    }
    groups.retain(|(_, chosen)| !chosen.is_empty());
    skipped
}

fn next<'a>(labs: &Mutex<VecDeque<Lab<'a>>>) -> Option<Lab<'a>> {
    labs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Boots the drives of one scenario with a shell on this terminal.
///
/// # Errors
/// If the laboratory cannot be built or QEMU cannot be started.
pub(crate) fn shell(options: &Options, name: &str) -> Result<ExitCode> {
    let (group, chosen) =
        select(&scenarios::GROUPS, &[name.to_owned()])?.into_iter().next().context("nothing was selected")?;
    let Some(workshop) = Workshop::open(options)? else { return Ok(ExitCode::SUCCESS) };
    let lab = workshop.lab(group, chosen, true);
    let directory = tempfile::tempdir().context("making a directory")?;
    let files = Files {
        initramfs: directory.path().join("initramfs"),
        channel: directory.path().join("channel"),
        console: workshop.console(&lab),
        complaints: workshop.console(&lab),
        trace: directory.path().join("trace"),
        resumed: None,
    };
    initramfs::write(&lab, &files.initramfs)?;
    let drives = disk::attach(&lab.disks(), directory.path())?;
    ensure!(
        lab.plumb.is_some() || !lab.scenarios.iter().any(|scenario| scenario.needs_plumb()),
        "its drive is served by plumb: give --plumb"
    );
    let _simulated =
        lab.plumb.map(|plumb| simulated::serve(plumb, &lab.disks(), directory.path())).transpose()?;
    let status = lab.command(&files, &drives).status().context("starting QEMU")?;
    ensure!(status.success(), "QEMU ended with {status}");
    Ok(ExitCode::SUCCESS)
}

/// State shared by all boots of a run.
struct Workshop {
    kernel: Kernel,
    modules: Modules,
    plumb: Option<PathBuf>,
    root: Option<PathBuf>,
    logs: PathBuf,
}

impl Workshop {
    /// Prepares the machine. Prints a reason and returns `None` if it cannot run guests.
    fn open(options: &Options) -> Result<Option<Self>> {
        if std::env::consts::ARCH != "x86_64" {
            eprintln!("SKIPPED all guests: they take programs from this machine, which is not x86_64");
            return Ok(None);
        }
        if let Outcome::Unavailable(reason) = ensure_installed(&initramfs::programs())? {
            eprintln!("SKIPPED all guests: {reason}");
            return Ok(None);
        }
        let cache = cache_directory()?;
        let kernel = kernel::fetch(options.kernel, &cache)?;
        let modules = Modules::open(&kernel, &cache.join(format!("modules-{}", kernel.release)))?;
        let logs = cache.join("logs");
        std::fs::create_dir_all(&logs).with_context(|| format!("creating {}", logs.display()))?;
        if let Some(plumb) = &options.plumb {
            ensure!(plumb.is_file(), "there is no {}", plumb.display());
        }
        Ok(Some(Self { kernel, modules, plumb: options.plumb.clone(), root: options.root.clone(), logs }))
    }

    fn lab(&self, group: &Group, scenarios: Vec<&'static Scenario>, interactive: bool) -> Lab<'_> {
        let Self { kernel, modules, plumb, root, .. } = self;
        Lab {
            name: group.name,
            kernel,
            modules,
            plumb: plumb.as_deref(),
            root: root.as_deref(),
            scenarios,
            interactive,
        }
    }

    fn console(&self, lab: &Lab) -> PathBuf {
        self.logs.join(format!("{}-{}.log", lab.name, self.kernel.release))
    }
}

/// Returns the named scenarios, or all, grouped by their boots.
fn select(
    groups: &'static [Group],
    names: &[String],
) -> Result<Vec<(&'static Group, Vec<&'static Scenario>)>> {
    let known = |name: &String| groups.iter().flat_map(|group| &group.scenarios).any(|s| s.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        bail!("there is no scenario {unknown}; see `cargo xtask guest list`");
    }
    let wanted = |scenario: &&Scenario| names.is_empty() || names.contains(&scenario.name);
    let groups = groups.iter().map(|group| (group, group.scenarios.iter().filter(wanted).collect()));
    Ok(groups.filter(|(_, chosen): &(_, Vec<_>)| !chosen.is_empty()).collect())
}

/// Judges one scenario, prints its line and writes its recording.
fn report(run: &Run, record: Option<&Path>, console: &Path, tally: &mut Tally) {
    let name = &run.scenario.name;
    let seconds = run.duration.as_secs_f64();
    match judge(run, record, console) {
        Ok(Verdict::Passed(oracle)) => {
            tally.passed += 1;
            say(&format!("ok   {name:28} {:4.1} s  {}", seconds, counts(&oracle)));
        }
        Ok(Verdict::Checked(checks)) => {
            tally.passed += 1;
            say(&format!("ok   {name:28} {seconds:4.1} s  {checks} checks in the guest"));
        }
        Ok(Verdict::Skipped(reason)) => {
            tally.skipped += 1;
            say(&format!("SKIP {name:28} {seconds:4.1} s  {reason}"));
        }
        Err(error) => {
            tally.failed += 1;
            say(&format!("FAIL {name:28} {seconds:4.1} s  {error:#} (console: {})", console.display()));
        }
    }
}

/// Prints a line of the result. A closed stdout does not end the work.
pub(crate) fn say(line: &str) {
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        eprintln!("warning: cannot print the result: {error}");
    }
}

enum Verdict {
    Passed(Oracle),
    Checked(usize),
    Skipped(String),
}

fn judge(run: &Run, record: Option<&Path>, console: &Path) -> Result<Verdict> {
    if let Some(survey) = run.evidence.blobs.get("survey.json") {
        // Stored next to the console instead of the recording: verdicts change with the rules, observations
        // do not.
        let path = console.with_file_name(format!("{}.survey.json", run.scenario.name));
        std::fs::write(&path, survey).with_context(|| format!("writing {}", path.display()))?;
    }
    if run.scenario.has_program() {
        return judge_program(run, console);
    }
    match &run.end {
        End::Completed => {}
        End::Skipped(reason) => return Ok(Verdict::Skipped(reason.clone())),
        End::Failed(reason) => bail!("{reason}"),
    }
    let oracle = Oracle::from_evidence(run.scenario, &run.kernel, &run.evidence)?;
    if let Some(contradiction) = oracle.contradiction(run.scenario) {
        bail!("{contradiction}: {}", counts(&oracle));
    }
    if let Some(directory) = record {
        write_recording(&directory.join(&run.scenario.name), run, &oracle)?;
    }
    Ok(Verdict::Passed(oracle))
}

/// Judges the guest's own checks. The full list is stored next to the console.
fn judge_program(run: &Run, console: &Path) -> Result<Verdict> {
    let notes = &run.evidence.notes;
    let path = console.with_file_name(format!("{}.checks.log", run.scenario.name));
    std::fs::write(&path, notes.join("\n") + "\n").with_context(|| format!("writing {}", path.display()))?;
    let failed = || notes.iter().filter(|note| note.starts_with("FAIL")).map(|note| format!("\n    {note}"));
    match &run.end {
        End::Completed if failed().next().is_none() => {
            Ok(Verdict::Checked(notes.iter().filter(|note| note.starts_with("ok")).count()))
        }
        End::Completed => bail!("checks failed:{}", failed().collect::<String>()),
        End::Skipped(reason) => Ok(Verdict::Skipped(reason.clone())),
        End::Failed(reason) => bail!("{reason}{}", failed().collect::<String>()),
    }
}

/// Returns the counts of a scenario in one line: for each drive the arrived flushes, and those sent by its
/// block layer.
fn counts(oracle: &Oracle) -> String {
    let disks = oracle.disks.iter().map(|disk| {
        let cache = if disk.write_cache { "on" } else { "off" };
        let (arrived, handed) = (disk.flushes_arrived, disk.block_layer_flushes);
        format!("{} (cache {cache}): {arrived} arrived, {handed} in the block layer", disk.name)
    });
    let stacked =
        oracle.stacked_block_layer_flushes.iter().map(|(name, flushes)| format!("{name}: {flushes}"));
    let counts = disks.chain(stacked).collect::<Vec<_>>().join("; ");
    if oracle.disks.is_empty() { format!("no emulated drive below {counts}") } else { counts }
}

/// Replaces the recording of a scenario: plumb's recording, and the oracle.
fn write_recording(directory: &Path, run: &Run, oracle: &Oracle) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).with_context(|| format!("removing {}", directory.display()))?;
    }
    std::fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    if let Some(archive) = run.evidence.blobs.get("record.tar") {
        unpack(archive, directory)?;
    }
    let path = directory.join("oracle.json");
    let text = serde_json::to_string_pretty(oracle).context("writing the oracle as JSON")? + "\n";
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

fn unpack(archive: &[u8], directory: &Path) -> Result<()> {
    let mut tar = Command::new("tar")
        .args(["--extract", "--no-same-owner", "--directory"])
        .arg(directory)
        .stdin(Stdio::piped())
        .spawn()
        .context("running tar")?;
    tar.stdin.take().context("tar has no input")?.write_all(archive).context("giving tar the recording")?;
    let status = tar.wait().context("waiting for tar")?;
    ensure!(status.success(), "tar could not unpack the recording: {status}");
    Ok(())
}
