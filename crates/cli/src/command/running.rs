//! Execution of a scenario, common to `load` and all dialects.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock, FailureKind, RealClock};
use plumb_dialect::{Machine, Meaning, native};
use plumb_load::{Event, Observer};
use plumb_report::progress::Bar;
use plumb_report::progress::Dots;
use plumb_report::tui::Live;
use plumb_report::{Format, Headline, Kind, RunDocument, Style};
use plumb_targets::{Name, Permission};
use plumb_trial::{Context, Request, Trial, TrialEnded, TrialError};
use plumb_workload::Replays;

use crate::arguments::running::OwnArguments;
use crate::exit::{self, Exit, Refusal};
use crate::strictness::Strictness;
use crate::surroundings::{machine, out, seed_from_clock, time_of_day};
use crate::{stop, terminal, traces};

/// Command that runs a workload.
pub(crate) struct RunningCommand {
    /// Name of the command.
    pub(crate) command: &'static str,
    /// plumb's own options.
    pub(crate) own: OwnArguments,
    /// Properties of the machine that dialects need.
    pub(crate) machine: Machine,
    /// Application profile of the scenario, whose limits are judged.
    pub(super) profile: Option<String>,
    /// Files to remove at the end, if the run created them.
    pub(super) remove_after: Vec<String>,
    /// Number of operations per progress dot on stdout, if there is no terminal for a progress line.
    pub(super) dots: Option<u32>,
}

impl RunningCommand {
    /// Creates a run of `command` that starts now.
    pub(crate) fn begin(command: &'static str, own: OwnArguments) -> Self {
        Self {
            command,
            own,
            machine: machine(&time_of_day()),
            profile: None,
            remove_after: Vec::new(),
            dots: None,
        }
    }

    /// Returns true if stderr must have only errors, because a program parses the output of this dialect.
    fn is_quiet(&self) -> bool {
        !matches!(self.command, "load" | "compare" | "study") && !std::io::stderr().is_terminal()
    }

    /// Runs the workload and prints the result: plumb's own report if a format was typed, otherwise that of
    /// `print`. With `--show-workload`, only prints the workload in plumb's own language.
    pub(crate) fn run(
        self,
        meaning: Meaning,
        print: &dyn Fn(&Trial) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        self.own.printed.format(Kind::Run)?;
        let program = meaning.scenario.jobs().find_map(|job| job.program.as_ref());
        if let Some(program) = program.filter(|_| self.own.show_workload) {
            let name = &program.profile;
            let problem =
                format!("--show-workload: {name} is a program over files; --explain says what it does");
            return Err(Refusal::new(FailureKind::Usage, problem).into());
        }
        // A program has no description in the language of loads.
        let words = program.map_or_else(|| native::write(&meaning.scenario), |_| String::new());
        if self.own.show_workload {
            meaning.notes.iter().for_each(|note| terminal::say(&format!("plumb: {note}")));
            terminal::print(&words)?;
            return Ok(Exit::Done);
        }
        let request = traces::read(self.request(meaning, words))?;
        let trial = self.shown(&|context, observer| plumb_trial::run(&request, context, observer))?;
        self.show(&trial, print)
    }

    fn show(&self, trial: &Trial, print: &dyn Fn(&Trial) -> anyhow::Result<()>) -> anyhow::Result<Exit> {
        // The text format is that of the language in which the workload was typed.
        let format = Some(self.own.printed.format(Kind::Run)?).filter(|format| *format != Format::Terminal);
        match format {
            Some(format) => terminal::show(&trial.recording, format, Style::PLAIN)?,
            None => print(trial)?,
        }
        let strictness = self.own.strictness;
        if format.is_none() && !matches!(self.command, "load" | "compare" | "study") {
            say_finding(&trial.recording.document, strictness);
        }
        say_end(trial, self.is_quiet());
        Ok(exit_of(trial, strictness))
    }

    /// Builds the request for a trial; `words` describe the workload in plumb's own language.
    pub(super) fn request(&self, meaning: Meaning, words: String) -> Request {
        let started_at = self.machine.started_at.clone();
        let mut remove_after = self.remove_after.clone();
        if self.own.remove_after {
            remove_after.extend(meaning.scenario.targets());
        }
        Request {
            scenario: meaning.scenario,
            words,
            profile: self.profile.clone(),
            replays: Replays::new(),
            remove_after,
            permission: Permission { size_words: size_words(self.command), ..self.own.permission() },
            notes: meaning.notes,
            command: self.command.to_owned(),
            argv: self.machine.argv.clone(),
            started_at,
            out: out(&self.own.recording, self.command),
        }
    }

    /// Executes `run` with a display of its progress.
    ///
    /// # Errors
    /// [`Refusal`] if nothing could be measured.
    pub(super) fn shown<T>(&self, run: &Run<'_, T>) -> anyhow::Result<T> {
        with_observer(&|stop| self.observer(stop), run)
    }

    /// Returns a live view if one is wanted and there is a terminal, otherwise a progress line.
    fn observer(&self, stop: &Arc<AtomicBool>) -> Box<dyn Observer> {
        if let Some(live) = Live::if_wanted(self.own.tui, &format!("plumb {}", self.command), stop) {
            return Box::new(live);
        }
        if self.is_quiet() { Box::new(Dots::every(self.dots)) } else { Box::new(Bar::on_stderr()) }
    }
}

/// Returns the default seed for a run on these targets: that of the simulated drives, or one from the clock.
pub(crate) fn default_seed<'a>(targets: impl IntoIterator<Item = &'a str>) -> u64 {
    let names: Vec<Name> = targets.into_iter().filter_map(|target| Name::parse(target).ok()).collect();
    plumb_targets::seed_of(&names).unwrap_or_else(seed_from_clock)
}

/// Returns the syntax for the size of a file in the language of `command`.
fn size_words(command: &str) -> &'static str {
    match command {
        "diskspd" => "its size, such as -c1G",
        "sqlio" => "its size in MB in a parameter file (-F)",
        "fio" => "its size, such as size=1g",
        _ => "its size, such as --size 1G",
    }
}

/// Work of a command, given the context of a run and an observer.
type Run<'a, T> = dyn Fn(&Context<'_>, &mut dyn Observer) -> Result<T, TrialError> + 'a;

/// Executes `run` until its end or a signal, with the observer that `observer` creates.
///
/// # Errors
/// [`Refusal`] if nothing could be measured.
pub(crate) fn with_observer<T>(
    observer: &dyn Fn(&Arc<AtomicBool>) -> Box<dyn Observer>,
    run: &Run<'_, T>,
) -> anyhow::Result<T> {
    let stop = stop::on_signals()?;
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let mut observer = observer(&stop);
    let ran = run(&Context { clock: &clock, stop: &stop, time_of_day: &time_of_day }, &mut *observer);
    observer.on(&Event::Over);
    Ok(ran?)
}

/// Prints the messages after the results: the path of the report, and why the run is incomplete.
///
/// With `quiet`, prints only errors.
pub(crate) fn say_end(trial: &Trial, quiet: bool) {
    let say = |line: &String| terminal::say(&format!("plumb: {line}"));
    match &trial.ended {
        TrialEnded::Interrupted => {
            terminal::say_so_far("interrupted", "the results so far", trial.run_directory.is_some());
        }
        ended => ended.reason().iter().for_each(say),
    }
    trial.left_behind.iter().filter(|_| !quiet).for_each(say);
    if let Some(directory) = trial.run_directory.as_ref().filter(|_| !quiet) {
        terminal::say_report(Some(&directory.display().to_string()));
    }
}

/// Prints the headline to stderr if the exit code is not 0, for a command whose stdout is parsed by another
/// program.
fn say_finding(document: &RunDocument, strictness: Strictness) {
    if exit::of_verdicts(document, strictness) == Exit::Done {
        return;
    }
    terminal::say(&format!("plumb: {}", Headline::new(document).line(document)));
}

/// Returns the exit code for a trial.
pub(crate) fn exit_of(trial: &Trial, strictness: Strictness) -> Exit {
    exit_of_end(&trial.ended).and(exit::of_run(&trial.recording.document, strictness))
}

/// Returns the exit code for the ending of a trial.
pub(super) fn exit_of_end(ended: &TrialEnded) -> Exit {
    match ended {
        TrialEnded::Complete => Exit::Done,
        TrialEnded::Interrupted | TrialEnded::Empty | TrialEnded::NotMeasured(_) => Exit::NOT_MEASURED,
        TrialEnded::NotRecorded(_) | TrialEnded::Failed(_) => Exit::Failed(FailureKind::Failed),
    }
}
