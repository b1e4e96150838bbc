//! Power of a drive that is being recorded. Another process may cut it: `plumb prove cut NAME`.
//!
//! ```text
//!   plumb prove app --name db ── program ── requests, acknowledgements ─► recording
//!        ▲                          ✕ killed                                 │ mark
//!   plumb prove cut db ─────────────┴────────────────────────────────────────┘
//! ```
//! The cut is an event of the recording. Later requests of the program do not count.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use plumb_block::{Bytes, RealClock};
use plumb_serve::named::control::RefusedOrder;
use plumb_serve::named::{
    Controls, Ending, Exports, Service, ServiceDevice, ServiceError, ServiceOptions, registry,
};
use serde::{Deserialize, Serialize};

use super::drive::blank;
use crate::recording::{Event, Recorder};

/// Mark of a cut in a recording.
pub(crate) const CUT: &str = "the power is cut on request";

/// Power of a recorded drive. It is on while the program runs.
#[derive(Default)]
pub struct PowerSwitch {
    power: Mutex<Power>,
    is_cut: AtomicBool,
}

#[derive(Default)]
enum Power {
    /// No program is running.
    #[default]
    Off,
    /// Recorder for the mark; `None` if the follower of the system calls records it.
    On(Option<Recorder>),
    /// Event of the mark; `None` if the follower of the system calls has it.
    Cut(Option<usize>),
}

impl std::fmt::Debug for PowerSwitch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PowerSwitch").field("is_cut", &self.is_cut).finish_non_exhaustive()
    }
}

impl PowerSwitch {
    /// Turns the power on when the program starts.
    pub(super) fn begin(&self, recorder: Option<Recorder>) {
        *self.lock() = Power::On(recorder);
    }

    /// Turns the power off when the program has ended. Returns the event of the cut if the recorder has one.
    pub(super) fn end(&self) -> Option<usize> {
        match std::mem::take(&mut *self.lock()) {
            Power::Cut(event) => event,
            Power::On(_) | Power::Off => None,
        }
    }

    /// Returns true once the power was cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.flag().load(Ordering::Acquire)
    }

    /// Returns the flag that is set by the cut and ends the program.
    pub(super) const fn flag(&self) -> &AtomicBool {
        &self.is_cut
    }

    fn cut(&self) -> Result<(), RefusedOrder> {
        let mut power = self.lock();
        match &*power {
            Power::On(recorder) => {
                let mark = |recorder: &Recorder| recorder.happened(Event::Marked(CUT.to_owned()));
                *power = Power::Cut(recorder.as_ref().map(mark));
                self.is_cut.store(true, Ordering::Release);
                Ok(())
            }
            Power::Cut(_) => Err(RefusedOrder::unsafe_now("its power was cut before".to_owned())),
            Power::Off => {
                let why = "its program does not run, and only a running one has power to cut: try again";
                Err(RefusedOrder::unsafe_now(why.to_owned()))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Power> {
        self.power.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Order to a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum ProofOrder {
    /// Cut the power.
    Cut,
}

/// Recording that accepts orders under a name until it is dropped.
pub struct NamedRecording {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServiceError>>>,
}

impl NamedRecording {
    /// Makes `power` accept cuts under this name, which is unique in `directory`.
    ///
    /// # Errors
    /// If the name is invalid, or in use.
    pub fn begin(directory: &Path, name: &str, power: &Arc<PowerSwitch>) -> Result<Self, ServiceError> {
        let failed = |source| ServiceError::Control { path: directory.to_owned(), source };
        registry::make(directory).map_err(failed)?;
        let options = ServiceOptions {
            directory: directory.to_owned(),
            name: Some(name.to_owned()),
            kind: "proof".to_owned(),
            nbd: Vec::new(),
            encryption: None,
            say: Arc::new(|_| ()),
            attach: false,
            ublk: None,
        };
        let controls = PowerControls(Arc::clone(power));
        // Orders concern the power alone, so no export of the drive is needed.
        let device = blank(Bytes::kib(4), Bytes::kib(4), &Arc::new(RealClock::start()));
        let service = Service::open(options, |_| {
            Ok(ServiceDevice { device, description: "a recording".to_owned(), controls })
        })?;
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name("orders".to_owned());
        let serve = move || service.serve(Ending { stop: &stop, cut_off: &AtomicBool::new(false) });
        let thread = thread
            .spawn(serve)
            .map_err(|source| ServiceError::System { operation: "start a thread", source })?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for NamedRecording {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Without exports a failure of the server has no effect.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

struct PowerControls(Arc<PowerSwitch>);

impl Controls for PowerControls {
    type Order = ProofOrder;
    type Status = ();

    const WAITS_FOR_HOLDERS: bool = false;

    fn status(&self, _exports: &Exports<'_>) {}

    fn carry_out(&mut self, ProofOrder::Cut: ProofOrder) -> Result<(), RefusedOrder> {
        self.0.cut()
    }

    fn shut_down(&mut self, _is_forced: bool) -> plumb_block::Result<()> {
        Ok(())
    }
}
