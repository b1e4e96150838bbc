//! Keeps a device connected: one session after the other, and what to tell the queues meanwhile.
//!
//! ```text
//!            a connection is lost                    made again
//!   up ──────────────────────────────► down ──────────────────────────► up, in the next epoch
//!                                        │ given up, refused, or never to be tried
//!                                        └────────────────────────────► closed
//! ```
//!
//! Invariant: before the next session is there, every connection of the one before was cut. So no answer of an old
//! epoch can be to a request of a new one.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use plumb_block::{DeviceInfo, Nanos};

use super::durability::Epoch;
use super::error::ConnectError;
use super::link::{Common, Link};
use super::options::{Options, Reconnect};
use super::session::Session;
use super::wake::Wake;
use crate::nbd::uri::Uri;

/// How a device stays connected.
pub(super) struct Connector {
    pub(super) options: Options,
    pub(super) common: Arc<Common>,
    uri: Uri,
    state: Mutex<State>,
}

struct State {
    status: Status,
    info: DeviceInfo,
    is_read_only: bool,
    /// Those to be woken when the status changes.
    waiting: Vec<Weak<Wake>>,
    /// When it is dropped, the thread that connects again ends.
    stop: Option<Sender<()>>,
}

/// Whether there are connections.
#[derive(Clone)]
pub(super) enum Status {
    Up(Arc<Session>),
    /// It is being tried.
    Down,
    /// There will never be any again; why.
    Closed(String),
}

impl Connector {
    /// Connects for the first time.
    pub(super) fn connect(uri: Uri, options: Options) -> Result<Arc<Self>, ConnectError> {
        let common = Arc::new(Common { clock: Arc::clone(&options.clock), durability: Default::default() });
        let session = Session::establish(&uri, &options, &common, None)?;
        let info = session.export.info(&uri.to_string());
        let is_read_only = session.export.is_read_only();
        let status = Status::Up(Arc::new(session));
        let state = State { status, info, is_read_only, waiting: Vec::new(), stop: None };
        Ok(Arc::new(Self { options, common, uri, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment; a panic elsewhere leaves nothing half-done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> Status {
        self.state().status.clone()
    }

    pub(super) fn info(&self) -> DeviceInfo {
        self.state().info.clone()
    }

    /// Whether the server takes no writes, as it said last.
    pub(super) fn is_read_only(&self) -> bool {
        self.state().is_read_only
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Wakes `wake` from now on whenever the status changes.
    pub(super) fn enlist(&self, wake: &Arc<Wake>) {
        let mut state = self.state();
        state.waiting.retain(|wake| wake.strong_count() > 0);
        state.waiting.push(Arc::downgrade(wake));
    }

    /// A connection of `epoch` is lost: all of them are given up, and made again if so wished.
    pub(super) fn lost(self: &Arc<Self>, epoch: Epoch, because: &str) {
        let mut state = self.state();
        let Status::Up(session) = &state.status else { return };
        if session.epoch != epoch || !self.common.durability.lost(epoch) {
            return;
        }
        session.links.iter().for_each(|link| link.cut());
        state.status = match self.options.reconnect {
            Reconnect::Never => Status::Closed(because.to_owned()),
            Reconnect::Retry { .. } => {
                let (stop, stopped) = channel();
                state.stop = Some(stop);
                let connector = Arc::downgrade(self);
                let options = self.options.clone();
                let spawned = thread::Builder::new()
                    .name("plumb-nbd".to_owned())
                    .spawn(move || reconnect(&connector, &options, &stopped));
                match spawned {
                    Ok(_) => Status::Down,
                    Err(error) => Status::Closed(format!("{because}; no thread to connect again: {error}")),
                }
            }
        };
        state.wake_all();
    }

    /// One attempt.
    fn try_again(&self) -> Result<(), ConnectError> {
        let before = self.info().logical_block;
        let session = Session::establish(&self.uri, &self.options, &self.common, Some(before.0))?;
        let mut state = self.state();
        let generation = state.info.generation;
        let info = DeviceInfo { generation, ..session.export.info(&self.uri.to_string()) };
        if info != state.info {
            state.info = DeviceInfo { generation: generation + 1, ..info };
        }
        state.is_read_only = session.export.is_read_only();
        state.status = Status::Up(Arc::new(session));
        state.wake_all();
        Ok(())
    }

    fn close(&self, because: String) {
        let mut state = self.state();
        state.status = Status::Closed(because);
        state.wake_all();
    }
}

impl State {
    fn wake_all(&mut self) {
        self.waiting.retain(|wake| wake.upgrade().inspect(|wake| wake.up()).is_some());
    }
}

/// Tries until it is connected, given up, or the device is gone.
fn reconnect(connector: &Weak<Connector>, options: &Options, stopped: &Receiver<()>) {
    let Reconnect::Retry { pause_first, pause_max, give_up_after } = options.reconnect else { return };
    let until = Instant::now() + Duration::from(give_up_after);
    let mut pause = pause_first.max(Nanos::millis(1));
    loop {
        let Some(connector) = connector.upgrade() else { return };
        let Err(error) = connector.try_again() else { return };
        // A server that refuses may be one that is not ready yet.
        if Instant::now() >= until {
            return connector.close(plumb_block::in_one_line(&error));
        }
        drop(connector);
        match stopped.recv_timeout(pause.into()) {
            Err(RecvTimeoutError::Timeout) => pause = Nanos(pause.0 * 2).min(pause_max.max(pause)),
            // The device is gone.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Session {
    /// The connection for the queue number `lane`.
    pub(super) fn link_for(&self, lane: usize) -> &Arc<Link> {
        &self.links[lane % self.links.len()]
    }
}
