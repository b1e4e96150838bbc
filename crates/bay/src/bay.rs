//! The bay: a drive, its exports, and the socket on which it takes orders.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use plumb_block::{Clock, Device, Nanos, RealClock, in_one_line};
use plumb_export::attach::{AttachError, AttachOptions, Attachment};
use plumb_export::nbd::server::{Export, Listener, OWNER_ONLY, Options, ServeError, Server, Stopper};
use plumb_sim::cut::CutWhen;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::fault::Fault;
use plumb_sim::model::Model;
use plumb_sim::{Handle, drive};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::control::{self, Answer, Order, Status};
use crate::socket::ControlSocket;

/// How often the flag to stop is looked at.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What goes into a bay, and how it is to be reached.
pub struct BayOptions {
    /// The directory of control sockets, which exists.
    pub directory: PathBuf,
    /// The name of the drive; one that is free, after the model, if `None`.
    pub name: Option<String>,
    /// What drive it is.
    pub model: Model,
    /// How it is made.
    pub drive: DriveOptions,
    /// The unix socket to serve NBD on.
    pub nbd: Option<PathBuf>,
    /// Whether to attach it as a loop device.
    pub attach: bool,
}

/// Why a bay cannot be opened or closed.
#[derive(Debug, thiserror::Error)]
pub enum BayError {
    /// The name cannot be used.
    #[error("`{0}` is no name for a drive: expected up to 40 letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// There is a drive of this name.
    #[error(
        "there is a drive `{0}` already: name this one with --name, or take that one out with `plumb drive detach {0}`"
    )]
    Taken(String),
    /// The control socket cannot be had.
    #[error("cannot make the control socket {place}")]
    Control {
        /// Its path.
        place: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The drive cannot be made.
    #[error("cannot make the drive")]
    Drive(#[from] plumb_block::Error),
    /// It ended, and its medium is not as it should be.
    #[error("what the drive held at risk could not be made durable as it ended")]
    ShutDown(#[source] plumb_block::Error),
    /// It cannot be served over NBD.
    #[error("cannot serve the drive over NBD")]
    Nbd(#[from] ServeError),
    /// It cannot be attached.
    #[error("cannot attach the drive")]
    Attach(#[source] AttachError),
    /// It cannot be detached.
    #[error("cannot take the drive away")]
    Detach(#[source] AttachError),
    /// It was taken away all the same, since the bay closed.
    #[error("the drive was taken from those who used it, who get I/O errors now")]
    CutOff(#[source] AttachError),
    /// The system refused a thread or a wait.
    #[error("cannot {operation}")]
    System {
        /// What was being done.
        operation: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// NBD being served.
struct Serving {
    socket: PathBuf,
    stopper: Stopper,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl Serving {
    /// Stops it, and waits until no request is in flight and its socket is gone.
    fn end(self) -> Result<(), ServeError> {
        self.stopper.stop();
        self.thread.join().unwrap_or_else(|_| {
            let source = io::Error::other("its thread panicked");
            Err(ServeError::System { operation: "serve NBD to the end", source })
        })
    }
}

/// A drive that is served.
pub struct Bay {
    name: String,
    handle: Handle,
    control: ControlSocket,
    /// The cut that was asked for last if it was for later, and how many there had been then.
    armed: Option<(String, u64)>,
    serving: Option<Serving>,
    attachment: Option<Attachment>,
}

impl Bay {
    /// Makes the drive and its exports.
    ///
    /// # Errors
    /// See [`BayError`]; nothing is left behind.
    pub fn open(options: BayOptions) -> Result<Self, BayError> {
        let BayOptions { directory, name, model, drive, nbd, attach } = options;
        let (control, name) = ControlSocket::listen(&directory, name, &model.name)?;
        let mut drive = Drive::new(&model, drive)?;
        drive.rename(&*name);
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let handle = Handle::in_real_time(drive, clock);
        let mut bay = Self { name, handle, control, armed: None, serving: None, attachment: None };
        if let Some(path) = nbd {
            bay.serving = Some(serve(&bay.name, bay.handle.device(), path)?);
        }
        if attach {
            let options = AttachOptions::default();
            let attachment = Attachment::new(bay.handle.device(), &bay.name, &options);
            bay.attachment = Some(attachment.map_err(BayError::Attach)?);
        }
        Ok(bay)
    }

    /// How the drive is.
    pub fn status(&self) -> Status {
        self.handle.with(|drive, now| self.status_of(drive, now))
    }

    fn status_of(&self, drive: &Drive, now: Nanos) -> Status {
        let drive::Counters { storage, fua_writes, flushes_dropped, cuts, .. } = drive.counters().clone();
        Status {
            schema: Status::SCHEMA.to_owned(),
            name: self.name.clone(),
            model: drive.model().to_owned(),
            power: drive.is_powered(),
            wce: drive.wce(),
            now: now.as_secs_f64(),
            size: drive.info().size.0,
            dirty_bytes: drive.at_risk().0,
            reads: storage.reads,
            writes: storage.writes,
            flushes: storage.flushes.unwrap_or(0),
            flushes_dropped,
            fua_writes,
            discards: storage.discards,
            cuts,
            cut_armed: self
                .armed
                .as_ref()
                .filter(|(_, before)| *before == cuts)
                .map(|(when, _)| when.clone()),
            lost_at_last_cut_blocks: drive.last_cut().map(|report| report.lost_blocks),
            latched: drive.latched().is_some(),
            faults: drive.faults().iter().map(ToString::to_string).collect(),
            nbd: self.serving.as_ref().map(|serving| uri(&serving.socket)),
            device: self.attachment.as_ref().map(|attached| attached.path().display().to_string()),
            control: self.control.path().display().to_string(),
            pid: std::process::id(),
        }
    }

    /// Takes orders until `stop` is set, until the drive is detached, or until an export fails.
    ///
    /// # Errors
    /// If an export ended by itself.
    pub fn serve(mut self, stop: &AtomicBool) -> Result<(), BayError> {
        let system = |source| BayError::System { operation: "wait for orders", source };
        while !stop.load(Ordering::Relaxed) && !self.has_ended() {
            match poll(&mut [PollFd::new(&self.control, PollFlags::IN)], Some(&LOOK_EVERY)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(system(errno.into())),
            }
            if let Some(stream) = self.control.accept()
                && self.converse(stream)
            {
                break;
            }
        }
        self.close()
    }

    /// Whether the NBD server has ended by itself.
    fn has_ended(&self) -> bool {
        self.serving.as_ref().is_some_and(|serving| serving.thread.is_finished())
    }

    /// Takes one order; whether the drive was detached by it.
    fn converse(&mut self, mut stream: UnixStream) -> bool {
        let mut is_detached = false;
        let conversed = control::serve(&mut stream, |order| {
            let answer = self.carry_out(order);
            is_detached = *order == Order::Detach && matches!(answer, Answer::Done(_));
            answer
        });
        if let Err(error) = conversed {
            // Whoever gave the order is gone; the drive goes on.
            eprintln!("{}: an order was not heard to its end: {error}", self.name);
        }
        is_detached
    }

    fn carry_out(&mut self, order: &Order) -> Answer {
        if *order == Order::PowerOn {
            self.forget_cache();
        }
        let done = match order {
            Order::Detach => self.detach().map_err(|error| in_one_line(&error)),
            order => self.handle.with(|drive, now| change(drive, now, order)),
        };
        if let (Order::Cut { when }, Ok(())) = (order, &done) {
            let cuts = self.handle.with(|drive, _| drive.counters().cuts);
            self.armed = Some((when.clone(), cuts)).filter(|(when, _)| when != "now");
        }
        match done {
            Ok(()) => Answer::Done(Box::new(self.status())),
            Err(why) => Answer::Refused(why),
        }
    }

    /// A machine that lost power with its drive has forgotten what it had cached of it; this one has not. Nothing that is
    /// dirty can be written while the power is off, which is why an error says nothing.
    fn forget_cache(&self) {
        let is_off = self.handle.with(|drive, _| !drive.is_powered());
        if let Some(attachment) = self.attachment.as_ref().filter(|_| is_off) {
            attachment.forget_cache().unwrap_or_default();
        }
    }

    /// Takes the loop device away, if it is not in use.
    fn detach(&mut self) -> Result<(), BayError> {
        if let Some(attachment) = &mut self.attachment {
            attachment.detach().map_err(BayError::Detach)?;
            self.attachment = None;
        }
        Ok(())
    }

    /// Ends the exports. What the drive held at risk is durable then, as when a machine shuts down.
    fn close(mut self) -> Result<(), BayError> {
        let detached = self.detach().map_err(|error| match error {
            BayError::Detach(held @ AttachError::Held { .. }) => BayError::CutOff(held),
            other => other,
        });
        // Before the drive ends: nobody shall be left who could still write to it.
        self.attachment = None;
        let served = self.serving.take().map_or(Ok(()), Serving::end);
        let kept = self.handle.with(Drive::shut_down);
        detached.and(served.map_err(BayError::from)).and(kept.map_err(BayError::ShutDown))
    }
}

impl Drop for Bay {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            // It was never opened to the end, for which there is an error to tell already.
            serving.end().unwrap_or_default();
        }
    }
}

/// Changes the drive as the order says.
fn change(drive: &mut Drive, now: Nanos, order: &Order) -> Result<(), String> {
    match order {
        Order::Status | Order::Detach => {}
        Order::Cut { when } => {
            let when: CutWhen = when.parse().map_err(|error| format!("{error}"))?;
            if !drive.is_powered() {
                return Err("its power is off already; `plumb drive power-on` turns it on".to_owned());
            }
            drive.cut_when(now, when);
        }
        Order::PowerOn => drive.power_on(now),
        Order::Set { wce } => drive.set_wce(now, *wce).map_err(|error| error.to_string())?,
        Order::Fault { fault } => {
            drive.set_fault(fault.parse::<Fault>().map_err(|error| format!("{error}"))?)
        }
        Order::ClearFaults => drive.clear_faults(),
    }
    Ok(())
}

/// Starts the NBD server on a thread of its own.
fn serve(name: &str, device: Arc<dyn Device>, socket: PathBuf) -> Result<Serving, BayError> {
    let export = Export {
        name: name.to_owned(),
        description: format!("{} (simulated)", device.info().name),
        device,
        read_only: false,
    };
    let server = Server::new(vec![export], Options::default())?;
    let stopper = server.stopper();
    let listener = Listener::unix(&socket, OWNER_ONLY)?;
    let thread = std::thread::Builder::new()
        .name("nbd".to_owned())
        .spawn(move || server.serve(vec![listener]))
        .map_err(|source| BayError::System { operation: "start the NBD server", source })?;
    Ok(Serving { socket, stopper, thread })
}

fn uri(socket: &Path) -> String {
    format!("nbd+unix:///?socket={}", socket.display())
}
