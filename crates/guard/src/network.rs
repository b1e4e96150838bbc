//! NBD exports as targets: `nbd+unix:///name?socket=...`, `nbd://`, `nbds://`.
//!
//! Other uses of an export are unknown on this side. So the rules for block devices apply to its signatures,
//! with the URI in place of a serial. Connecting and examining write nothing.

use std::io;
use std::sync::Arc;

use plumb_block::{
    Bytes, Clock, Device, Errno, Lba, LbaRange, Payload, Pool, PoolShape, QueueOptions, Request, Tag, Time,
    Wait,
};
use plumb_serve::nbd::client::{ConnectError, NbdDevice, Options};
use plumb_serve::nbd::uri::{Uri, UriError};

use crate::error::{Error, Kind, Result};
use crate::facts::{BlockFacts, Contents, FoundObject};
use crate::name::{Name, Scheme};
use crate::opened::{OpenedTarget, Origin, Route, TargetKind};
use crate::permission::Permission;
use crate::rules::judge;
use crate::signature::{Source, find};
use crate::target_request::TargetRequest;

/// Returns true if `name` is that of an export.
pub fn is_meant(name: &Name) -> bool {
    use Scheme::{Nbd, NbdUnix, Nbds, NbdsUnix};
    matches!(name, Name::Scheme { scheme: Nbd | NbdUnix | Nbds | NbdsUnix, .. })
}

/// Connects to the wanted exports, each with its index in the list, and judges those to be written.
///
/// # Errors
/// Fails if a URI is invalid, a server does not respond, or the rules refuse.
pub(crate) fn open_all(
    wanted: &[(usize, TargetRequest)],
    permission: &Permission,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<(usize, OpenedTarget)>> {
    let mut known: Vec<(&Name, Arc<NbdDevice>)> = Vec::new();
    let mut opened = Vec::new();
    for (place, want) in wanted {
        let shared = known.iter().find(|(name, _)| **name == want.name).map(|(_, device)| Arc::clone(device));
        let device = match shared {
            Some(device) => device,
            None => {
                let device = connect(&want.name, clock)?;
                known.push((&want.name, Arc::clone(&device)));
                device
            }
        };
        let notes = format!("who else uses {} is known to its server alone", want.name);
        let mut target = describe(want, device, TargetKind::Network, permission)?;
        if want.intent.writes {
            target.notes.push(notes);
        }
        opened.push((*place, target));
    }
    Ok(opened)
}

fn connect(name: &Name, clock: &Arc<dyn Clock>) -> Result<Arc<NbdDevice>> {
    let shown = name.to_string();
    let remedy = "name it as in nbd+unix:///?socket=/path or nbd://host/name";
    let uri: Uri = shown.parse().map_err(|error: UriError| {
        Error::usage(&shown, format!("it is not an NBD URI: {}", error.because), remedy)
    })?;
    let options = Options { time: Time::Real(Arc::clone(clock)), ..Options::default() };
    let device = NbdDevice::connect(&uri, options).map_err(|error| not_reached(&shown, &error))?;
    Ok(Arc::new(device))
}

/// Remedy for a failed TLS handshake.
const TLS_REMEDY: &str = "see that tls-certificates=DIR has the authority of the server (ca-cert.pem) and, if it verifies \
                          clients, client-cert.pem and client-key.pem from an authority that it knows";

/// Converts the error, without the URI, which `shown` contains already.
fn not_reached(shown: &str, error: &ConnectError) -> Error {
    let (found, remedy) = match error {
        // A TLS alert of the server, or data that is not TLS, has no errno.
        ConnectError::Io { source, .. } if shown.starts_with("nbds") && source.raw_os_error().is_none() => {
            (format!("TLS: {source}"), TLS_REMEDY)
        }
        ConnectError::Io { operation, source, .. } => (
            format!("cannot {operation} it: {source}"),
            "check that the server runs, and that it listens there",
        ),
        ConnectError::Silent { seconds, .. } => (
            format!("it did not answer within {seconds} s"),
            "check that it is an NBD server, and neither stopped nor busy",
        ),
        ConnectError::Protocol { source, .. } => {
            (format!("it does not speak NBD as expected: {source}"), "check that it is an NBD server")
        }
        ConnectError::Refused { because, .. } => (because.clone(), ""),
        ConnectError::Tls { because, .. } => (format!("TLS: {because}"), TLS_REMEDY),
    };
    let errno = match error {
        ConnectError::Io { source, .. } => source.raw_os_error().map(Errno),
        _ => None,
    };
    Error::new(Kind::Os(errno), shown, found, remedy)
}

/// Reads the signatures of a device unknown to the kernel.
pub fn contents_of(device: &dyn Device) -> Contents {
    match find(&Export(device)) {
        Ok(found) => Contents::Read(found),
        Err(error) => Contents::Unreadable(error.to_string()),
    }
}

/// Judges a device unknown to the kernel (an export or a cache) by its signatures, with its name in place of
/// a serial, and returns it as a target.
///
/// # Errors
/// The refusal of the rules.
pub fn describe(
    want: &TargetRequest,
    device: Arc<dyn Device>,
    kind: TargetKind,
    permission: &Permission,
) -> Result<OpenedTarget> {
    let shown = want.name.to_string();
    let info = device.info();
    let contents = contents_of(&*device);
    let found = FoundObject::Block(BlockFacts {
        kernel_name: shown.clone(),
        size: info.size,
        identities: vec![shown.clone()],
        read_only: info.is_read_only,
        contents,
        uses: Vec::new(),
        unseen: None,
    });
    judge(&shown, &found, want.intent, permission)?;
    Ok(OpenedTarget {
        route: if kind == TargetKind::Cache { Route::Cache } else { Route::Network },
        kind,
        made: false,
        ours: false,
        size: info.size,
        identity: Some(shown.clone()),
        shown,
        notes: Vec::new(),
        needs_layout: None,
        counters: None,
        origin: Origin::Elsewhere,
        making: None,
        device,
    })
}

/// Byte access to an export.
struct Export<'a>(&'a dyn Device);

impl Source for Export<'_> {
    fn size(&self) -> u64 {
        self.0.info().size.0
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let other = |error: plumb_block::Error| io::Error::other(error.to_string());
        let block = self.0.info().logical_block.0;
        let first = at / block;
        let end = (at + into.len() as u64).min(self.size()).div_ceil(block);
        let length = Bytes((end - first) * block);
        let shape = PoolShape { buffer: length, count: 1, alignment: Bytes(4096) };
        let pool = Pool::new(shape).map_err(other)?;
        let Some(buffer) = pool.take(length) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        let mut queue = self.0.open_queue(QueueOptions { depth: 1, pool }).map_err(other)?;
        let range = LbaRange::new(Lba(first), end - first);
        if queue.submit(Request::read_into(Tag(0), range, buffer)).is_err() {
            return Err(io::Error::other("the queue is full"));
        }
        let mut completions = Vec::new();
        queue.poll(Wait::ONE, &mut completions).map_err(other)?;
        match completions.pop().map(|completion| (completion.outcome.is_done(), completion.payload)) {
            Some((true, Payload::Into(bytes))) => {
                let skip = (at - first * block) as usize;
                let count = into.len().min(bytes.len() - skip);
                into[..count].copy_from_slice(&bytes[skip..skip + count]);
                Ok(count)
            }
            _ => Err(io::Error::other("it could not be read")),
        }
    }
}
