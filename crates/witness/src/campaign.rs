//! Campaign of power cuts. Each cycle writes, cuts the power, restores it, waits for the drive, and verifies.
//! An interrupted campaign can be resumed.
//!
//! ```text
//!   DIR/campaign.json     the document, replaced after each cycle, and before each cut (`pending`)
//!   DIR/cycle-00001/      record of a cycle in the format of a witness, which is this process
//! ```

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use plumb_block::{Clock as _, Nanos, RealClock, in_one_line, receive_unless, sleep_unless};
use plumb_crash::below;
use plumb_linux::child;
use plumb_report::document::power::{CampaignDocument, Cycle, CycleResult, VerifyDocument};
use plumb_sim::cut::CutWhen;
use plumb_state::whole_file::{Lasting, Mode, replace};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::error::{Error, Result, cannot};
use crate::message::{Event, Message};
use crate::power::{Machine, PowerSwitch};
use crate::record::serve;

/// Time that a writer may continue after the cut: its connection may not notice the loss at once.
const LAST_WORDS: Nanos = Nanos::secs(5);
/// Time that a process has to exit by itself.
const GRACE: Nanos = Nanos::millis(200);
/// Pause between two attempts to verify.
const RETRY: Nanos = Nanos::millis(500);
/// Number of consecutive cycles that do not count after which a campaign ends.
const NOT_COUNTED_MAX: usize = 3;

/// Settings of a campaign.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// Arguments of the writer: the target, as named on the machine under test, and the options.
    pub writer: Vec<String>,
    /// Machine on which the writer and the verification run.
    pub machine: Machine,
    /// Switch that cuts the power.
    pub switch: PowerSwitch,
    /// Directory of the campaign's document and records.
    pub directory: PathBuf,
    /// Number of cycles.
    pub cycles: u64,
    /// Range of the time from the end of the filling to the power cut.
    pub cut_after: Moments,
    /// Command at which a simulated drive is cut instead, in the syntax of `plumb drive cut`.
    pub aim: Option<String>,
    /// Time limit for the filling, and for the return of the drive.
    pub patience: Nanos,
    /// Seed of the moments of the cuts.
    pub seed: u64,
}

/// Range in which the moment of a cut is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// Earliest moment.
    pub from: Nanos,
    /// Latest moment, at most 24 hours.
    pub to: Nanos,
}

impl FromStr for Moments {
    type Err = Error;

    fn from_str(typed: &str) -> Result<Self> {
        let times = typed.split_once("..");
        let times = times.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let times = times.filter(|(from, to): &(Nanos, Nanos)| from <= to && *to <= Nanos::secs(86_400));
        let (from, to) = times.ok_or_else(|| Error::usage("expected two times up to 24h, as in 2s..20s"))?;
        Ok(Self { from, to })
    }
}

/// Message from a writer or a verification to its witness.
enum WitnessMessage {
    /// The region is filled.
    Filled,
    /// The verification is done, with this result.
    Verified(Box<VerifyDocument>),
    /// The session ended.
    Closed,
}

/// Writer or verification under test; a thread of this process is its witness.
struct Session<'a> {
    child: Child,
    heard: Receiver<WitnessMessage>,
    /// File that receives the stderr of the child.
    log: PathBuf,
    stop: &'a AtomicBool,
}

/// Returns the reason to try no further cycle after `cycles` of this process: the last ones did not count, or
/// the drive did not return. Returns `None` to continue.
fn is_in_vain(cycles: &[Cycle]) -> Option<String> {
    let last = cycles.last()?;
    let silent = cycles.iter().rev().take_while(|cycle| cycle.result == CycleResult::NotCounted).count();
    let is_in_vain = silent >= NOT_COUNTED_MAX || last.result == CycleResult::NoReturn;
    is_in_vain.then(|| last.because.clone())
}

impl Campaign {
    /// Runs all remaining cycles and calls `progress` after each. A stop ends the campaign with the cycles so
    /// far.
    ///
    /// # Errors
    /// If the cut cannot be aimed as requested, the directory holds another campaign or cannot be written, or
    /// a power switch fails.
    pub fn run(
        &self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&CampaignDocument),
    ) -> Result<CampaignDocument> {
        if let Some(aim) = &self.aim {
            aim.parse::<CutWhen>().map_err(|error| Error::usage(format!("--aim: {error}")))?;
            if !self.switch.can_aim() {
                let why = "--aim: only a served drive (--power drive:NAME) can be cut at a command";
                return Err(Error::usage(why));
            }
        }
        fs::create_dir_all(&self.directory).map_err(cannot(format!("make {}", self.directory.display())))?;
        let mut document = self.load_document()?;
        let resumed_at = document.cycles.len();
        while (document.cycles.len() as u64) < document.cycles_wanted {
            document.incomplete_because = is_in_vain(&document.cycles[resumed_at..]);
            if document.incomplete_because.is_some() {
                break;
            }
            let Some(cycle) = self.cycle(&mut document, stop)? else { break };
            document.cycles.push(cycle);
            document.pending = None;
            self.save(&mut document)?;
            progress(&document);
        }
        if stop.load(Ordering::Acquire) {
            document.incomplete_because = Some("it was told to stop".to_owned());
        }
        self.save(&mut document)?;
        Ok(document)
    }

    fn settings(&self) -> Vec<String> {
        let Moments { from, to } = self.cut_after;
        let moments = self.aim.clone().unwrap_or_else(|| format!("{from:?}..{to:?}"));
        let rest = [format!("{:?}", self.switch), moments, format!("seed {}", self.seed)];
        [&self.machine.launcher[..], &self.writer, &rest].concat()
    }

    /// Reads the document in the directory, or creates one.
    fn load_document(&self) -> Result<CampaignDocument> {
        let path = self.directory.join("campaign.json");
        let mut document: CampaignDocument = match fs::read(&path) {
            Err(absent) if absent.kind() == ErrorKind::NotFound => CampaignDocument {
                schema: CampaignDocument::SCHEMA.to_owned(),
                settings: self.settings(),
                power: self.switch.words.to_owned(),
                is_power_cut: self.switch.is_power_cut,
                ..CampaignDocument::default()
            },
            bytes => {
                let bytes = bytes.map_err(cannot(format!("read {}", path.display())))?;
                serde_json::from_slice(&bytes).map_err(|error| Error::damaged(path.display(), error))?
            }
        };
        if document.settings != self.settings() {
            let (was, is) = (document.settings.join(" "), self.settings().join(" "));
            return Err(Error::not_measured(format!(
                "{}: it is of another campaign ({was}), and this is {is}: name another directory",
                path.display()
            )));
        }
        document.cycles_wanted = self.cycles;
        // A drive that did not return is tried again, and so are cycles that did not count.
        document.cycles.pop_if(|cycle| cycle.result == CycleResult::NoReturn);
        Ok(document)
    }

    fn save(&self, document: &mut CampaignDocument) -> Result<()> {
        document.conclude();
        let path = self.directory.join("campaign.json");
        let bytes = serde_json::to_vec_pretty(document).map_err(std::io::Error::from);
        let bytes = bytes.map_err(cannot(format!("write {}", path.display())))?;
        let replaced = replace(&path, &bytes, Mode::Kept, Lasting::Durable);
        replaced.map_err(|error| Error::not_measured(in_one_line(&error)))
    }

    /// Runs the next cycle. Returns `None` after a stop. A cycle whose cut an earlier process had prepared or
    /// made is only verified.
    fn cycle(&self, document: &mut CampaignDocument, stop: &AtomicBool) -> Result<Option<Cycle>> {
        let number = document.cycles.len() as u64 + 1;
        let (clock, is_left) = (RealClock::start(), document.pending.is_some());
        let mut cut_after = None;
        if is_left {
            self.switch.power_on()?;
        } else {
            match self.write_and_cut(number, document, stop)? {
                Cut::Done(after) => cut_after = after,
                Cut::Stopped => return Ok(None),
                Cut::NotCounted(because) => {
                    return Ok(Some(cycle_of(number, CycleResult::NotCounted, because, clock)));
                }
            }
        }
        let Some(mut cycle) = self.verify(number, clock, stop) else { return Ok(None) };
        cycle.cut_after = cut_after;
        if is_left && cycle.result == CycleResult::Clean {
            cycle.result = CycleResult::NotCounted;
            cycle.because = "the campaign was interrupted, and may have been before the cut".to_owned();
        }
        Ok(Some(cycle))
    }

    /// Runs the writer, cuts the power, and restores it.
    fn write_and_cut(&self, number: u64, document: &mut CampaignDocument, stop: &AtomicBool) -> Result<Cut> {
        let writer = self.session(number, "writer", &self.writer, stop)?;
        let is_stopped = || stop.load(Ordering::Acquire);
        let is_filled = matches!(writer.wait(self.patience), Some(WitnessMessage::Filled));
        let after = self.moment(number);
        let is_over = is_filled && self.aim.is_none() && writer.wait(after).is_some();
        if is_stopped() || !is_filled || is_over {
            let what =
                if is_filled { "the writer ended before the cut" } else { "the region was not filled" };
            let said = writer.end();
            return Ok(if is_stopped() { Cut::Stopped } else { Cut::NotCounted(format!("{what}: {said}")) });
        }
        document.pending = Some(number);
        self.save(document)?;
        let cut = self.switch.cut(self.aim.as_deref());
        if cut.is_ok() && self.aim.is_some() {
            writer.wait(self.cut_after.to);
        }
        writer.wait(LAST_WORDS);
        writer.end();
        // A switch that can report the power state decides, whatever the writer reported.
        let is_cut = cut.is_ok() && self.switch.is_off()?;
        cut.and(self.switch.power_on())?;
        if is_cut {
            return Ok(Cut::Done(self.aim.is_none().then_some(after.as_secs_f64())));
        }
        Ok(Cut::NotCounted("the power was not cut, because its moment did not come".to_owned()))
    }

    /// Returns the time from the filling to the power cut of cycle `number`.
    fn moment(&self, number: u64) -> Nanos {
        let Moments { from, to } = self.cut_after;
        let mut chance =
            Xoshiro256PlusPlus::seed_from_u64(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        from + Nanos(below(&mut chance, to.since(from).0.saturating_add(1)))
    }

    /// Verifies as soon as the drive is back. Returns `None` after a stop.
    fn verify(&self, number: u64, clock: RealClock, stop: &AtomicBool) -> Option<Cycle> {
        let (end, is_stopped) = (clock.now().saturating_add(self.patience), || stop.load(Ordering::Acquire));
        loop {
            let said = match self.session(number, "verify", &self.writer[..1], stop) {
                Ok(verification) => match verification.wait(self.patience) {
                    Some(WitnessMessage::Verified(found)) if found.is_complete() || found.has_loss() => {
                        verification.end();
                        return Some(verified_cycle(number, &found, clock));
                    }
                    _ => verification.end(),
                },
                Err(error) => in_one_line(&error),
            };
            if is_stopped() {
                return None;
            }
            if clock.now() >= end {
                return Some(cycle_of(number, CycleResult::NoReturn, said, clock));
            }
            sleep_unless(is_stopped, RETRY);
        }
    }

    /// Starts `plumb prove COMMAND` on the machine under test.
    fn session<'a>(
        &self,
        number: u64,
        command: &str,
        arguments: &[String],
        stop: &'a AtomicBool,
    ) -> Result<Session<'a>> {
        let directory = self.directory.join(format!("cycle-{number:05}"));
        let log = directory.join(format!("{command}.stderr"));
        fs::create_dir_all(&directory).map_err(cannot(format!("make {}", directory.display())))?;
        let stderr = File::create(&log).map_err(cannot(format!("make {}", log.display())))?;
        let words = [&self.machine.program, "prove", command, "--witness=-"].map(str::to_owned);
        let words = self.machine.command(&[&words[..], arguments].concat());
        let failed = cannot(format!("start {}", words[0]));
        let (ours, theirs) = UnixStream::pair().map_err(&failed)?;
        let (stdin, stdout) = (OwnedFd::from(theirs.try_clone().map_err(&failed)?), OwnedFd::from(theirs));
        let mut started = Command::new(&words[0]);
        let started = started.args(&words[1..]).stdin(stdin).stdout(stdout).stderr(stderr);
        let child = started.spawn().map_err(&failed)?;
        let (sender, heard) = channel();
        thread::spawn(move || {
            let mut is_filled = false;
            let served = serve(&directory, &ours, &ours, &mut |message| {
                let flushes = |event: &Event| matches!(event, Event::Flushed { .. });
                let news = match message {
                    // The first flush ends the filling.
                    Message::Batch(batch) if !is_filled && batch.events.iter().any(flushes) => {
                        is_filled = true;
                        Some(WitnessMessage::Filled)
                    }
                    Message::Verified(found) => Some(WitnessMessage::Verified(found)),
                    _ => None,
                };
                // A receiver that no longer listens has all it needs.
                news.map_or(Ok(()), |news| sender.send(news)).unwrap_or_default();
            });
            // A cut breaks the connection, which is not an error. If a record could not be written, the other
            // side was told and reports it.
            served.unwrap_or_default();
            sender.send(WitnessMessage::Closed).unwrap_or_default();
        });
        Ok(Session { child, heard, log, stop })
    }
}

/// Outcome of a cut.
enum Cut {
    /// The cut was made; with its time after the filling in seconds, if it was timed by the clock.
    Done(Option<f64>),
    /// The user stopped the campaign before the cut.
    Stopped,
    /// The cut tells nothing about the drive, for this reason.
    NotCounted(String),
}

impl Session<'_> {
    /// Waits at most `within` for the next message. Returns `None` if none arrives, or after a stop.
    fn wait(&self, within: Nanos) -> Option<WitnessMessage> {
        match receive_unless(&self.heard, || self.stop.load(Ordering::Acquire), within) {
            Ok(heard) => Some(heard),
            Err(RecvTimeoutError::Disconnected) => Some(WitnessMessage::Closed),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Ends the child, if it is still running. Returns its last message.
    fn end(mut self) -> String {
        // A program that has closed its connection is about to exit by itself.
        while !matches!(self.heard.recv_timeout(GRACE.into()), Ok(WitnessMessage::Closed) | Err(_)) {}
        child::kill(&mut self.child).unwrap_or_default();
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        said.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

fn cycle_of(number: u64, result: CycleResult, because: String, clock: RealClock) -> Cycle {
    let seconds = clock.now().as_secs_f64();
    Cycle { number, result, because, cut_after: None, seconds, required: 0, classes: Vec::new() }
}

fn verified_cycle(number: u64, found: &VerifyDocument, clock: RealClock) -> Cycle {
    let result = match () {
        () if found.has_loss() => CycleResult::Loss,
        () if found.required == 0 => CycleResult::NotCounted,
        () => CycleResult::Clean,
    };
    let cycle = cycle_of(number, result, found.headline.clone(), clock);
    Cycle { required: found.required, classes: found.classes.clone(), ..cycle }
}
