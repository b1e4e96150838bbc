//! One boot from power-on to power-off: QEMU, the guest's frames, and the samples taken while the guest
//! waits.
//!
//! All input arrives as events on one channel, with a time limit. So a guest that hangs, a QEMU that dies and
//! an interrupt by the user all end in the same way: QEMU is killed and reaped, the temporary files are
//! removed, and each scenario without a result gets the reason as its result.

use std::io::{BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::channel::{Frame, read_frame};
use super::disk::Disk;
use super::interrupt::Interrupts;
use super::lab::{Files, Lab};
use super::oracle::Evidence;
use super::qmp::{Qmp, Sample};
use super::scenario::Scenario;
use super::simulated::{self, SimulatedDrive};
use super::{disk, initramfs, nvme_trace};

/// Time that a guest may be silent: longer than a scenario may take by its own clock.
const SILENCE: Duration = Duration::from_secs(initramfs::SCENARIO_SECONDS + 30);

/// Result of a scenario in a guest.
#[derive(Debug)]
pub(crate) struct Run {
    /// Scenario that was run.
    pub scenario: &'static Scenario,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Reports of the guest and the drives.
    pub evidence: Evidence,
    /// End of the scenario.
    pub end: End,
    /// Duration of the scenario.
    pub duration: Duration,
}

/// End of a scenario in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The script of the scenario completed.
    Completed,
    /// This kernel cannot run it, for this reason.
    Skipped(String),
    /// The script or the boot failed, for this reason.
    Failed(String),
}

/// Event that a boot waits for.
enum Event {
    Frame(Frame),
    ChannelEnded(Result<()>),
    Interrupted,
}

/// Boots the laboratory and runs its scenarios. The result has an entry for each scenario, whatever happens.
/// The console is logged to `console`.
pub(crate) fn run(lab: &Lab, console: &Path, interrupts: &Interrupts) -> Vec<Run> {
    let mut runs = Vec::new();
    if let Err(error) = boot(lab, console, interrupts, &mut runs) {
        eprintln!("boot {} broke: {error:#}", lab.name);
        if !interrupts.seen() {
            show_end_of(console);
        }
        if let Some(last) = runs.last_mut().filter(|run| run.end == End::Failed(UNFINISHED.to_owned())) {
            last.end = End::Failed(format!("the boot broke here: {error:#}"));
        }
    }
    for scenario in &lab.scenarios[runs.len()..] {
        let end = End::Failed("not reached: the boot ended or broke before".to_owned());
        runs.push(Run { end, ..begun(scenario, "") });
    }
    runs
}

/// Prints the relevant part of the console of a failed boot or scenario.
fn show_end_of(console: &Path) {
    const LINES: usize = 60;
    let log = std::fs::read(console).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    eprintln!("its console, {}, ends:", console.display());
    lines[lines.len().saturating_sub(LINES)..].iter().for_each(|line| eprintln!("    {line}"));
}

/// End of a scenario until the guest reports another.
const UNFINISHED: &str = "it did not end";

fn begun(scenario: &'static Scenario, kernel: &str) -> Run {
    let end = End::Failed(UNFINISHED.to_owned());
    Run { scenario, kernel: kernel.to_owned(), evidence: Evidence::default(), end, duration: Duration::ZERO }
}

fn boot(lab: &Lab, console: &Path, interrupts: &Interrupts, runs: &mut Vec<Run>) -> Result<()> {
    let directory =
        tempfile::Builder::new().prefix("plumb-guest-").tempdir().context("making a directory")?;
    let mut files = Files {
        initramfs: directory.path().join("initramfs"),
        channel: directory.path().join("channel"),
        console: console.to_owned(),
        complaints: console.with_extension("qemu.log"),
        trace: console.with_extension("trace.log"),
        resumed: None,
    };
    // Logs of an earlier boot are removed first, so that they cannot be mistaken for those of this one.
    for log in [&files.console, &files.trace] {
        std::fs::File::create(log).with_context(|| format!("creating {}", log.display()))?;
    }
    initramfs::write(lab, &files.initramfs)?;
    let drives = disk::attach(&lab.disks(), directory.path())?;
    let simulated = match lab.plumb {
        Some(plumb) => simulated::serve(plumb, &lab.disks(), directory.path())?,
        None => Vec::new(),
    };
    loop {
        match life(lab, &files, &drives, &simulated, interrupts, runs)? {
            GuestProgress::ToTheEnd => break,
            GuestProgress::UntilPowerCycle { scenario, life } => {
                simulated.iter().try_for_each(SimulatedDrive::power_on)?;
                files.resumed = Some((scenario, life));
                files.channel = directory.path().join(format!("channel-{scenario}-{life}"));
            }
        }
    }
    drop(simulated);
    directory.close().context("removing the boot's temporary files")
}

/// Progress of a guest.
enum GuestProgress {
    ToTheEnd,
    UntilPowerCycle { scenario: &'static str, life: u32 },
}

/// Runs one QEMU from its start to its end.
fn life(
    lab: &Lab,
    files: &Files,
    drives: &[String],
    simulated: &[SimulatedDrive],
    interrupts: &Interrupts,
    runs: &mut Vec<Run>,
) -> Result<GuestProgress> {
    // The listener exists before QEMU starts, so QEMU connects without polling.
    let listener = UnixListener::bind(&files.channel).context("listening for the guest")?;
    let complaints = std::fs::File::create(&files.complaints).context("creating QEMU's log")?;
    let child = lab.command(files, drives).stderr(complaints).spawn().context("starting QEMU")?;
    let mut machine = Machine { child };
    let outside = Outside { listener, console: &files.console, trace: &files.trace, simulated, interrupts };
    let played = play(lab, &mut machine, outside, runs);
    machine.stop()?;
    let said = std::fs::read_to_string(&files.complaints).unwrap_or_default();
    match said.trim() {
        "" => played,
        said => played.with_context(|| format!("QEMU said {said:?}")),
    }
}

/// Resources outside the guest that a boot uses.
struct Outside<'a> {
    listener: UnixListener,
    console: &'a Path,
    trace: &'a Path,
    simulated: &'a [SimulatedDrive],
    interrupts: &'a Interrupts,
}

/// Follows the guest until it says goodbye.
fn play(lab: &Lab, machine: &mut Machine, outside: Outside, runs: &mut Vec<Run>) -> Result<GuestProgress> {
    let Outside { listener, console, trace, simulated, interrupts } = outside;
    let disks = lab.disks();
    let (commands, output) =
        machine.child.stdin.take().zip(machine.child.stdout.take()).context("QEMU has no pipes")?;
    let mut qmp = Qmp::negotiate(commands, output)?;
    // QEMU connects its sockets before its greeting, so the connection exists now or never.
    listener.set_nonblocking(true).context("preparing to accept")?;
    let (stream, _) = listener.accept().context("QEMU did not connect the guest's channel")?;
    stream.set_nonblocking(false).context("preparing the guest's channel")?;
    let (events, inbox) = channel();
    listen(stream.try_clone().context("sharing the guest's channel")?, events.clone());
    interrupts.listen(move || drop(events.send(Event::Interrupted)));
    if interrupts.seen() {
        bail!("interrupted");
    }
    let mut guest = Guest { lab, console, runs, kernel: String::new(), began: Instant::now() };
    let mut answers = stream;
    while let Some(frame) = next_frame(&inbox)? {
        match frame {
            Frame::Bye => return Ok(GuestProgress::ToTheEnd),
            Frame::PowerCycle { life } => {
                return Ok(GuestProgress::UntilPowerCycle { scenario: guest.pause()?, life });
            }
            Frame::Sync { label } => {
                let sample = sample(&mut qmp, &disks, trace, simulated)?;
                guest.current()?.evidence.samples.insert(label, sample);
                answers.write_all(b"go\n").context("answering the guest")?;
            }
            Frame::Count { disk } => {
                let sample = sample(&mut qmp, &disks, trace, simulated)?;
                let counters =
                    sample.get(&disk).with_context(|| format!("QEMU has no counters for {disk}"))?;
                answers.write_all(counters.to_string().as_bytes()).context("answering the guest")?;
            }
            Frame::Unplug { disk } => {
                let plugged = disks.iter().find(|known| known.name == disk);
                let id = plugged.and_then(Disk::unplugged_as);
                qmp.unplug(&id.with_context(|| format!("{disk} cannot be unplugged"))?)?;
                answers.write_all(b"go\n").context("answering the guest")?;
            }
            Frame::Cut { disk, when } => {
                simulated::find(simulated, &disk)?.cut(&when)?;
                answers.write_all(b"go\n").context("answering the guest")?;
            }
            Frame::Ack { disk, number } => simulated::find(simulated, &disk)?.acknowledged.set(number),
            Frame::Acked { disk } => {
                let number = simulated::find(simulated, &disk)?.acknowledged.get();
                answers.write_all(format!("{number}\n").as_bytes()).context("answering the guest")?;
            }
            other => guest.hear(other)?,
        }
    }
    bail!("the guest went away before it had finished")
}

/// Reads the current counters of every drive.
fn sample(qmp: &mut Qmp, disks: &[Disk], trace: &Path, simulated: &[SimulatedDrive]) -> Result<Sample> {
    let mut sample = qmp.sample().context("asking QEMU for its counters")?;
    nvme_trace::complete(&mut sample, disks, trace)?;
    simulated::complete(&mut sample, simulated)?;
    Ok(sample)
}

/// Turns the frames of the guest into events; ends with the guest.
fn listen(stream: UnixStream, events: Sender<Event>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let end = loop {
            match read_frame(&mut reader) {
                Ok(Some(frame)) => {
                    if events.send(Event::Frame(frame)).is_err() {
                        return;
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // The receiver may be gone, which is fine.
        drop(events.send(Event::ChannelEnded(end)));
    });
}

/// Returns the guest's next frame; `None` when its channel has ended.
fn next_frame(inbox: &Receiver<Event>) -> Result<Option<Frame>> {
    match inbox.recv_timeout(SILENCE) {
        Ok(Event::Frame(frame)) => Ok(Some(frame)),
        Ok(Event::ChannelEnded(end)) => end.map(|()| None),
        Ok(Event::Interrupted) => bail!("interrupted"),
        Err(RecvTimeoutError::Timeout) => bail!("the guest said nothing for {} s", SILENCE.as_secs()),
        Err(RecvTimeoutError::Disconnected) => bail!("nobody listens to the guest"),
    }
}

/// State of the guest so far.
struct Guest<'a> {
    lab: &'a Lab<'a>,
    console: &'a Path,
    runs: &'a mut Vec<Run>,
    kernel: String,
    began: Instant,
}

impl Guest<'_> {
    fn current(&mut self) -> Result<&mut Run> {
        self.runs.last_mut().context("the guest spoke of a scenario before it began one")
    }

    /// Handles a frame that needs no answer.
    fn hear(&mut self, frame: Frame) -> Result<()> {
        match frame {
            Frame::Hello { release } => self.kernel = release,
            Frame::Begin { scenario } => {
                let expected = self.lab.scenarios.get(self.runs.len()).filter(|known| known.name == scenario);
                let expected =
                    expected.ok_or_else(|| anyhow!("the guest began {scenario:?} out of order"))?;
                self.runs.push(begun(expected, &self.kernel));
                self.began = Instant::now();
            }
            Frame::Disk { name, node } => {
                self.current()?.evidence.nodes.insert(name, node);
            }
            Frame::Blob { label, content } => {
                self.current()?.evidence.blobs.insert(label, content);
            }
            Frame::Skip { reason } => self.current()?.end = End::Skipped(reason),
            Frame::Fail { reason } => self.current()?.end = End::Failed(reason),
            Frame::End { status } => self.end(status)?,
            Frame::Note { text } => self.current()?.evidence.notes.push(text),
            // `play` has answered the others.
            _ => {}
        }
        Ok(())
    }

    /// Adds up the time of the current scenario. Returns its name.
    fn pause(&mut self) -> Result<&'static str> {
        let duration = self.began.elapsed();
        let run = self.current()?;
        run.duration += duration;
        Ok(&run.scenario.name)
    }

    /// Ends the current scenario by the script's status, unless the script has reported another end. The
    /// console of a failure is printed before the next scenario writes there.
    fn end(&mut self, status: i32) -> Result<()> {
        let name = self.pause()?;
        let console = self.console;
        let run = self.current()?;
        if run.end == End::Failed(UNFINISHED.to_owned()) {
            run.end = match status {
                0 => End::Completed,
                _ => End::Failed(format!("its script was ended with status {status}")),
            };
        }
        if matches!(run.end, End::Failed(_)) {
            eprintln!("{name} failed");
            show_end_of(console);
        }
        Ok(())
    }
}

/// A running QEMU, which does not outlive this value.
struct Machine {
    child: Child,
}

impl Machine {
    /// Ends QEMU, which holds nothing of importance any more.
    fn stop(&mut self) -> Result<()> {
        self.child.kill().context("ending QEMU")?;
        self.child.wait().context("waiting for QEMU to end")?;
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("warning: {error:#}");
        }
    }
}
