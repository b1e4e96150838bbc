//! A device served under a name, with its exports and the socket for orders.

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
use super::nbd::{NbdServers, Say, connections_max};
use super::socket::ControlSocket;
use crate::nbd::server::ListenAddress;
use crate::nbd::tls::ServerTls;

/// Time within which a client that has disconnected is recognised as gone.
const LEAVING: Nanos = Nanos::secs(1);
/// Interval of checks whether the block device is still in use, after a signal.
const ASK_AGAIN: Nanos = Nanos::secs(3);

/// Controls of one kind of device: its specific orders, in addition to those of every served device.
pub trait Controls {
    /// Type of the specific orders.
    type Order: Serialize + DeserializeOwned;
    /// Type of the status.
    type Status: Serialize;
    /// True if the service continues after `stop` was set while its block device is in use, since data not
    /// yet written would be lost.
    const WAITS_FOR_HOLDERS: bool;

    /// Returns the status of the device and its exports.
    fn status(&self, exports: &Exports<'_>) -> Self::Status;

    /// Returns the identity that tells the device from another of the same name; `None` if any device of the
    /// name is meant.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Returns the record for surveys of the block device; `None` if it is not a simulated drive.
    fn drive(&self) -> Option<DriveRecord> {
        None
    }

    /// Receives the exports with which the service begins.
    fn exported(&mut self, _exports: &Exports<'_>) {}

    /// Executes an order.
    ///
    /// # Errors
    /// Fails with the refusal to send.
    fn carry_out(&mut self, order: Self::Order) -> Result<(), RefusedOrder>;

    /// Returns why the service must not end now; `None` if nothing is lost when it does.
    fn stay(&mut self) -> Option<Stay> {
        None
    }

    /// Makes acknowledged data durable, after the last client is gone. `is_forced` is true if the service
    /// ends although it [had to stay](Self::stay).
    ///
    /// # Errors
    /// If the data is not known to be durable.
    fn shut_down(&mut self, is_forced: bool) -> plumb_block::Result<()>;
}

/// Reason why a service must not end now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// The reason, in a clause.
    pub because: String,
    /// True if the reason goes away while the service goes on. Else an order to end is refused.
    pub passes: bool,
}

/// Flags that request the end of a service.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// Requests the end once the block device is unused, for a device that
    /// [waits](Controls::WAITS_FOR_HOLDERS) for that; otherwise immediately.
    pub stop: &'a AtomicBool,
    /// Requests the end even if the block device is in use: users get I/O errors.
    pub cut_off: &'a AtomicBool,
}

/// Options of a service: what to serve, and at which addresses.
pub struct ServiceOptions {
    /// Directory of control sockets, which must exist.
    pub directory: PathBuf,
    /// Name; `None`: a free one derived from `kind`.
    pub name: Option<String>,
    /// Kind of device, in one word.
    pub kind: String,
    /// NBD addresses.
    pub nbd: Vec<ListenAddress>,
    /// Encryption for TCP, required beyond this machine.
    pub encryption: Option<ServerTls>,
    /// Callback for events: incomplete orders, rejected clients.
    pub say: Say,
    /// True to attach the device as a loop device.
    pub attach: bool,
    /// Options for an export through ublk; `None` for no such export.
    pub ublk: Option<UblkExport>,
}

/// A device to be served.
pub struct ServiceDevice<C> {
    /// The device.
    pub device: Arc<dyn Device>,
    /// Description of the device for NBD clients.
    pub description: String,
    /// Controls of the device.
    pub controls: C,
}

/// A served device.
pub struct Service<C> {
    name: String,
    controls: C,
    control: ControlSocket,
    nbd: NbdServers,
    block_device: Option<BlockDevice>,
    device: Arc<dyn Device>,
    /// Number of power losses for which NBD connections were ended.
    losses: u64,
    /// Size that the block device was last set to.
    size: Bytes,
    /// Reason why the block device could not be resized; `None` if it was.
    size_warning: Option<String>,
    /// Record for surveys of its block device.
    drive: Option<DriveRecord>,
    /// Users who must close the block device, because it lost power while they had it open.
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
    /// Returns the name of the service.
    pub const fn name(&self) -> &str {
        self.name
    }

    /// Returns the path of the control socket.
    pub const fn control(&self) -> &Path {
        self.control
    }

    /// Returns the NBD URIs for clients.
    pub fn nbd_uris(&self) -> &[String] {
        self.nbd.uris()
    }

    /// Returns the number of connected NBD clients.
    pub fn nbd_clients(&self) -> usize {
        self.nbd.connections()
    }

    /// Returns the path of the block device.
    pub fn block_device(&self) -> Option<String> {
        self.block_device.map(BlockDevice::path)
    }

    /// Returns the transport of the block device: `fuse`, `fuse-io-uring` or `ublk`.
    pub fn transport(&self) -> Option<String> {
        self.block_device.map(|device| device.transport().to_owned())
    }

    /// Returns true if a flush to the device has failed. Queries the device.
    pub fn has_failed_flush(&self) -> bool {
        self.block_device.is_some_and(BlockDevice::has_failed_flush)
    }

    /// Returns the users who must close the block device before its requests are executed again, because it
    /// lost power while they had it open.
    pub const fn awaited(&self) -> &[String] {
        self.awaited
    }

    /// Returns the reason why the block device does not have the device's size, if so.
    pub const fn size_warning(&self) -> Option<&str> {
        self.size_warning
    }
}

/// Clients that get an answer when the service has ended, and the progress of its end.
#[derive(Default)]
struct Detaching {
    streams: Vec<UnixStream>,
    /// True if one of them accepts a loss.
    cuts_off: bool,
    /// Value of [`Ending::cut_off`] when the reason why the service stays was reported: a later signal ends
    /// the service.
    said_at: Option<bool>,
    is_forced: bool,
}

/// Control connections that wait for an answer, each with its order.
type WaitingOrders<O> = VecDeque<(UnixStream, Order<O>)>;

impl<C: Controls> Service<C> {
    /// Creates the device under its name, and its exports.
    ///
    /// # Errors
    /// See [`ServiceError`]; nothing is left behind on failure.
    pub fn open(
        options: ServiceOptions,
        make: impl FnOnce(&str) -> plumb_block::Result<ServiceDevice<C>>,
    ) -> Result<Self, ServiceError> {
        let ServiceOptions { directory, name, kind, nbd, encryption, say, attach, .. } = options;
        connections_max()?;
        let (mut control, name) = ControlSocket::listen(&directory, name, &kind)?;
        let ServiceDevice { device, description, mut controls } = make(&name)?;
        let nbd = NbdServers::start(&name, &description, &device, &nbd, encryption.as_ref(), &say)?;
        let block_device =
            attach.then(|| BlockDevice::to_loop(Arc::clone(&device), &name, &directory)).transpose()?;
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
        controls.exported(&Exports {
            name: &name,
            control: control.path(),
            nbd: &nbd,
            block_device: block_device.as_ref(),
            awaited: &[],
            size_warning: None,
        });
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

    /// Handles a power loss: NBD connections end, and the block device is readmitted once its users have
    /// closed it.
    fn follow_power(&mut self) {
        let losses = self.device.power().losses;
        if losses != self.losses {
            self.losses = losses;
            self.nbd.end_connections();
        }
        self.awaited = self.block_device.as_ref().map(BlockDevice::readmit).unwrap_or_default();
    }

    /// Resizes the block device if the device's size has changed. NBD clients learn of it when they connect.
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

    /// Updates the record of the block device if the drive's properties have changed.
    fn follow_drive(&mut self) {
        let drive = self.controls.drive();
        let Some(device) = self.block_device.as_ref().filter(|_| drive != self.drive) else { return };
        if let Some(Err(error)) = drive.as_ref().map(|drive| device.describe(drive)) {
            let (device, why) = (device.path(), in_one_line(&error));
            (self.say)(&format!("{device}: surveys of it are not told that it is a simulated drive: {why}"));
        }
        self.drive = drive;
    }

    /// Returns the block device of this machine.
    pub fn block_device(&self) -> Option<String> {
        self.exports().block_device()
    }

    /// Returns the status of the device and its exports.
    pub fn status(&self) -> C::Status {
        self.controls.status(&self.exports())
    }

    /// Processes orders until the end is requested, the device is detached, or an export fails. A detach
    /// order is answered once everything is removed and the durability is known.
    ///
    /// # Errors
    /// If an export ended by itself, or acknowledged data could not be made durable.
    pub fn serve(mut self, ending: Ending<'_>) -> Result<(), ServiceError> {
        let Ending { stop, cut_off } = ending;
        let system = |source| ServiceError::System { operation: "wait for orders", source };
        let mut waiting = WaitingOrders::new();
        let mut detaching = Detaching::default();
        let mut asked = None;
        while !self.has_ended() {
            let is_told = !detaching.streams.is_empty() || stop.load(Ordering::Relaxed);
            if is_told && !self.stays(&mut detaching, cut_off) {
                // A service that is being detached has no block device any more.
                if !detaching.streams.is_empty() || !self.is_held(&mut waiting, &mut asked, cut_off) {
                    break;
                }
            }
            self.follow_power();
            if waiting.is_empty() {
                is_readable_soon(self.control.as_fd())
                    .map_err(|error| system(std::io::Error::other(error)))?;
                let identity = self.controls.identity();
                receive_orders(&self.control, &mut waiting, &self.name, identity.as_deref(), &self.say);
            }
            if let Some((stream, order)) = waiting.pop_front() {
                detaching.cuts_off |= matches!(order, Order::Detach { cut_off: true, .. });
                detaching.streams.extend(self.converse(stream, order, &mut waiting, stop));
            }
        }
        let (say, name) = (Arc::clone(&self.say), self.name.clone());
        for (stream, order) in waiting {
            match order {
                Order::Detach { .. } => detaching.streams.push(stream),
                _ => {
                    let why = "it is being removed".to_owned();
                    send_answer(stream, &Answer::<()>::Err(RefusedOrder::unsafe_now(why)), &name, &say);
                }
            }
        }
        let (status, closed) = self.close(detaching.is_forced);
        let failed = |error: &ServiceError| RefusedOrder::failed(in_one_line(error));
        let answer = closed.as_ref().map(|()| status).map_err(failed);
        for stream in detaching.streams {
            send_answer(stream, &answer, &name, &say);
        }
        closed
    }

    /// Returns true if the service must not end although it was asked to, because data would be lost. Reports
    /// the reason; if it does not pass, also to the clients that asked. A signal after the report ends the
    /// service.
    fn stays(&mut self, detaching: &mut Detaching, cut_off: &AtomicBool) -> bool {
        let is_cut_off = cut_off.load(Ordering::Relaxed);
        let Some(Stay { because, passes }) = self.controls.stay() else {
            detaching.said_at = None;
            return false;
        };
        if (is_cut_off && detaching.said_at == Some(false)) || (detaching.cuts_off && !passes) {
            detaching.is_forced = true;
            return false;
        }
        let name = &self.name;
        if !passes {
            for stream in detaching.streams.drain(..) {
                let refused = RefusedOrder::unsafe_now(because.clone());
                send_answer(stream, &Answer::<()>::Err(refused), name, &self.say);
            }
        }
        if detaching.said_at.is_none() {
            detaching.said_at = Some(is_cut_off);
            (self.say)(&format!("{name}: {because}; another signal ends it all the same"));
        }
        true
    }

    /// Returns true if the block device is in use, for a device that waits for that. Removes an unused one.
    /// `asked` is the time since the last check.
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
        // The check claims the device, which could interfere with a mount.
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
            // Any other error recurs and is reported at the end.
            _ => false,
        }
    }

    fn has_ended(&self) -> bool {
        self.nbd.has_ended() || self.block_device.as_ref().is_some_and(BlockDevice::has_ended)
    }

    /// Executes an order and answers it. Returns the connection of a detach order, which is answered later.
    fn converse(
        &mut self,
        stream: UnixStream,
        order: Order<C::Order>,
        waiting: &mut WaitingOrders<C::Order>,
        stop: &AtomicBool,
    ) -> Option<UnixStream> {
        let done = match order {
            Order::Status => Ok(()),
            Order::Detach { cut_off, .. } => match self.take_away(cut_off, waiting, stop) {
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

    /// Removes the exports unless they are in use; with `cut_off` even then.
    fn take_away(
        &mut self,
        cut_off: bool,
        waiting: &mut WaitingOrders<C::Order>,
        stop: &AtomicBool,
    ) -> Result<(), RefusedOrder> {
        let have_left = || (cut_off || self.nbd.connections() == 0).then_some(());
        retry_until(LEAVING, have_left);
        if let Some(stay) = self.controls.stay().filter(|stay| !stay.passes && !cut_off) {
            return Err(RefusedOrder::unsafe_now(stay.because));
        }
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
                // Dropping it disconnects its users.
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

    /// Removes the block device unless it is in use. Meanwhile orders are received: one with `cut_off` forces
    /// the removal.
    fn detach(
        &mut self,
        waiting: &mut WaitingOrders<C::Order>,
        is_forced: &dyn Fn() -> bool,
    ) -> Result<(), ServiceError> {
        let identity = self.controls.identity();
        let Self { block_device, control, name, say, .. } = self;
        if let Some(held) = block_device {
            held.detach(&mut || {
                receive_orders(control, waiting, name, identity.as_deref(), say);
                let cuts_off =
                    |(_, order): &(_, Order<C::Order>)| matches!(order, Order::Detach { cut_off: true, .. });
                is_forced() || waiting.iter().any(cuts_off)
            })?;
            *block_device = None;
        }
        Ok(())
    }

    /// Ends the exports and makes acknowledged data durable, like a machine's shutdown. Returns the last
    /// status and the result.
    fn close(mut self, is_forced: bool) -> (C::Status, Result<(), ServiceError>) {
        let detached = self.detach(&mut WaitingOrders::new(), &|| true).map_err(ServiceError::cut_off);
        // Remove the block device before the device ends, so that nothing can still write to it.
        self.block_device = None;
        let served = self.nbd.end();
        let kept = self.controls.shut_down(is_forced);
        let status = self.status();
        let closed = detached.and(served.map_err(ServiceError::from));
        (status, closed.and(kept.map_err(ServiceError::ShutDown)))
    }
}

/// Receives the orders of all waiting clients. Refuses to remove the device for a client that names another
/// `identity`.
fn receive_orders<O: DeserializeOwned>(
    control: &ControlSocket,
    waiting: &mut WaitingOrders<O>,
    name: &str,
    identity: Option<&str>,
    say: &Say,
) {
    while let Some(mut stream) = control.accept() {
        match control::receive_order(&mut stream) {
            Ok(Some(Order::Detach { identity: Some(meant), .. })) if identity != Some(&meant) => {
                let own = identity.unwrap_or("without an identity");
                let why = format!("what is served under this name is {own}, not {meant}, so it stays");
                send_answer(stream, &Answer::<()>::Err(RefusedOrder::unsafe_now(why)), name, say);
            }
            Ok(order) => waiting.extend(order.map(|order| (stream, order))),
            Err(error) => say(&format!("{name}: a control command was cut off: {error}")),
        }
    }
}

/// Sends the answer to an order. A client that is gone does not affect the device.
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
