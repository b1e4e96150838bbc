//! [`Session`]: the agents of a command on many hosts, from launch to exit.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock as _, FailureKind, Nanos};
use plumb_measure::Out;
use plumb_report::document::FleetDocument;
use plumb_report::document::fleet::FleetHost;
use plumb_report::verdict::names_of_one_machine;

use crate::clock::MonotonicClock;
use crate::controller::{Controller, HostNow, Settings};
use crate::launcher::Launcher;
use crate::merge;
use crate::message::Task;
use crate::processes::Processes;
use crate::record::{Command, Content, InterimRecord, Recording};
use crate::work::{PROGRAM, own_identity};

/// Time limit for the result after the expected end of a load.
const END_WITHIN: Nanos = Nanos::secs(120);
/// Time limit for ending a task after the order to stop.
const STOP_WITHIN: Nanos = Nanos::secs(30);

/// Hosts and how to reach them.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Names of the hosts.
    pub names: Vec<String>,
    /// Words of the launcher command.
    pub launcher: Vec<String>,
    /// Name or path of plumb on the hosts.
    pub remote_plumb: String,
    /// True to copy this program to each host first.
    pub push: bool,
    /// True to accept another build of the same version.
    pub any_build: bool,
    /// Maximum number of hosts connecting at the same time.
    pub forks: usize,
    /// Time limit for the first answer of an agent.
    pub connect_within: Nanos,
    /// Time limit for preparing targets, and for running a command.
    pub prepare_within: Nanos,
    /// Interval of the heartbeats in both directions.
    pub heartbeat: Nanos,
}

/// Reason why a command on many hosts ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The launcher is empty.
    #[error("--launcher: no program is named, such as ssh {{host}}")]
    NoLauncher,
    /// The launcher does not contain the name of the host.
    #[error(
        "--launcher: {0} hosts are named, but the launcher reaches the same one for each: put {{host}} \
         where the name belongs"
    )]
    OneHost(usize),
    /// The program file cannot be read.
    #[error("{PROGRAM}")]
    Program(#[source] std::io::Error),
    /// Waiting for the hosts failed.
    #[error("cannot wait for the hosts")]
    Wait(#[source] plumb_block::Error),
    /// The run directory could not be written.
    #[error(transparent)]
    Recording(plumb_measure::Error),
    /// The host counts of `--scale` are invalid.
    #[error("--scale: {0}")]
    Scale(String),
    /// No host measured anything, for this reason.
    #[error("{0}")]
    NotMeasured(String),
}

impl SessionError {
    /// Returns the failure class of a command that ends with this error.
    pub const fn failure(&self) -> FailureKind {
        match self {
            Self::NoLauncher | Self::OneHost(_) | Self::Recording(_) | Self::Scale(_) => FailureKind::Usage,
            Self::NotMeasured(_) => FailureKind::NotMeasured,
            Self::Program(_) | Self::Wait(_) => FailureKind::Failed,
        }
    }
}

/// Callback while the hosts work. It receives the controller, the time, and an error of the recording, if
/// any.
pub type Watch<'w> = &'w mut dyn FnMut(&Controller, Nanos, Option<&str>);

/// Agents on many hosts.
pub struct Session {
    /// Names of the hosts.
    pub names: Vec<String>,
    controller: Controller,
    processes: Processes,
    /// Set to end the tasks of the hosts early.
    pub stop: Arc<AtomicBool>,
    /// Destination of the recording.
    out: Out,
    /// Time limit for preparing targets.
    pub(crate) prepare_within: Nanos,
}

impl Session {
    /// Creates a session on the hosts of `reach`, without starting agents.
    ///
    /// # Errors
    /// Fails if the launcher is invalid or this program cannot be read.
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

    /// Runs `work` with these agents and ends them. A separate thread writes the recording meanwhile.
    ///
    /// # Errors
    /// Fails before any host is contacted if the recording cannot be created; otherwise as `work`.
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

    /// Runs the task of each host to its end. `expected` is the time from start to end, if known.
    ///
    /// # Errors
    /// Fails if waiting for the hosts fails.
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

    /// Drives the hosts until `is_over` returns true; calls `watch` meanwhile.
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

    /// Returns the answers of the hosts. Exchanges heartbeats before and after, as merging takes time with
    /// many hosts.
    ///
    /// # Errors
    /// Fails if waiting for the hosts fails.
    pub fn answers(&mut self) -> Result<Vec<merge::Answer<'static>>, SessionError> {
        self.keep_leases()?;
        let answers = merge::answers(&mut self.controller);
        self.keep_leases()?;
        Ok(answers)
    }

    /// Returns a sentence for each machine of which several hosts are names.
    pub(crate) fn names_of_one_machine(&self) -> Vec<String> {
        let host = |now: HostNow<'_>| FleetHost {
            name: now.name.to_owned(),
            boot_id: now.boot_id.map(str::to_owned),
            ..FleetHost::default()
        };
        names_of_one_machine(&self.controller.hosts().map(host).collect::<Vec<_>>())
    }

    /// Exchanges heartbeats with all hosts once.
    fn keep_leases(&mut self) -> Result<(), SessionError> {
        let has_looked = Cell::new(false);
        self.drive(&|_| has_looked.replace(true), &Arc::clone(&self.stop), &mut |_, _| {})
    }

    /// Ends all agents.
    fn leave(&mut self) -> Result<(), SessionError> {
        self.controller.leave(MonotonicClock.now());
        // A stop request must not shorten the wait for the launchers.
        self.drive(&Controller::has_left, &Arc::default(), &mut |_, _| {})
    }
}
