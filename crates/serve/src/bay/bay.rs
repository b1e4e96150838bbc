//! The bay: a drive, its exports, and the socket on which it takes orders.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_block::{ErrorKind, Nanos, RealClock, Time, in_one_line};
use plumb_sim::cut::CutWhen;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::fault::Fault;
use plumb_sim::model::Model;
use plumb_sim::{Handle, drive};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::attached::Attached;
#[cfg(feature = "ublk")]
use super::attached::{Ublk, kept};
use super::clients;
use super::control::{self, Answer, LastCut, Order, Refused, Status};
use super::error::BayError;
use super::serving::{Encryption, Place, Say, Servings};
use super::socket::ControlSocket;

/// How often the flag to stop is looked at.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How long a client that has just hung up may take to be seen as gone.
const LEAVING: Duration = Duration::from_secs(1);
/// A server tells nobody that a client has left.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long the drive may take to answer what NBD clients have asked, once nobody is to be served any more.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

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
    /// Where to serve NBD.
    pub nbd: Vec<Place>,
    /// How to encrypt what is served over TCP; beyond this machine nothing is served without.
    pub encryption: Option<Encryption>,
    /// Told what nobody asked for: orders not heard to their end, clients turned away.
    pub say: Say,
    /// Whether to attach it as a loop device.
    pub attach: bool,
    /// Whether to export it through ublk instead.
    #[cfg(feature = "ublk")]
    pub ublk: Option<Ublk>,
}

/// A drive that is served.
pub struct Bay {
    name: String,
    handle: Handle,
    control: ControlSocket,
    /// The cut that was asked for last if it was for later, and how many there had been then.
    armed: Option<(String, u64)>,
    servings: Servings,
    attached: Option<Attached>,
    /// Orders that came while the drive was being detached.
    waiting: VecDeque<(UnixStream, Order)>,
    say: Say,
}

impl Bay {
    /// Makes the drive and its exports. Faults are set last: they count from when it is ready for its users.
    ///
    /// # Errors
    /// See [`BayError`]; nothing is left behind.
    pub fn open(options: BayOptions) -> Result<Self, BayError> {
        let BayOptions { directory, name, model, mut drive, nbd, encryption, say, attach, .. } = options;
        let faults = std::mem::take(&mut drive.faults);
        #[cfg(feature = "ublk")]
        let kept = kept(&model.name, &drive.backing);
        let (mut control, name) = ControlSocket::listen(&directory, name, &model.name)?;
        let mut drive = Drive::new(&model, drive)?;
        drive.rename(&*name);
        let handle = Handle::new(drive, Time::Real(Arc::new(RealClock::start())));
        let servings = Servings::start(&name, &handle.device(), &nbd, encryption.as_ref(), &say)?;
        let attached = attach.then(|| Attached::to_loop(&handle, &name)).transpose()?;
        #[cfg(feature = "ublk")]
        let attached = match options.ublk {
            Some(ublk) => Some(Attached::to_ublk(&handle, &name, ublk, &kept)?),
            None => attached,
        };
        if let Some(warning) = attached.as_ref().and_then(Attached::warning) {
            say(&warning);
        }
        handle.with(|drive, _| faults.into_iter().for_each(|fault| drive.set_fault(fault)));
        control.confirm();
        let waiting = VecDeque::new();
        Ok(Self { name, handle, control, armed: None, servings, attached, waiting, say })
    }

    /// How the drive is.
    pub fn status(&self) -> Status {
        // It asks the drive, so not while the drive is locked.
        let has_failed_flush = self.attached.as_ref().is_some_and(Attached::has_failed_flush);
        let mut status = self.handle.with(|drive, now| self.status_of(drive, now));
        status.latched |= has_failed_flush;
        status
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
            lost_although_durable_blocks: drive.last_cut().map(|report| report.promised_lost_blocks),
            last_cut: drive.last_cut().map(LastCut::from),
            latched: drive.latched().is_some(),
            faults: drive.faults().iter().map(ToString::to_string).collect(),
            nbd: self.servings.uris().first().cloned(),
            nbd_uris: self.servings.uris().to_vec(),
            nbd_clients: self.servings.connections() as u64,
            device: self.attached.as_ref().map(Attached::path),
            control: self.control.path().display().to_string(),
            pid: std::process::id(),
        }
    }

    /// Takes orders until `stop` is set, until the drive is detached, or until an export fails. Whoever has it detached is
    /// answered once everything is gone, and whether all is durable is known.
    ///
    /// # Errors
    /// If an export ended by itself, or what the drive held could not be made durable.
    pub fn serve(mut self, stop: &AtomicBool) -> Result<(), BayError> {
        let system = |source| BayError::System { operation: "wait for orders", source };
        let has_ended =
            |bay: &Self| bay.servings.has_ended() || bay.attached.as_ref().is_some_and(Attached::has_ended);
        let mut leave_takers = Vec::new();
        while leave_takers.is_empty() && !stop.load(Ordering::Relaxed) && !has_ended(&self) {
            if self.waiting.is_empty() {
                match poll(&mut [PollFd::new(&self.control, PollFlags::IN)], Some(&LOOK_EVERY)) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(system(errno.into())),
                }
                hear(&self.control, &mut self.waiting, &self.name, &self.say);
            }
            if let Some((stream, order)) = self.waiting.pop_front() {
                leave_takers.extend(self.converse(stream, &order, stop));
            }
        }
        let (say, name) = (Arc::clone(&self.say), self.name.clone());
        for (stream, order) in std::mem::take(&mut self.waiting) {
            match order {
                Order::Detach { .. } => leave_takers.push(stream),
                _ => tell(stream, &Answer::Refused(going()), &name, &say),
            }
        }
        let (status, closed) = self.close();
        let answer = match &closed {
            Ok(()) => Answer::Done(Box::new(status)),
            Err(error) => Answer::Refused(Refused::failed(in_one_line(error))),
        };
        for stream in leave_takers {
            tell(stream, &answer, &name, &say);
        }
        closed
    }

    /// Carries out an order and answers it. Whoever had the drive detached is to be answered later, and comes back.
    fn converse(&mut self, stream: UnixStream, order: &Order, stop: &AtomicBool) -> Option<UnixStream> {
        let answer = self.carry_out(order, stop);
        if matches!((order, &answer), (Order::Detach { .. }, Answer::Done(_))) {
            return Some(stream);
        }
        tell(stream, &answer, &self.name, &self.say);
        None
    }

    fn carry_out(&mut self, order: &Order, stop: &AtomicBool) -> Answer {
        if *order == Order::PowerOn {
            self.forget_cache();
        }
        let done = match order {
            Order::Detach { cut_off } => self.take_away(*cut_off, stop),
            order => self.handle.with(|drive, now| change(drive, now, order)),
        };
        if let (Order::Cut { when }, Ok(())) = (order, &done) {
            let cuts = self.handle.with(|drive, _| drive.counters().cuts);
            self.armed = Some((when.clone(), cuts)).filter(|(when, _)| when != "now");
        }
        if *order == Order::Disarm {
            self.armed = None;
        }
        match done {
            Ok(()) => Answer::Done(Box::new(self.status())),
            Err(refused) => Answer::Refused(refused),
        }
    }

    /// A machine that lost power with its drive has forgotten what it had cached of it; this one has not. Nothing that is
    /// dirty can be written while the power is off, which is why an error says nothing.
    fn forget_cache(&self) {
        let is_off = self.handle.with(|drive, _| !drive.is_powered());
        if let Some(attached) = self.attached.as_ref().filter(|_| is_off) {
            attached.forget_cache().unwrap_or_default();
        }
    }

    /// Takes the exports away, if they are not in use or even if they are.
    fn take_away(&mut self, cut_off: bool, stop: &AtomicBool) -> Result<(), Refused> {
        let until = Instant::now() + LEAVING;
        while !cut_off && self.servings.connections() > 0 && Instant::now() < until {
            std::thread::sleep(LOOK_AGAIN);
        }
        let connections = self.servings.connections();
        if connections > 0 && !cut_off {
            let mut by = clients::of_nbd(self.control.path());
            if by.is_empty() {
                by.push(format!("{connections} clients"));
            }
            return Err(in_use(&BayError::Connected { by }));
        }
        match self.detach(&|| cut_off || stop.load(Ordering::Relaxed)) {
            Err(_) if cut_off => {
                // Dropped, it is cut from those who have it.
                self.attached = None;
                Ok(())
            }
            Err(held) if held.is_held() => Err(in_use(&held)),
            Err(unflushed) if unflushed.is_unflushed() => {
                let why = in_one_line(&unflushed);
                Err(Refused::failed(format!(
                    "{why}; it stays, and `detach --cut-off` takes it away as it is"
                )))
            }
            outcome => outcome.map_err(|error| Refused::failed(in_one_line(&error))),
        }
    }

    /// Takes the block device away, if it is not in use. Meanwhile orders are heard: one to cut it off hastens this.
    fn detach(&mut self, is_forced: &dyn Fn() -> bool) -> Result<(), BayError> {
        let Self { attached, control, waiting, name, say, .. } = self;
        if let Some(held) = attached {
            held.detach(&mut || {
                hear(control, waiting, name, say);
                let is_to_be_cut = |(_, order): &(_, Order)| *order == Order::Detach { cut_off: true };
                is_forced() || waiting.iter().any(is_to_be_cut)
            })?;
            *attached = None;
        }
        Ok(())
    }

    /// Ends the exports. What the drive held at risk is durable then, as when a machine shuts down. And how the drive was last.
    fn close(mut self) -> (Status, Result<(), BayError>) {
        let detached = self.detach(&|| true).map_err(BayError::cut_off);
        // Before the drive ends: nobody shall be left who could still write to it.
        self.attached = None;
        let (handle, mut abandoned) = (&self.handle, Ok(()));
        let served = self.servings.end(LAST_ANSWERS, || abandoned = handle.with(abandon));
        let kept = abandoned.and_then(|()| self.handle.with(Drive::shut_down));
        let status = self.status();
        (status, detached.and(served.map_err(BayError::from)).and(kept.map_err(BayError::ShutDown)))
    }
}

/// Ends whatever the drive leaves unanswered; what it had answered becomes durable first.
fn abandon(drive: &mut Drive, now: Nanos) -> plumb_block::Result<()> {
    let kept = drive.shut_down(now);
    drive.cut_power(now);
    kept
}

/// Takes the orders of all who wait to give one.
fn hear(control: &ControlSocket, waiting: &mut VecDeque<(UnixStream, Order)>, name: &str, say: &Say) {
    while let Some(mut stream) = control.accept() {
        match control::hear(&mut stream) {
            Ok(order) => waiting.extend(order.map(|order| (stream, order))),
            Err(error) => say(&format!("{name}: an order was not heard to its end: {error}")),
        }
    }
}

/// Answers an order. If whoever gave it is gone the drive goes on.
fn tell(mut stream: UnixStream, answer: &Answer, name: &str, say: &Say) {
    if let Err(error) = control::answer(&mut stream, answer) {
        say(&format!("{name}: an order was not heard to its end: {error}"));
    }
}

fn going() -> Refused {
    Refused::unsafe_now("it is just being taken away".to_owned())
}

fn in_use(error: &BayError) -> Refused {
    Refused::unsafe_now(format!("{}; end that first, or detach with --cut-off", in_one_line(error)))
}

/// Changes the drive as the order says.
fn change(drive: &mut Drive, now: Nanos, order: &Order) -> Result<(), Refused> {
    let senseless = |error: &dyn std::error::Error| Refused::senseless(in_one_line(error));
    match order {
        Order::Status | Order::Detach { .. } => {}
        Order::Cut { when } => {
            let when: CutWhen = when.parse().map_err(|error| senseless(&error))?;
            if !drive.is_powered() {
                let why = "its power is off already; `plumb drive power-on` turns it on";
                return Err(Refused::unsafe_now(why.to_owned()));
            }
            drive.cut_when(now, when);
        }
        Order::Disarm => drive.disarm(),
        Order::PowerOn => drive.power_on(now),
        Order::Set { wce } => drive.set_wce(now, *wce).map_err(|error| {
            let why = in_one_line(&error);
            match error.kind {
                ErrorKind::Unsupported => Refused::senseless(why),
                ErrorKind::PowerLost => Refused::unsafe_now(why),
                _ => Refused::failed(why),
            }
        })?,
        Order::Fault { fault } => {
            let fault: Fault = fault.parse().map_err(|error| senseless(&error))?;
            fault.fits(drive.info().blocks()).map_err(|error| senseless(&error))?;
            drive.set_fault(fault);
        }
        Order::ClearFaults => drive.clear_faults(),
    }
    Ok(())
}
