//! Events of some devices and of the calls that make files durable, read from the kernel's tracing.

use plumb_block::{Errno, Error, ErrorKind, Nanos, Result};
use plumb_linux::tracing::instance::device_filter;
use plumb_linux::tracing::{Buffers, Instance, Tracefs};

use crate::decode::{
    BIO_EVENTS, Decoder, FILE_SYSTEM_EVENTS, Kind, MergedEvents, REQUEST_EVENTS, WRITEBACK_ERROR_EVENTS,
    sync_events,
};
use crate::device::WatchedDevice;
use crate::event::Event;

/// Size of each processor's buffer, in KiB: enough for a million events a second, fetched every
/// [`READ_EVERY`](crate::session::READ_EVERY).
const BUFFER_KIB: &str = "4096";
/// Maximum delay between an event's timestamp and its arrival.
const LATE_MAX: Nanos = Nanos::millis(2);

/// No such file or directory.
const ENOENT: Errno = Errno(2);

/// Reader of the events. Tracing is off until it is turned on.
#[derive(Debug)]
pub(crate) struct Tracer {
    /// Buffers, which are closed before the instance is removed.
    buffers: Buffers,
    instance: Instance,
    decoder: Decoder,
    merged: MergedEvents,
    /// Reason why calls are not visible.
    pub(crate) no_syncs: Option<String>,
    /// True if the kernel reports failed writes that the page cache had accepted.
    pub(crate) sees_writeback_errors: bool,
}

impl Tracer {
    /// Prepares to trace these devices, and also the calls if `syncs` is true.
    ///
    /// # Errors
    /// Fails if tracing is not possible: without root, in a container, or on a kernel without the events of
    /// block devices.
    pub(crate) fn prepare(devices: &[WatchedDevice], syncs: bool) -> Result<Self> {
        let instance = Instance::make(&Tracefs::open()?, "observe")?;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", BUFFER_KIB)?;
        let mut decoder = Decoder::default();
        let with = |has_requests| devices.iter().filter(move |device| device.has_requests == has_requests);
        let groups: [(bool, &[(&str, Kind)]); 2] = [(true, &REQUEST_EVENTS), (false, &BIO_EVENTS)];
        for (has_requests, events) in groups {
            let filter = device_filter(with(has_requests).map(|device| device.number));
            if filter.is_empty() {
                continue;
            }
            for (event, kind) in events {
                let enabled = enable(&instance, &mut decoder, event, *kind, Some(&filter));
                enabled.map_err(|error| no_event(event, error))?;
            }
        }
        let mut all = || {
            sync_events()
                .try_for_each(|(event, kind)| enable(&instance, &mut decoder, &event, kind, None))?;
            FILE_SYSTEM_EVENTS.into_iter().try_for_each(|(event, kind)| {
                match enable(&instance, &mut decoder, event, kind, None) {
                    // The event belongs to a file system that this kernel does not have.
                    Err(error) if error.errno() == Some(ENOENT) => Ok(()),
                    enabled => enabled,
                }
            })
        };
        let no_syncs = match syncs {
            true => Some(all())
                .and_then(Result::err)
                .map(|error| format!("this kernel shows no system calls (CONFIG_FTRACE_SYSCALLS): {error}")),
            false => Some("--no-syscalls".to_owned()),
        };
        let mut failures = WRITEBACK_ERROR_EVENTS.into_iter();
        let enabled =
            failures.try_for_each(|(event, kind)| enable(&instance, &mut decoder, event, kind, None));
        let buffers = Buffers::open(&instance)?;
        Ok(Self {
            buffers,
            instance,
            decoder,
            merged: MergedEvents::default(),
            no_syncs,
            sees_writeback_errors: enabled.is_ok(),
        })
    }

    /// Turns tracing on or off; events from before can still be read.
    ///
    /// # Errors
    /// Fails as write(2) does.
    pub(crate) fn turn(&self, on: bool) -> Result<()> {
        self.instance.write("tracing_on", if on { "1" } else { "0" })
    }

    /// Reads the available events. Returns the number of events lost since the last call; some of the
    /// available events are later than the lost ones.
    ///
    /// # Errors
    /// Fails as read(2) does.
    pub(crate) fn fetch(&mut self) -> Result<u64> {
        let (decoder, merged) = (&self.decoder, &mut self.merged);
        self.buffers.drain(|record| {
            if let Some(event) = decoder.decode(record) {
                merged.add(event);
            }
        })
    }

    /// Takes the events that were read, in order, without the most recent ones before `now`.
    pub(crate) fn before(&mut self, now: Nanos) -> impl Iterator<Item = Event> {
        self.merged.take_before(now.since(LATE_MAX))
    }
}

/// Learns an event and enables it with a filter.
fn enable(
    instance: &Instance,
    decoder: &mut Decoder,
    event: &str,
    kind: Kind,
    filter: Option<&str>,
) -> Result<()> {
    decoder.learn(&instance.read(&format!("events/{event}/format"))?, kind)?;
    if let Some(filter) = filter {
        instance.write(&format!("events/{event}/filter"), filter)?;
    }
    instance.write(&format!("events/{event}/enable"), "1")
}

fn no_event(event: &str, error: Error) -> Error {
    match error.errno() {
        Some(ENOENT) => Error::new(ErrorKind::Unsupported, "trace", format!("the event {event}"))
            .because("this kernel has no events of block devices (CONFIG_BLOCK, CONFIG_EVENT_TRACING)"),
        _ => error,
    }
}
