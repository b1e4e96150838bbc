//! NBD being served: on unix sockets in the clear, for their owner alone; over TCP in the clear on this
//! machine, or encrypted.
//!
//! Two servers of one device, at most: one for what is in the clear, one for what is encrypted. The promise
//! that a flush covers all connections holds across both, since it is the device's.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::nbd::server::{Export, Listener, OWNER_ONLY, Options, ServeError, Server, Stopper};
use crate::nbd::tls::ServerTls;
use crate::nbd::uri::{Address, TlsUri, Uri};
use plumb_block::Device;
use plumb_linux::descriptors;

use super::error::ServiceError;

/// Number of descriptors that a service needs beside those of its connections.
const DESCRIPTORS: u64 = 96;
/// Number of descriptors of a connection: its socket, and the queue of a device.
const DESCRIPTORS_EACH: u64 = 4;
/// Largest number of connections to a service, and the least that its descriptors have to be enough for.
const CONNECTIONS: (u64, u64) = (256, 8);

/// Raises the limit of open files to what a service needs. Returns the number of NBD connections for which it
/// is enough.
///
/// # Errors
/// If it is not enough for a service.
pub fn connections_max() -> Result<u32, ServiceError> {
    let (most, least) = CONNECTIONS;
    let limit = descriptors::raise(DESCRIPTORS + DESCRIPTORS_EACH * most).unwrap_or(u64::MAX);
    let enough_for = limit.saturating_sub(DESCRIPTORS) / DESCRIPTORS_EACH;
    if enough_for < least {
        return Err(ServiceError::Descriptors { limit, needed: DESCRIPTORS + DESCRIPTORS_EACH * least });
    }
    Ok(enough_for.min(most) as u32)
}

/// Told what happens that is nobody's answer.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Where NBD is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NbdAddress {
    /// A unix socket, made for its owner alone.
    Unix(PathBuf),
    /// A TCP port; 0 for one that is free.
    Tcp(SocketAddr),
}

impl NbdAddress {
    /// Returns true if other machines may get there.
    pub fn is_beyond_this_machine(&self) -> bool {
        matches!(self, Self::Tcp(address) if !address.ip().to_canonical().is_loopback())
    }
}

/// All that is served of a drive.
#[derive(Default)]
pub(super) struct NbdServers {
    uris: Vec<String>,
    running: Vec<RunningExport>,
}

struct RunningExport {
    server: Arc<Server>,
    stopper: Stopper,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl NbdServers {
    /// Listens at all of `addresses`, then serves.
    ///
    /// # Errors
    /// If one of them cannot be had; nothing is served then.
    pub(super) fn start(
        name: &str,
        description: &str,
        device: &Arc<dyn Device>,
        addresses: &[NbdAddress],
        encryption: Option<&ServerTls>,
        say: &Say,
    ) -> Result<Self, ServiceError> {
        let mut servers = Self::default();
        let (mut clear, mut encrypted) = (Vec::new(), Vec::new());
        for address in addresses {
            let encryption = encryption.filter(|_| matches!(address, NbdAddress::Tcp(_)));
            if encryption.is_none() && address.is_beyond_this_machine() {
                let NbdAddress::Tcp(address) = address else { continue };
                return Err(ServeError::in_the_clear(&address.to_string()).into());
            }
            let listener = match address {
                NbdAddress::Unix(path) => Listener::unix(path, OWNER_ONLY)?,
                NbdAddress::Tcp(address) => Listener::tcp(*address)?,
            };
            servers.uris.push(uri(address, &listener, encryption).to_string());
            let group = if encryption.is_some() { &mut encrypted } else { &mut clear };
            group.push(listener);
        }
        let export = || Export {
            name: name.to_owned(),
            description: description.to_owned(),
            device: Arc::clone(device),
            read_only: false,
        };
        let groups = [(clear, None), (encrypted, encryption.cloned())];
        for (listeners, tls) in groups.into_iter().filter(|(listeners, _)| !listeners.is_empty()) {
            let observer = tls.is_some().then(|| observer(name.to_owned(), Arc::clone(say)));
            let connections_max = connections_max()?;
            let options = Options { connections_max, observer, tls, ..Options::default() };
            servers.running.push(serve(export(), listeners, options)?);
        }
        Ok(servers)
    }

    /// Returns the URIs that connect.
    pub(super) fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Returns the number of clients that are connected.
    pub(super) fn connections(&self) -> usize {
        self.running.iter().map(|running| running.server.connections()).sum()
    }

    /// Returns the connected clients, in words.
    pub(super) fn clients(&self) -> Vec<String> {
        self.running.iter().flat_map(|running| running.server.clients()).collect()
    }

    /// Ends all connections: their clients hold what may be gone.
    pub(super) fn end_connections(&self) {
        self.running.iter().for_each(|running| running.server.end_connections());
    }

    /// Returns true if one has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.running.iter().any(|running| running.thread.is_finished())
    }

    /// Stops all, and waits until no request is in flight and the sockets are gone.
    ///
    /// # Errors
    /// What the first that failed has failed with.
    pub(super) fn end(&mut self) -> Result<(), ServeError> {
        for running in &self.running {
            running.stopper.stop();
        }
        let ends = self.running.drain(..).map(|running| {
            running.thread.join().unwrap_or_else(|_| {
                let source = io::Error::other("its thread panicked");
                Err(ServeError::System { operation: "serve NBD to the end", source })
            })
        });
        ends.fold(Ok(()), Result::and)
    }
}

impl Drop for NbdServers {
    fn drop(&mut self) {
        // Ended already, or never opened to the end, for which there is an error to tell.
        self.end().unwrap_or_default();
    }
}

fn serve(export: Export, listeners: Vec<Listener>, options: Options) -> Result<RunningExport, ServiceError> {
    let server = Arc::new(Server::new(vec![export], options)?);
    let stopper = server.stopper();
    let serving = Arc::clone(&server);
    let thread = std::thread::Builder::new()
        .name("nbd".to_owned())
        .spawn(move || serving.serve(listeners))
        .map_err(|source| ServiceError::System { operation: "start the NBD server", source })?;
    Ok(RunningExport { server, stopper, thread })
}

/// Says why clients were turned away: their own programs often say little. The same reason twice in a row is
/// said once.
fn observer(name: String, say: Say) -> crate::nbd::server::Observer {
    let last = Mutex::new(String::new());
    Arc::new(move |ended| {
        let Some(failure) = &ended.failure else { return };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != *failure {
            say(&format!("{name}: a TLS connection ended: {failure}"));
            last.clone_from(failure);
        }
    })
}

/// Returns the URI for a client on this machine; for one elsewhere if other machines are served.
fn uri(address: &NbdAddress, listener: &Listener, encryption: Option<&ServerTls>) -> Uri {
    let address = match address {
        // A client may run in another directory.
        NbdAddress::Unix(path) => Address::Unix(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        NbdAddress::Tcp(asked) => {
            let found = listener.tcp_address().unwrap_or(*asked);
            Address::Tcp { host: host(found.ip(), encryption), port: found.port() }
        }
    };
    let tls = encryption.map(|encryption| TlsUri {
        certificates: encryption.of_clients(),
        is_verified: true,
        hostname: None,
    });
    Uri { address, export: String::new(), tls }
}

/// Returns a name for this machine: one that the certificate is for, where there is one.
fn host(address: IpAddr, encryption: Option<&ServerTls>) -> String {
    let address = address.to_canonical();
    let mut names = Vec::new();
    if address.is_unspecified() {
        names.push(rustix::system::uname().nodename().to_string_lossy().into_owned());
    } else {
        names.push(address.to_string());
    }
    if address.is_loopback() || address.is_unspecified() {
        names.push("localhost".to_owned());
    }
    let is_named =
        |name: &&String| encryption.is_none_or(|encryption| encryption.speak_for(name.as_str()).is_ok());
    names.iter().find(is_named).unwrap_or(&names[0]).clone()
}
