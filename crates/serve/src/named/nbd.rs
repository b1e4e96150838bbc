//! NBD service: unencrypted on private unix sockets and on TCP within this machine, otherwise encrypted.
//!
//! There are at most two servers for a device: one unencrypted, one encrypted. A flush covers all connections
//! of both, since that is a guarantee of the device.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::nbd::server::{Export, ListenAddress, Listener, Options, ServeError, Server, Stopper};
use crate::nbd::tls::ServerTls;
use crate::nbd::uri::{Address, TlsUri, Uri};
use plumb_block::Device;
use plumb_linux::descriptors;

use super::error::ServiceError;

/// Number of descriptors that a service needs besides connections.
const DESCRIPTORS: u64 = 96;
/// Number of descriptors for a connection: its socket, and a device queue.
const DESCRIPTORS_EACH: u64 = 4;
/// Maximum number of connections to a service, and the minimum for which its descriptors must suffice.
const CONNECTIONS: (u64, u64) = (256, 8);

/// Raises the limit of open files to what a service needs. Returns the number of NBD connections that this
/// allows.
///
/// # Errors
/// If the limit is too low for a service.
pub fn connections_max() -> Result<u32, ServiceError> {
    let (most, least) = CONNECTIONS;
    let limit = descriptors::raise(DESCRIPTORS + DESCRIPTORS_EACH * most).unwrap_or(u64::MAX);
    let enough_for = limit.saturating_sub(DESCRIPTORS) / DESCRIPTORS_EACH;
    if enough_for < least {
        return Err(ServiceError::Descriptors { limit, needed: DESCRIPTORS + DESCRIPTORS_EACH * least });
    }
    Ok(enough_for.min(most) as u32)
}

/// Callback for events that are not part of an answer.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// All NBD servers of a drive.
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
    /// Listens at all of `addresses`, then starts to serve.
    ///
    /// # Errors
    /// If one of them is not available; nothing is served then.
    pub(super) fn start(
        name: &str,
        description: &str,
        device: &Arc<dyn Device>,
        addresses: &[ListenAddress],
        encryption: Option<&ServerTls>,
        say: &Say,
    ) -> Result<Self, ServiceError> {
        let mut servers = Self::default();
        let (mut clear, mut encrypted) = (Vec::new(), Vec::new());
        for address in addresses {
            let encryption = encryption.filter(|_| matches!(address, ListenAddress::Tcp(_)));
            if let Some(address) = address.beyond_this_machine().filter(|_| encryption.is_none()) {
                return Err(ServeError::in_the_clear(&address.to_string()).into());
            }
            let listener = address.listen()?;
            servers.uris.push(uri(address, &listener, encryption).to_string());
            let group = if encryption.is_some() { &mut encrypted } else { &mut clear };
            group.push(listener);
        }
        let export = || Export {
            name: name.to_owned(),
            description: description.to_owned(),
            device: Arc::clone(device),
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

    /// Returns the URIs for clients.
    pub(super) fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Returns the number of connected clients.
    pub(super) fn connections(&self) -> usize {
        self.running.iter().map(|running| running.server.connections()).sum()
    }

    /// Returns descriptions of the connected clients.
    pub(super) fn clients(&self) -> Vec<String> {
        self.running.iter().flat_map(|running| running.server.clients()).collect()
    }

    /// Ends all connections, since their clients may rely on lost data.
    pub(super) fn end_connections(&self) {
        self.running.iter().for_each(|running| running.server.end_connections());
    }

    /// Returns true if a server has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.running.iter().any(|running| running.thread.is_finished())
    }

    /// Stops all servers. Waits until no request is in flight and the sockets are removed.
    ///
    /// # Errors
    /// Fails with the error of the first server that failed.
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
        // The servers have ended already, or were never all opened, in which case another error is reported.
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

/// Returns an observer that reports why clients were rejected, since their own programs often say little.
/// Consecutive equal reasons are reported once.
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

/// Returns the URI for clients: remote ones if other machines are served, otherwise local ones.
fn uri(address: &ListenAddress, listener: &Listener, encryption: Option<&ServerTls>) -> Uri {
    let address = match address {
        // A client may run in another directory.
        ListenAddress::Unix(path) => {
            Address::Unix(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
        }
        ListenAddress::Tcp(asked) => {
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

/// Returns a host name for this machine, preferably one that the certificate covers.
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
