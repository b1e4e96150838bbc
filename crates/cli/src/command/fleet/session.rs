//! The agents of a command on many hosts, from their launch to their end.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use plumb_block::{Clock as _, Nanos};
use plumb_dialect::native::split;
use plumb_fleet::{Controller, Launcher, MonotonicClock, Processes, Settings, Task, hosts, merge};
use plumb_measure::Out;
use plumb_report::document::FleetDocument;

use super::Reach;
use super::progress::Progress;
use super::record::{Kept, Recording, What};
use crate::arguments::RecordingArguments;
use crate::command::agent::own_identity;
use crate::exit::{Exit, Refusal, usage};
use crate::surroundings::out;
use crate::{files, stop};

/// How long a host may take to give its result after its load was expected to be over.
const END_WITHIN: Nanos = Nanos::secs(120);
/// How long a host may take to end what it does when it is told to.
const STOP_WITHIN: Nanos = Nanos::secs(30);

/// Agents on many hosts.
pub(super) struct Session {
    pub(super) names: Vec<String>,
    controller: Controller,
    processes: Processes,
    pub(super) stop: Arc<AtomicBool>,
    /// Where the run is to be kept.
    out: Out,
}

impl Session {
    /// The agents that are reached so; none is started yet.
    ///
    /// # Errors
    /// If what was typed makes no sense.
    pub(super) fn open(reach: &Reach, recording: &RecordingArguments) -> anyhow::Result<Self> {
        let names = named_hosts(&reach.hosts)?;
        // Its words may hold what is nobody's business: they are not repeated.
        let unreadable = || Refusal::new(Exit::Usage, "--launcher: a quote has no end");
        let words = split(&reach.launcher).ok_or_else(unreadable)?;
        let empty = || Refusal::new(Exit::Usage, "--launcher: no program is named, such as ssh {host}");
        let launcher = Launcher::new(words, &reach.remote_plumb).ok_or_else(empty)?;
        if names.len() > 1 && !launcher.names_host() {
            let problem = format!(
                "--launcher: {} hosts are named, and it reaches the same for each: put {{host}} where the name belongs",
                names.len()
            );
            return Err(Refusal::new(Exit::Usage, problem).into());
        }
        let identity = own_identity()?;
        let own = PathBuf::from("/proc/self/exe");
        let program = reach.push.then(|| (own, identity.binary.clone(), reach.connect_timeout));
        let settings = Settings {
            identity,
            any_binary: reach.any_build,
            heartbeat: reach.heartbeat,
            connect_within: reach.connect_timeout,
            forks: usize::from(reach.forks),
            prepare_within: reach.prepare_timeout,
            end_within: END_WITHIN,
            stop_within: STOP_WITHIN,
        };
        Ok(Self {
            controller: Controller::new(settings, &names),
            processes: Processes::new(launcher, &names, program),
            names,
            stop: stop::on_signals()?,
            out: out(recording, "fleet"),
        })
    }

    /// Does `work` with these agents, and ends them; what of it is kept is written meanwhile by a thread of
    /// its own.
    ///
    /// # Errors
    /// If the place of the recording does not take it, before a host is asked; those of `work`.
    pub(super) fn recorded<R>(
        &mut self,
        begun: FleetDocument,
        what: &What,
        work: impl FnOnce(&mut Self, &mut Kept) -> anyhow::Result<R>,
    ) -> anyhow::Result<(R, Recording)> {
        let mut recording = Recording::begin(&self.out, &self.names, begun)?;
        let done = recording.during(what, |kept| {
            let done = work(self, kept)?;
            self.leave()?;
            anyhow::Ok(done)
        });
        Ok((done?, recording))
    }

    /// Has each host do its task, to the end; from its start it is `expected` to last so long.
    pub(super) fn run(
        &mut self,
        task: &dyn Fn(usize) -> Option<Task>,
        expected: Option<Nanos>,
        kept: &mut Kept,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        self.controller.begin(task, expected);
        self.drive(&Controller::is_done, &Arc::clone(&self.stop), &mut |controller, now| {
            progress.look(controller, now);
            kept.look(controller, now).iter().for_each(|trouble| progress.say(trouble));
        })
    }

    /// Drives the hosts until it `is_over`; `watch` sees them.
    fn drive(
        &mut self,
        is_over: &dyn Fn(&Controller) -> bool,
        stop: &Arc<AtomicBool>,
        watch: &mut dyn FnMut(&Controller, Nanos),
    ) -> anyhow::Result<()> {
        self.processes
            .drive(&mut self.controller, is_over, &MonotonicClock, stop, watch)
            .context("cannot wait for the hosts")
    }

    /// Returns the answers of the hosts. The hosts are heard before and after: with many of them this takes
    /// its time.
    pub(super) fn answers(&mut self) -> anyhow::Result<Vec<merge::Answer<'static>>> {
        self.keep_leases()?;
        let answers = merge::answers(&mut self.controller);
        self.keep_leases()?;
        Ok(answers)
    }

    /// Pings and hears all hosts once.
    fn keep_leases(&mut self) -> anyhow::Result<()> {
        let has_looked = Cell::new(false);
        self.drive(&|_| has_looked.replace(true), &Arc::clone(&self.stop), &mut |_, _| {})
    }

    /// Ends all agents.
    fn leave(&mut self) -> anyhow::Result<()> {
        self.controller.leave(MonotonicClock.now());
        // Whoever waits for the end of launchers is not to be hurried again.
        self.drive(&Controller::has_left, &Arc::default(), &mut |_, _| {})
    }
}

/// The hosts that were typed, or those of a file. No host has a name with a slash, or one that ends as that
/// of a text does; and what is there and is no directory is meant as the file.
fn named_hosts(typed: &str) -> Result<Vec<String>, Refusal> {
    let path = Path::new(typed);
    let is_there = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    if !is_there && !typed.contains('/') && !typed.ends_with(".txt") {
        return hosts::of_list(typed).map_err(usage);
    }
    let wrong = |why: &dyn std::fmt::Display| Refusal::new(Exit::Usage, format!("--hosts {typed}: {why}"));
    let found = path.metadata().map_err(|error| wrong(&error))?;
    if !found.is_file() {
        return Err(wrong(
            &"it is no regular file: name a file with the hosts in its lines, or type them with commas",
        ));
    }
    hosts::of_file(&files::read(typed).map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))
}
