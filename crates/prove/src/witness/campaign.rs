//! Many cycles: write, cut, power on, wait for the drive, verify. Goes on where it was left.
//!
//! ```text
//!   DIR/campaign.json     the document, replaced after each cycle, and before each cut (`pending`)
//!   DIR/cycle-00001/      the record of a cycle, as a witness keeps it; this process is the witness
//! ```

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumb_crash::below;
use plumb_measure::run::replace::replace;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};

use super::power::{Machine, PowerSwitch, killed};
use super::{Ask, ClassCount, Event, VerifyDocument, WitnessError, serve};

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a writer may go on after the power is gone: its connection may not know.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_millis(200);
/// How long to wait before the next try to verify.
const RETRY: Duration = Duration::from_millis(500);
/// So many cycles in a row that say nothing end a campaign.
const NOT_COUNTED_MAX: usize = 3;

/// What a campaign is.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The target, as it is named where the writer runs.
    pub target: String,
    /// What else the writer is told.
    pub writer: Vec<String>,
    /// Where writer and verification run.
    pub machine: Machine,
    /// What cuts the power.
    pub switch: PowerSwitch,
    /// Where everything is kept.
    pub directory: PathBuf,
    /// How many cycles.
    pub cycles: u64,
    /// How long after the filling the power is cut: from, and at most.
    pub cut_after: (Duration, Duration),
    /// At which command a simulated drive is cut instead, as `plumb drive cut` takes it.
    pub aim: Option<String>,
    /// How long the filling may take, and the drive to come back.
    pub patience: Duration,
    /// The seed of the moments.
    pub seed: u64,
}

/// How a cycle ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CycleResult {
    /// All that was acknowledged as durable is there.
    Clean,
    /// Something is missing or wrong.
    Loss,
    /// It says nothing about the drive.
    NotCounted,
    /// The drive did not come back.
    NoReturn,
}

/// One cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// Its number, from 1.
    pub number: u64,
    /// How it ended.
    pub result: CycleResult,
    /// Why it does not count, or what was found.
    pub because: String,
    /// Seconds from the end of the filling to the cut; null if the cut was aimed or did not happen.
    pub cut_after: Option<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Writes that had to be there.
    pub required: u64,
    /// What is wrong.
    pub classes: Vec<ClassCount>,
}

/// All cycles, as `plumb prove campaign --json` prints them and as they are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignDocument {
    /// [`CampaignDocument::SCHEMA`].
    pub schema: String,
    /// `none`; `warning` if nothing or not all can be said; `danger` if a cycle lost something.
    pub level: String,
    /// The result in one sentence.
    pub headline: String,
    /// What is tested and how, as it was typed; a campaign goes on only with the same.
    pub settings: Vec<String>,
    /// What cuts the power, in words.
    pub power: String,
    /// Whether drives lose their power by that.
    pub is_power_cut: bool,
    /// How many cycles are wanted.
    pub cycles_wanted: u64,
    /// Cycles in which nothing was lost.
    pub clean: u64,
    /// Cycles in which something was.
    pub losses: u64,
    /// With 95 % confidence a cut in the windows that were tested loses something less often than this: 3 / clean cycles. Null if
    /// something was lost, or there is no clean cycle.
    pub loss_rate_below: Option<f64>,
    /// Why it ended before all cycles; null if it did not.
    pub incomplete_because: Option<String>,
    /// The cycle whose power may have been cut and which is not verified yet.
    pub pending: Option<u64>,
    /// The cycles.
    pub cycles: Vec<Cycle>,
}

/// What a writer or a verification lets its witness know.
enum Heard {
    /// The region is filled.
    Filled,
    /// What was found.
    Verified(Box<VerifyDocument>),
    /// It is over.
    Closed,
}

/// A writer or a verification, whose witness is a thread of this process.
struct Session {
    child: Child,
    heard: Receiver<Heard>,
    stderr: JoinHandle<String>,
}

impl CampaignDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-campaign/1";

    /// The figures that follow from the cycles.
    fn concluded(&mut self) {
        let count = |result| self.cycles.iter().filter(|cycle| cycle.result == result).count() as u64;
        (self.clean, self.losses) = (count(CycleResult::Clean), count(CycleResult::Loss));
        let is_gone = count(CycleResult::NoReturn) > 0;
        let counted = self.clean + self.losses;
        self.loss_rate_below =
            (self.losses == 0 && self.clean > 0).then(|| (3.0 / self.clean as f64).min(1.0));
        let (level, what) = match self.loss_rate_below {
            _ if self.losses > 0 => ("danger", format!("{} of {counted} cycles lost data", self.losses)),
            _ if is_gone => {
                ("warning", "the drive did not come back after a cut: see whether it is dead".to_owned())
            }
            None => ("warning", "no cycle says anything about the drive".to_owned()),
            Some(rate) => {
                let percent = rate * 100.0;
                let what = format!(
                    "no loss in {counted} cycles: with 95 % confidence fewer than {percent:.3} % of cuts in the windows tested \
                     lose data"
                );
                (if self.is_power_cut { "none" } else { "warning" }, what)
            }
        };
        (self.level, self.headline) = (level.to_owned(), format!("{what} ({})", self.power));
    }

    /// How long the cycles that are left will take, if they take as long as those before.
    pub fn time_left(&self) -> Option<Duration> {
        let done = self.cycles.len() as u64;
        let taken: f64 = self.cycles.iter().map(|cycle| cycle.seconds).sum();
        let left = self.cycles_wanted.saturating_sub(done);
        (done > 0).then(|| Duration::from_secs_f64(taken / done as f64 * left as f64))
    }
}

impl Campaign {
    /// Runs all cycles that are not done yet, and tells `progress` after each. A stop ends it with what it has.
    ///
    /// # Errors
    /// If the directory holds another campaign or cannot be written, or a power switch fails.
    pub fn run(
        &self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&CampaignDocument),
    ) -> Result<CampaignDocument, WitnessError> {
        fs::create_dir_all(&self.directory).map_err(WitnessError::io("make", self.directory.display()))?;
        let mut document = self.resumed()?;
        if let Some(number) = document.pending {
            self.switch.disarm()?;
            self.switch.power_on()?;
            let mut cycle = self.verified(number, None, Instant::now(), stop);
            if let Some(clean) = cycle.as_mut().filter(|cycle| cycle.result == CycleResult::Clean) {
                clean.result = CycleResult::NotCounted;
                "the campaign was interrupted, and may have been before the cut"
                    .clone_into(&mut clean.because);
            }
            self.keep(&mut document, cycle, stop)?;
            progress(&document);
        }
        while (document.cycles.len() as u64) < document.cycles_wanted && !stop.load(Ordering::Acquire) {
            let ends: Vec<_> = document.cycles.iter().rev().take(NOT_COUNTED_MAX).collect();
            let is_in_vain = ends.len() == NOT_COUNTED_MAX
                && ends.iter().all(|cycle| cycle.result == CycleResult::NotCounted);
            if is_in_vain || ends.first().is_some_and(|cycle| cycle.result == CycleResult::NoReturn) {
                document.incomplete_because = ends.first().map(|cycle| cycle.because.clone());
                break;
            }
            let cycle = self.cycle(document.cycles.len() as u64 + 1, &mut document, stop)?;
            self.keep(&mut document, cycle, stop)?;
            progress(&document);
        }
        if stop.load(Ordering::Acquire) {
            document.incomplete_because = Some("it was told to stop".to_owned());
        }
        self.save(&mut document)?;
        Ok(document)
    }

    fn settings(&self) -> Vec<String> {
        let (from, to) = self.cut_after;
        let moments = self.aim.clone().unwrap_or_else(|| format!("{from:?}..{to:?}"));
        let rest =
            [self.target.clone(), format!("{:?}", self.switch), moments, format!("seed {}", self.seed)];
        [&self.machine.launcher[..], &self.writer, &rest].concat()
    }

    /// What is in the directory, or a new document.
    fn resumed(&self) -> Result<CampaignDocument, WitnessError> {
        let path = self.directory.join("campaign.json");
        let damaged = |what: String| WitnessError::Damaged { place: path.display().to_string(), what };
        let mut document: CampaignDocument = match fs::read(&path) {
            Err(absent) if absent.kind() == ErrorKind::NotFound => CampaignDocument {
                schema: CampaignDocument::SCHEMA.to_owned(),
                level: String::new(),
                headline: String::new(),
                settings: self.settings(),
                power: self.switch.words().to_owned(),
                is_power_cut: self.switch.is_power_cut(),
                cycles_wanted: self.cycles,
                clean: 0,
                losses: 0,
                loss_rate_below: None,
                incomplete_because: None,
                pending: None,
                cycles: Vec::new(),
            },
            bytes => {
                let bytes = bytes.map_err(WitnessError::io("read", path.display()))?;
                serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?
            }
        };
        if document.settings != self.settings() {
            let (was, is) = (document.settings.join(" "), self.settings().join(" "));
            let why = format!(
                "{}: it is of another campaign ({was}), and this is {is}: name another directory",
                path.display()
            );
            return Err(WitnessError::Other(why));
        }
        (document.cycles_wanted, document.incomplete_because) = (self.cycles, None);
        // A drive that did not come back is tried again.
        document.cycles.pop_if(|cycle| cycle.result == CycleResult::NoReturn);
        Ok(document)
    }

    fn save(&self, document: &mut CampaignDocument) -> Result<(), WitnessError> {
        document.concluded();
        let path = self.directory.join("campaign.json");
        let bytes = serde_json::to_vec_pretty(document).map_err(std::io::Error::from);
        let bytes = bytes.map_err(WitnessError::io("write", path.display()))?;
        replace(&path, &bytes).map_err(|error| WitnessError::Other(plumb_block::in_one_line(&error)))
    }

    /// A cycle that was stopped is verified when the campaign goes on.
    fn keep(
        &self,
        document: &mut CampaignDocument,
        cycle: Option<Cycle>,
        stop: &AtomicBool,
    ) -> Result<(), WitnessError> {
        if let Some(cycle) = cycle {
            document.cycles.push(cycle);
            document.pending = None;
        } else if !stop.load(Ordering::Acquire) {
            document.pending = None;
        }
        self.save(document)
    }

    /// One cycle; none if it was stopped.
    fn cycle(
        &self,
        number: u64,
        document: &mut CampaignDocument,
        stop: &AtomicBool,
    ) -> Result<Option<Cycle>, WitnessError> {
        let began = Instant::now();
        let typed = ["prove", "writer", &self.target, "--witness", "-"].map(str::to_owned);
        let writer = self.session(number, &[&typed[..], &self.writer].concat())?;
        let not_counted =
            |because: String| Ok(Some(cycle_of(number, CycleResult::NotCounted, because, began)));
        match writer.wait(self.patience, stop) {
            Some(Heard::Filled) => {}
            _ if stop.load(Ordering::Acquire) => {
                writer.end();
                return Ok(None);
            }
            _ => return not_counted(format!("the region was not filled: {}", writer.end())),
        }
        let after = self.moment(number);
        if self.aim.is_none() && writer.wait(after, stop).is_some() {
            return not_counted(format!("the writer ended before the cut: {}", writer.end()));
        }
        if stop.load(Ordering::Acquire) {
            writer.end();
            return Ok(None);
        }
        document.pending = Some(number);
        self.save(document)?;
        let cut = self.switch.cut(&self.machine, self.aim.as_deref());
        if cut.is_ok() && self.aim.is_some() {
            writer.wait(self.cut_after.1, stop);
        }
        writer.wait(LAST_WORDS, stop);
        let said = writer.end();
        // Whatever the writer says: a drive that tells whether it has power is asked.
        let is_cut = cut.is_ok() && self.switch.is_off()?;
        let powered = self.switch.disarm().and_then(|()| self.switch.power_on());
        cut.and(powered)?;
        if !is_cut {
            document.pending = None;
            return not_counted(format!("the power was not cut, for the moment did not come: {said}"));
        }
        let cut_after = self.aim.is_none().then_some(after);
        Ok(self.verified(number, cut_after, began, stop))
    }

    /// How long after the filling the power is cut.
    fn moment(&self, number: u64) -> Duration {
        let (from, to) = self.cut_after;
        let mut chance =
            Xoshiro256PlusPlus::seed_from_u64(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let span = to.saturating_sub(from).as_nanos() as u64;
        from + Duration::from_nanos(below(&mut chance, span.saturating_add(1)))
    }

    /// Verifies as soon as the drive is back; none if it was stopped.
    fn verified(
        &self,
        number: u64,
        cut_after: Option<Duration>,
        began: Instant,
        stop: &AtomicBool,
    ) -> Option<Cycle> {
        let end = Instant::now() + self.patience;
        let typed = ["prove", "verify", &self.target, "--witness", "-"].map(str::to_owned);
        let mut cycle = loop {
            let said = match self.session(number, &typed) {
                Ok(verification) => match verification.wait(self.patience, stop) {
                    Some(Heard::Verified(found)) if found.is_complete() || found.has_loss() => {
                        verification.end();
                        break judged(number, &found, began);
                    }
                    _ => verification.end(),
                },
                Err(error) => plumb_block::in_one_line(&error),
            };
            if stop.load(Ordering::Acquire) {
                return None;
            }
            if Instant::now() >= end {
                break cycle_of(number, CycleResult::NoReturn, said, began);
            }
            thread::sleep(RETRY);
        };
        cycle.cut_after = cut_after.map(|after| after.as_secs_f64());
        Some(cycle)
    }

    fn session(&self, number: u64, arguments: &[String]) -> Result<Session, WitnessError> {
        let failed = |error| WitnessError::io("start", &self.machine.program)(error);
        let mut command = self.machine.command(&self.machine.program, arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(from), Some(to), Some(stderr)) = pipes else {
            return Err(failed(ErrorKind::BrokenPipe.into()));
        };
        let (sender, heard) = channel();
        let directory = self.directory.join(format!("cycle-{number:05}"));
        thread::spawn(move || {
            let mut is_filled = false;
            let served = serve(&directory, from, to, &mut |ask| {
                let flushes = |event: &Event| matches!(event, Event::Flushed { .. });
                let news = match ask {
                    // The first flush is that of the filling.
                    Ask::Batch(batch) if !is_filled && batch.events.iter().any(flushes) => {
                        is_filled = true;
                        Some(Heard::Filled)
                    }
                    Ask::Verified(found) => Some(Heard::Verified(found)),
                    _ => None,
                };
                // Who does not listen any more has what it wanted.
                news.map_or(Ok(()), |news| sender.send(news)).unwrap_or_default();
            });
            // A connection that breaks is what a cut looks like; why a record could not be kept, the other side was told and says.
            served.unwrap_or_default();
            sender.send(Heard::Closed).unwrap_or_default();
        });
        let stderr = thread::spawn(move || {
            let mut said = String::new();
            stderr.take(1 << 16).read_to_string(&mut said).map(drop).unwrap_or_default();
            said
        });
        Ok(Session { child, heard, stderr })
    }
}

impl Session {
    /// What is heard next within so long; none if nothing is, or it was stopped.
    fn wait(&self, within: Duration, stop: &AtomicBool) -> Option<Heard> {
        let end = Instant::now() + within;
        while !stop.load(Ordering::Acquire) {
            let left = end.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left.min(LOOK_EVERY)) {
                Ok(heard) => return Some(heard),
                Err(RecvTimeoutError::Disconnected) => return Some(Heard::Closed),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        None
    }

    /// Ends it, if it has not ended; the last that it said.
    fn end(self) -> String {
        let Self { mut child, stderr, heard } = self;
        // Its pipes are closed when it is over: then it is about to end by itself.
        while !matches!(heard.recv_timeout(GRACE), Ok(Heard::Closed) | Err(_)) {}
        killed(&mut child);
        // Who has stderr open still may hold it for ever.
        let has_ended = child.try_wait().is_ok_and(|ended| ended.is_some());
        let said = if has_ended { stderr.join().unwrap_or_default() } else { "it hangs".to_owned() };
        said.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

fn cycle_of(number: u64, result: CycleResult, because: String, began: Instant) -> Cycle {
    let seconds = began.elapsed().as_secs_f64();
    Cycle { number, result, because, cut_after: None, seconds, required: 0, classes: Vec::new() }
}

fn judged(number: u64, found: &VerifyDocument, began: Instant) -> Cycle {
    let result = match () {
        () if found.has_loss() => CycleResult::Loss,
        () if found.required == 0 => CycleResult::NotCounted,
        () => CycleResult::Clean,
    };
    let cycle = cycle_of(number, result, found.headline.clone(), began);
    Cycle { required: found.required, classes: found.classes.clone(), ..cycle }
}
