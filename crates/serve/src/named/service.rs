//! A device that is served under a name, with its exports and the socket on which it takes orders.

use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::wait::is_readable_soon;
use plumb_block::{Bytes, Clock as _, Device, Nanos, RealClock, in_one_line, retry_until};
use plumb_state::DriveRecord;
use plumb_state::frame::send;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block_device::BlockDevice;
use super::block_device::UblkExport;
use super::control::{self, Answer, Order, RefusedOrder};
use super::error::ServiceError;
use super::nbd::{NbdAddress, NbdServers, Say, connections_max};
use super::socket::ControlSocket;
use crate::nbd::tls::ServerTls;

/// Time that a client that has just hung up may take to be seen as gone.
const LEAVING: Nanos = Nanos::secs(1);
/// How often it is looked whether somebody still uses the block device, once a signal has come.
const ASK_AGAIN: Nanos = Nanos::secs(3);

/// Control of one kind of device: the orders that only it takes, beside those that every served device takes.
pub trait Controls {
    /// Orders that only this kind of device takes.
    type Order: Serialize + DeserializeOwned;
    /// How it is.
    type Status: Serialize;
    /// True if the service goes on after `stop` was set for as long as somebody uses its block device: what
    /// they have not written yet would be lost.
    const WAITS_FOR_HOLDERS: bool;

    /// Returns how the device is, and what is exported of it.
    fn status(&self, exports: &Exports<'_>) -> Self::Status;

    /// Returns what surveys of the block device are to know of it; `None` if it is not a simulated drive.
    fn drive(&self) -> Option<DriveRecord> {
        None
    }

    /// Carries out an order.
    ///
    /// # Errors
    /// The refusal that is answered.
    fn carry_out(&mut self, order: Self::Order) -> Result<(), RefusedOrder>;

    /// Makes durable what was acknowledged, when nobody is served any more.
    ///
    /// # Errors
    /// If that is not known to be durable.
    fn shut_down(&mut self) -> plumb_block::Result<()>;
}

/// When whoever serves is to end: flags that are set while it does.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// Once nobody uses the block device any more, of a device that [waits](Controls::WAITS_FOR_HOLDERS) for
    /// that; else at once.
    pub stop: &'a AtomicBool,
    /// Whoever uses it: they get I/O errors.
    pub cut_off: &'a AtomicBool,
}

/// Settings of a service: what to serve, and how it is reached.
pub struct ServiceOptions {
    /// The directory of control sockets, which exists.
    pub directory: PathBuf,
    /// The name; one that is free, after `kind`, if `None`.
    pub name: Option<String>,
    /// Kind of device, in one word.
    pub kind: String,
    /// Addresses to serve NBD at.
    pub nbd: Vec<NbdAddress>,
    /// How to encrypt what is served over TCP; beyond this machine nothing is served without.
    pub encryption: Option<ServerTls>,
    /// Told what nobody asked for: orders not heard to their end, clients turned away.
    pub say: Say,
    /// True if to attach it as a loop device.
    pub attach: bool,
    /// Settings for an export through ublk instead; `None` for no such export.
    pub ublk: Option<UblkExport>,
}

/// A device to be served.
pub struct ServiceDevice<C> {
    /// The device.
    pub device: Arc<dyn Device>,
    /// Description of the device for NBD clients.
    pub description: String,
    /// Control of the device.
    pub controls: C,
}

/// A device that is served.
pub struct Service<C> {
    name: String,
    controls: C,
    control: ControlSocket,
    nbd: NbdServers,
    block_device: Option<BlockDevice>,
    device: Arc<dyn Device>,
    /// The losses of power for which NBD connections were ended.
    losses: u64,
    /// Size of the device that its block device was last told of.
    size: Bytes,
    /// Sentence that says why the block device did not take it; `None` if it did.
    size_warning: Option<String>,
    /// Record that surveys of its block device read.
    drive: Option<DriveRecord>,
    /// Users who must close the block device, since it has lost power while they had it open.
    awaited: Vec<String>,
    say: Say,
}

/// Exports of a device.
pub struct Exports<'a> {
    name: &'a str,
    control: &'a Path,
    nbd: &'a NbdServers,
    block_device: Option<&'a BlockDevice>,
    awaited: &'a [String],
    size_warning: Option<&'a str>,
}

impl Exports<'_> {
    /// Returns the name that it is served under.
    pub const fn name(&self) -> &str {
        self.name
    }

    /// Returns the control socket.
    pub const fn control(&self) -> &Path {
        self.control
    }

    /// Returns the NBD URIs that connect.
    pub fn nbd_uris(&self) -> &[String] {
        self.nbd.uris()
    }

    /// Returns the number of NBD clients that are connected.
    pub fn nbd_clients(&self) -> usize {
        self.nbd.connections()
    }

    /// Returns the block device of this machine.
    pub fn block_device(&self) -> Option<String> {
        self.block_device.map(BlockDevice::path)
    }

    /// Returns how the requests of the block device come to this process: `fuse`, `fuse-io-uring` or `ublk`.
    pub fn transport(&self) -> Option<String> {
        self.block_device.map(|device| device.transport().to_owned())
    }

    /// Returns true if a flush has failed on the way to the device. It asks the device.
    pub fn has_failed_flush(&self) -> bool {
        self.block_device.is_some_and(BlockDevice::has_failed_flush)
    }

    /// Returns those who must close the block device before its requests are carried out again: it lost power
    /// while they had it open.
    pub const fn awaited(&self) -> &[String] {
        self.awaited
    }

    /// Returns the sentence that says why the block device is not as large as the device, if it is not.
    pub const fn size_warning(&self) -> Option<&str> {
        self.size_warning
    }
}

/// Control connections that wait for an answer, each with its order.
type WaitingOrders<O> = VecDeque<(UnixStream, Order<O>)>;

impl<C: Controls> Service<C> {
    /// Makes the device, which is given its name, and its exports.
    ///
    /// # Errors
    /// See [`ServiceError`]; nothing is left behind.
    pub fn open(
        options: ServiceOptions,
        make: impl FnOnce(&str) -> plumb_block::Result<ServiceDevice<C>>,
    ) -> Result<Self, ServiceError> {
        let ServiceOptions { directory, name, kind, nbd, encryption, say, attach, .. } = options;
        connections_max()?;
        let (mut control, name) = ControlSocket::listen(&directory, name, &kind)?;
        let ServiceDevice { device, description, controls } = make(&name)?;
        let nbd = NbdServers::start(&name, &description, &device, &nbd, encryption.as_ref(), &say)?;
        let block_device = attach.then(|| BlockDevice::to_loop(Arc::clone(&device), &name)).transpose()?;
        let block_device = match options.ublk {
            Some(ublk) => Some(BlockDevice::to_ublk(Arc::clone(&device), &name, ublk)?),
            None => block_device,
        };
        if let Some(warning) = block_device.as_ref().and_then(BlockDevice::warning) {
            say(&warning);
        }
        control.confirm();
        let losses = device.power().losses;
        let (awaited, size, size_warning) = (Vec::new(), device.info().size, None);
        let mut service = Self {
            name,
            controls,
            control,
            nbd,
            block_device,
            device,
            losses,
            size,
            size_warning,
            drive: None,
            awaited,
            say,
        };
        service.follow_drive();
        Ok(service)
    }

    fn exports(&self) -> Exports<'_> {
        let Self { name, control, nbd, block_device, awaited, size_warning, .. } = self;
        let (block_device, size_warning) = (block_device.as_ref(), size_warning.as_deref());
        Exports { name, control: control.path(), nbd, block_device, awaited, size_warning }
    }

    /// Does what a loss of power means for those who were connected then: NBD connections end, and the block
    /// device is readmitted when they have closed it.
    fn follow_power(&mut self) {
        let losses = self.device.power().losses;
        if losses != self.losses {
            self.losses = losses;
            self.nbd.end_connections();
        }
        self.awaited = self.block_device.as_ref().map(BlockDevice::readmit).unwrap_or_default();
    }

    /// Has the block device take the size of the device, if that has changed. NBD clients are told when they
    /// connect.
    fn follow_size(&mut self) {
        let size = self.device.info().size;
        if std::mem::replace(&mut self.size, size) == size {
            return;
        }
        let told = self.block_device.as_mut().map_or(Ok(()), BlockDevice::follow_size);
        let device = self.block_device.as_ref().map(BlockDevice::path).unwrap_or_default();
        self.size_warning = told.err().map(|error| {
            let why = in_one_line(&error);
            format!("{device} is not as large as the {size} of the device until it is served anew: {why}")
        });
    }

    /// Has the record of the block device say what the drive is, if that has changed.
    fn follow_drive(&mut self) {
        let drive = self.controls.drive();
        let Some(device) = self.block_device.as_ref().filter(|_| drive != self.drive) else { return };
        if let Some(Err(error)) = drive.as_ref().map(|drive| device.describe(drive)) {
            let (device, why) = (device.path(), in_one_line(&error));
            (self.say)(&format!("{device}: surveys of it are not told that it is a simulated drive: {why}"));
        }
        self.drive = drive;
    }

    /// Returns how the device is, and what is exported of it.
    pub fn status(&self) -> C::Status {
        self.controls.status(&self.exports())
    }

    /// Takes orders until it is to end, until the device is detached, or until an export fails. Whoever has
    /// it detached is answered once everything is gone, and whether all is durable is known.
    ///
    /// # Errors
    /// If an export ended by itself, or what was acknowledged could not be made durable.
    pub fn serve(mut self, ending: Ending<'_>) -> Result<(), ServiceError> {
        let Ending { stop, cut_off } = ending;
        let system = |source| ServiceError::System { operation: "wait for orders", source };
        let mut waiting = WaitingOrders::new();
        let mut detaching = Vec::new();
        let mut asked = None;
        while detaching.is_empty() && !self.has_ended() {
            if stop.load(Ordering::Relaxed) && !self.is_held(&mut waiting, &mut asked, cut_off) {
                break;
            }
            self.follow_power();
            if waiting.is_empty() {
                is_readable_soon(self.control.as_fd())
                    .map_err(|error| system(std::io::Error::other(error)))?;
                receive_orders(&self.control, &mut waiting, &self.name, &self.say);
            }
            if let Some((stream, order)) = waiting.pop_front() {
                detaching.extend(self.converse(stream, order, &mut waiting, stop));
            }
        }
        let (say, name) = (Arc::clone(&self.say), self.name.clone());
        for (stream, order) in waiting {
            match order {
                Order::Detach { .. } => detaching.push(stream),
                _ => {
                    let why = "it is being removed".to_owned();
                    send_answer(stream, &Answer::<()>::Err(RefusedOrder::unsafe_now(why)), &name, &say);
                }
            }
        }
        let (status, closed) = self.close();
        let failed = |error: &ServiceError| RefusedOrder::failed(in_one_line(error));
        let answer = closed.as_ref().map(|()| status).map_err(failed);
        for stream in detaching {
            send_answer(stream, &answer, &name, &say);
        }
        closed
    }

    /// Returns true if somebody uses the block device of what waits for that. If not it is gone. `asked`
    /// counts the time since that was found out last.
    fn is_held(
        &mut self,
        waiting: &mut WaitingOrders<C::Order>,
        asked: &mut Option<RealClock>,
        cut_off: &AtomicBool,
    ) -> bool {
        let is_forced = || cut_off.load(Ordering::Relaxed);
        if !C::WAITS_FOR_HOLDERS {
            return false;
        }
        if is_forced() {
            (self.say)(&format!("{}: its block device is removed although it is in use", self.name));
            return false;
        }
        // To find out takes a claim of the device, which is in the way of whoever wants to mount it.
        if asked.is_some_and(|since| since.now() < ASK_AGAIN) {
            return true;
        }
        match self.detach(waiting, &is_forced) {
            Err(held) if held.is_held() => {
                if asked.replace(RealClock::start()).is_none() {
                    let (name, why) = (&self.name, in_one_line(&held));
                    (self.say)(&format!(
                        "{name}: {why}; serving continues until that has ended; another signal, or `stop \
                         --cut-off`, disconnects the users: data that they have not written yet is lost, \
                         acknowledged data is kept"
                    ));
                }
                true
            }
            // Any other error is met again, and told, at the end.
            _ => false,
        }
    }

    fn has_ended(&self) -> bool {
        self.nbd.has_ended() || self.block_device.as_ref().is_some_and(BlockDevice::has_ended)
    }

    /// Carries out an order and answers it. Whoever had the device detached is to be answered later, and
    /// comes back.
    fn converse(
        &mut self,
        stream: UnixStream,
        order: Order<C::Order>,
        waiting: &mut WaitingOrders<C::Order>,
        stop: &AtomicBool,
    ) -> Option<UnixStream> {
        let done = match order {
            Order::Status => Ok(()),
            Order::Detach { cut_off } => match self.take_away(cut_off, waiting, stop) {
                Ok(()) => return Some(stream),
                refused => refused,
            },
            Order::Own(order) => {
                self.follow_power();
                let done = self.controls.carry_out(order);
                self.follow_power();
                self.follow_size();
                self.follow_drive();
                done
            }
        };
        send_answer(stream, &done.map(|()| self.status()), &self.name, &self.say);
        None
    }

    /// Takes the exports away, if they are not in use or even if they are.
    fn take_away(
        &mut self,
        cut_off: bool,
        waiting: &mut WaitingOrders<C::Order>,
        stop: &AtomicBool,
    ) -> Result<(), RefusedOrder> {
        let have_left = || (cut_off || self.nbd.connections() == 0).then_some(());
        retry_until(LEAVING, have_left);
        let connections = self.nbd.connections();
        if connections > 0 && !cut_off {
            let mut by = self.nbd.clients();
            if by.is_empty() {
                by.push(format!("{connections} clients"));
            }
            return Err(in_use(&ServiceError::Connected { by }));
        }
        match self.detach(waiting, &|| cut_off || stop.load(Ordering::Relaxed)) {
            Err(_) if cut_off => {
                // Dropped, it is cut from those who have it.
                self.block_device = None;
                Ok(())
            }
            Err(held) if held.is_held() => Err(in_use(&held)),
            Err(unflushed) if unflushed.is_unflushed() => {
                let why = in_one_line(&unflushed);
                Err(RefusedOrder::failed(format!(
                    "{why}; it stays, and the same command with --cut-off removes it anyway"
                )))
            }
            outcome => outcome.map_err(|error| RefusedOrder::failed(in_one_line(&error))),
        }
    }

    /// Takes the block device away, if it is not in use. Meanwhile orders are heard: one to cut it off forces
    /// this.
    fn detach(
        &mut self,
        waiting: &mut WaitingOrders<C::Order>,
        is_forced: &dyn Fn() -> bool,
    ) -> Result<(), ServiceError> {
        let Self { block_device, control, name, say, .. } = self;
        if let Some(held) = block_device {
            held.detach(&mut || {
                receive_orders(control, waiting, name, say);
                let cuts_off =
                    |(_, order): &(_, Order<C::Order>)| matches!(order, Order::Detach { cut_off: true });
                is_forced() || waiting.iter().any(cuts_off)
            })?;
            *block_device = None;
        }
        Ok(())
    }

    /// Ends the exports. What was acknowledged is durable then, as when a machine shuts down. And how the
    /// device was last.
    fn close(mut self) -> (C::Status, Result<(), ServiceError>) {
        let detached = self.detach(&mut WaitingOrders::new(), &|| true).map_err(ServiceError::cut_off);
        // Before the device ends: nobody shall be left who could still write to it.
        self.block_device = None;
        let served = self.nbd.end();
        let kept = self.controls.shut_down();
        let status = self.status();
        let closed = detached.and(served.map_err(ServiceError::from));
        (status, closed.and(kept.map_err(ServiceError::ShutDown)))
    }
}

/// Receives the orders of all who wait to give one.
fn receive_orders<O: DeserializeOwned>(
    control: &ControlSocket,
    waiting: &mut WaitingOrders<O>,
    name: &str,
    say: &Say,
) {
    while let Some(mut stream) = control.accept() {
        match control::receive_order(&mut stream) {
            Ok(order) => waiting.extend(order.map(|order| (stream, order))),
            Err(error) => say(&format!("{name}: a control command was cut off: {error}")),
        }
    }
}

/// Answers an order. If whoever gave it is gone the device goes on.
fn send_answer(mut stream: UnixStream, answer: &Answer<impl Serialize>, name: &str, say: &Say) {
    if let Err(error) = send(&mut stream, answer) {
        say(&format!("{name}: a control command was cut off: {error}"));
    }
}

fn in_use(error: &ServiceError) -> RefusedOrder {
    RefusedOrder::unsafe_now(format!(
        "{}; end that first, or add --cut-off, which gives its users I/O errors",
        in_one_line(error)
    ))
}
