//! The agents of a command on many hosts, from their launch to their end.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock as _, FailureKind, Nanos};
use plumb_measure::Out;
use plumb_report::document::FleetDocument;

use crate::clock::MonotonicClock;
use crate::controller::{Controller, Settings};
use crate::launcher::Launcher;
use crate::merge;
use crate::message::Task;
use crate::processes::Processes;
use crate::record::{Command, Content, InterimRecord, Recording};
use crate::work::{PROGRAM, own_identity};

/// Time that a host may take to give its result after its load was expected to be over.
const END_WITHIN: Nanos = Nanos::secs(120);
/// Time limit for a host to stop after a stop command.
const STOP_WITHIN: Nanos = Nanos::secs(30);

/// Way to reach the hosts.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Names of the hosts.
    pub names: Vec<String>,
    /// Words of the launcher.
    pub launcher: Vec<String>,
    /// Name of plumb on the hosts.
    pub remote_plumb: String,
    /// True if this program is copied to each host first.
    pub push: bool,
    /// True if another build of the same version is taken as it is.
    pub any_build: bool,
    /// Number of hosts that are connected at one time.
    pub forks: usize,
    /// Time that an agent may take to answer.
    pub connect_within: Nanos,
    /// Time that a host may take to make its targets ready, or to run a command.
    pub prepare_within: Nanos,
    /// How often agents and controller hear of each other.
    pub heartbeat: Nanos,
}

/// Reason why a command on many hosts ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The launcher has no words.
    #[error("--launcher: no program is named, such as ssh {{host}}")]
    NoLauncher,
    /// The launcher reaches one host, whatever the name.
    #[error(
        "--launcher: {0} hosts are named, but the launcher reaches the same one for each: put {{host}} \
         where the name belongs"
    )]
    OneHost(usize),
    /// The file of this program cannot be read.
    #[error("{PROGRAM}")]
    Program(#[source] std::io::Error),
    /// The system cannot wait for the hosts.
    #[error("cannot wait for the hosts")]
    Wait(#[source] plumb_block::Error),
    /// The place of the recording does not take it.
    #[error(transparent)]
    Recording(plumb_measure::Error),
    /// The numbers of hosts to run on make no sense.
    #[error("--scale: {0}")]
    Scale(String),
    /// Nothing was measured on the hosts; the reason.
    #[error("{0}")]
    NotMeasured(String),
}

impl SessionError {
    /// Returns the way in which a command fails that ends with it.
    pub const fn failure(&self) -> FailureKind {
        match self {
            Self::NoLauncher | Self::OneHost(_) | Self::Recording(_) | Self::Scale(_) => FailureKind::Usage,
            Self::NotMeasured(_) => FailureKind::NotMeasured,
            Self::Program(_) | Self::Wait(_) => FailureKind::Failed,
        }
    }
}

/// Callback that looks at the hosts while they work. It receives the time now, and what went wrong with the
/// recording.
pub type Watch<'w> = &'w mut dyn FnMut(&Controller, Nanos, Option<&str>);

/// Agents on many hosts.
pub struct Session {
    /// Names of the hosts.
    pub names: Vec<String>,
    controller: Controller,
    processes: Processes,
    /// Becomes true when the hosts must end early.
    pub stop: Arc<AtomicBool>,
    /// Place where the run is kept.
    out: Out,
    /// Time that a host may take to prepare its targets.
    pub(crate) prepare_within: Nanos,
}

impl Session {
    /// Creates the agents that `reach` describes. None is started yet.
    ///
    /// # Errors
    /// If the launcher makes no sense, or this program cannot be read.
    pub fn open(reach: Reach, out: Out, stop: Arc<AtomicBool>) -> Result<Self, SessionError> {
        let Reach { names, launcher, remote_plumb, .. } = reach;
        let launcher = Launcher::new(launcher, &remote_plumb).ok_or(SessionError::NoLauncher)?;
        if names.len() > 1 && !launcher.names_host() {
            return Err(SessionError::OneHost(names.len()));
        }
        let identity = own_identity().map_err(SessionError::Program)?;
        let program =
            reach.push.then(|| (PathBuf::from(PROGRAM), identity.binary.clone(), reach.connect_within));
        let settings = Settings {
            identity,
            any_binary: reach.any_build,
            heartbeat: reach.heartbeat,
            connect_within: reach.connect_within,
            forks: reach.forks,
            prepare_within: reach.prepare_within,
            end_within: END_WITHIN,
            stop_within: STOP_WITHIN,
        };
        Ok(Self {
            controller: Controller::new(settings, &names),
            processes: Processes::new(launcher, &names, program),
            names,
            stop,
            out,
            prepare_within: reach.prepare_within,
        })
    }

    /// Does `work` with these agents, and ends them; what of it is kept is written meanwhile by a thread of
    /// its own.
    ///
    /// # Errors
    /// If the place of the recording does not take it, before a host is asked; those of `work`.
    pub fn recorded<R>(
        &mut self,
        command: Command,
        begun: FleetDocument,
        content: Content,
        work: impl FnOnce(&mut Self, &mut InterimRecord) -> Result<R, SessionError>,
    ) -> Result<(R, Recording), SessionError> {
        let mut recording =
            Recording::begin(&self.out, &self.names, command, begun).map_err(SessionError::Recording)?;
        let done = recording.during(content, |kept| {
            let done = work(self, kept)?;
            self.leave()?;
            Ok(done)
        });
        Ok((done?, recording))
    }

    /// Has each host do its task, to the end; from its start it is `expected` to last so long.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn run(
        &mut self,
        task: &dyn Fn(usize) -> Option<Task>,
        expected: Option<Nanos>,
        kept: &mut InterimRecord,
        watch: Watch<'_>,
    ) -> Result<(), SessionError> {
        self.controller.begin(task, expected);
        self.drive(&Controller::is_done, &Arc::clone(&self.stop), &mut |controller, now| {
            watch(controller, now, kept.look(controller, now).as_deref());
        })
    }

    /// Drives the hosts until it `is_over`; `watch` sees them.
    fn drive(
        &mut self,
        is_over: &dyn Fn(&Controller) -> bool,
        stop: &Arc<AtomicBool>,
        watch: &mut dyn FnMut(&Controller, Nanos),
    ) -> Result<(), SessionError> {
        self.processes
            .drive(&mut self.controller, is_over, &MonotonicClock, stop, watch)
            .map_err(SessionError::Wait)
    }

    /// Returns the answers of the hosts. The hosts are heard before and after: with many of them this takes
    /// its time.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn answers(&mut self) -> Result<Vec<merge::Answer<'static>>, SessionError> {
        self.keep_leases()?;
        let answers = merge::answers(&mut self.controller);
        self.keep_leases()?;
        Ok(answers)
    }

    /// Pings and hears all hosts once.
    fn keep_leases(&mut self) -> Result<(), SessionError> {
        let has_looked = Cell::new(false);
        self.drive(&|_| has_looked.replace(true), &Arc::clone(&self.stop), &mut |_, _| {})
    }

    /// Ends all agents.
    fn leave(&mut self) -> Result<(), SessionError> {
        self.controller.leave(MonotonicClock.now());
        // Whoever waits for the end of launchers is not to be hurried again.
        self.drive(&Controller::has_left, &Arc::default(), &mut |_, _| {})
    }
}
