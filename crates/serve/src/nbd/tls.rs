//! TLS for the server: certificates, and a socket that is encrypted.
//!
//! Only certificates: the library has no external pre-shared keys. TLS 1.2 and 1.3. [`ServerPapers`] are the files, laid
//! out as QEMU and nbdkit have them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, RootCertStore, ServerConfig, ServerConnection};

use super::server::transport::{Patience, Transport, Wants, wait_for};

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not PEM, or nothing of the kind in it.
    #[error("cannot read {what}: expected PEM")]
    Pem {
        /// Which of the files.
        what: &'static str,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// There is none.
    #[error("{what} has no certificate in it")]
    Empty {
        /// Which of the files.
        what: &'static str,
    },
    /// A file that is needed cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No client could take the server's certificate.
    #[error("no client takes the certificate {}", path.display())]
    Outdated {
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// They do not fit together, or are of a kind that is not supported.
    #[error("the certificates cannot be used")]
    Rejected(#[from] rustls::Error),
    /// The authority for clients cannot be used.
    #[error("the authorities cannot be used")]
    Authority(#[from] rustls::server::VerifierBuilderError),
}

/// The PEM texts that a server is known by, and knows its clients by.
#[derive(Debug, Clone, Copy)]
pub struct ServerPem<'a> {
    /// The server's certificate, then those between it and its authority.
    pub chain: &'a [u8],
    /// The key of the first of them.
    pub key: &'a [u8],
    /// The authorities of client certificates. With them a client without a certificate of theirs is turned away.
    pub client_authorities: Option<&'a [u8]>,
}

/// How a server encrypts.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub(super) config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads certificates and key.
    ///
    /// # Errors
    /// If they are not PEM, or do not fit together.
    pub fn from_pem(pem: &ServerPem<'_>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match pem.client_authorities {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates("the client authorities", authorities)? {
                    roots.add(certificate)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_slice(pem.key)
            .map_err(|source| TlsError::Pem { what: "the server's key", source })?;
        let chain = certificates("the server's certificates", pem.chain)?;
        Ok(Self { config: Arc::new(builder.with_single_cert(chain, key)?) })
    }
}

/// What a server is known by, in a directory:
///
/// ```text
/// DIR/server-cert.pem   its certificate, then those between it and its authority
/// DIR/server-key.pem    the key
/// DIR/ca-cert.pem       the authorities that clients' certificates must come from
/// ```
#[derive(Debug, Clone)]
pub struct ServerPapers {
    chain: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl ServerPapers {
    /// Reads them. The authorities are needed only where clients are verified.
    ///
    /// # Errors
    /// If one that is needed cannot be read, or no client could take the certificate because its time is over.
    pub fn read(directory: &Path, verifies_clients: bool) -> Result<Self, TlsError> {
        let file = |name: &str| {
            let path = directory.join(name);
            std::fs::read(&path).map_err(|source| TlsError::File { path, source })
        };
        let authorities = match file("ca-cert.pem") {
            Err(TlsError::File { source, .. })
                if !verifies_clients && source.kind() == io::ErrorKind::NotFound =>
            {
                None
            }
            read => Some(read?),
        };
        let papers = Self { chain: file("server-cert.pem")?, key: file("server-key.pem")?, authorities };
        match papers.speak_for("localhost") {
            Err(TlsError::Rejected(source)) if is_about_time(&source) => {
                Err(TlsError::Outdated { path: directory.join("server-cert.pem"), source })
            }
            _ => Ok(papers),
        }
    }

    /// How a server with them encrypts.
    ///
    /// # Errors
    /// If they are not PEM, or do not fit together.
    pub fn tls(&self, verifies_clients: bool) -> Result<ServerTls, TlsError> {
        let client_authorities = self.authorities.as_deref().filter(|_| verifies_clients);
        ServerTls::from_pem(&ServerPem { chain: &self.chain, key: &self.key, client_authorities })
    }

    /// Whether a client that trusts the authorities here takes the server for the host `name`.
    ///
    /// # Errors
    /// Why it does not; also if there are no authorities here to ask.
    pub fn speak_for(&self, name: &str) -> Result<(), TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("the authorities", self.authorities.as_deref().unwrap_or_default())? {
            roots.add(certificate)?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        let chain = certificates("the server's certificates", &self.chain)?;
        let (first, between) = chain.split_first().ok_or(TlsError::Empty { what: "the server's chain" })?;
        let name = ServerName::try_from(name)
            .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::NotValidForName))?;
        verifier.verify_server_cert(first, between, &name, &[], UnixTime::now())?;
        Ok(())
    }
}

fn is_about_time(error: &rustls::Error) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let rustls::Error::InvalidCertificate(error) = error else { return false };
    matches!(error, Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| TlsError::Pem { what, source })?;
    if found.is_empty() { Err(TlsError::Empty { what }) } else { Ok(found) }
}

/// A socket that is encrypted.
pub(super) struct TlsSocket {
    fd: Arc<OwnedFd>,
    connection: ServerConnection,
}

/// The raw socket under the encryption; never waits unless told.
struct Raw<'a>(&'a OwnedFd, RecvFlags);

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, into, self.1)?.0)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, from, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsSocket {
    /// Shakes hands, at most until `until`.
    pub(super) fn accept(fd: &Arc<OwnedFd>, config: &Arc<ServerConfig>, until: Instant) -> io::Result<Self> {
        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut socket = Self { fd: Arc::clone(fd), connection };
        while socket.connection.is_handshaking() {
            let is_sent = socket.hand_over()?;
            match socket.receive_records(Patience::None) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    // The alert that says why is worth a try; that it cannot be sent changes nothing.
                    drop(socket.hand_over());
                    return Err(error);
                }
            }
            if Instant::now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            socket.wait(Wants { read: true, write: !is_sent, wake: None, until: Some(until) })?;
        }
        Ok(socket)
    }

    /// Receives encrypted bytes and decrypts what is whole.
    fn receive_records(&mut self, patience: Patience) -> io::Result<usize> {
        let flags = if patience == Patience::None { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let count = loop {
            match self.connection.read_tls(&mut Raw(&self.fd, flags)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.connection.process_new_packets().map_err(io::Error::other)?;
        Ok(count)
    }
}

impl Transport for TlsSocket {
    fn receive(&mut self, into: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize> {
        let Some(first) = into.iter_mut().find(|slice| !slice.is_empty()) else { return Ok(0) };
        loop {
            match self.connection.reader().read(first) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Whoever cuts the stream short leaves, with or without the alert that says so.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if self.receive_records(patience)? == 0 {
                return Ok(0);
            }
            self.hand_over()?;
        }
    }

    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.hand_over()?;
        match self.connection.writer().write_vectored(from)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn hand_over(&mut self) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Raw(&self.fd, RecvFlags::empty())) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn wait(&mut self, wants: Wants<'_>) -> io::Result<()> {
        wait_for(self.fd.as_fd(), wants)
    }

    fn encrypt(&mut self, _config: &Arc<ServerConfig>, _until: Instant) -> io::Result<()> {
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
