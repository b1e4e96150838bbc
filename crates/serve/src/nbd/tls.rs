//! TLS: certificates, keys, and how server and client encrypt with them. The files are laid out as QEMU, nbdkit and libnbd have
//! them:
//!
//! ```text
//! DIR/ca-cert.pem                       the authorities that the other side's certificate must come from
//! DIR/server-cert.pem, client-cert.pem  the own certificate, then those between it and its authority
//! DIR/server-key.pem, client-key.pem    its key
//! ```
//!
//! Only certificates: the library has no external pre-shared keys. TLS 1.2 and 1.3. The system's own authorities are not
//! consulted: where they are differs between systems, and an export should be trusted because somebody said so.

mod rsa;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme,
};

use super::uri::{Address, TlsUri, Uri};

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not PEM, or nothing of the kind in it.
    #[error("cannot read {what}: expected PEM")]
    Pem {
        /// Which of the files.
        what: String,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// There is none.
    #[error("{what} has no certificate in it")]
    Empty {
        /// Which of the files.
        what: String,
    },
    /// A file that is needed cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An RSA key that cannot sign.
    #[error(
        "{what} is an RSA key of {bits} bits, and only those of 2048, 3072 and 4096 bits can be used: make another with \
         `openssl genrsa 3072`, and a certificate for it"
    )]
    RsaKey {
        /// Which of the files.
        what: String,
        /// How long it is.
        bits: usize,
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
    /// The authority of the other side cannot be used.
    #[error("the authorities cannot be used")]
    Authority(#[from] rustls::server::VerifierBuilderError),
    /// The URI does not say enough.
    #[error("{0}")]
    Uri(String),
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
                let roots = Arc::new(roots("the client authorities", authorities)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = private_key("the server's key", pem.key)?;
        let chain = certificates("the server's certificates", pem.chain)?;
        Ok(Self { config: Arc::new(builder.with_single_cert(chain, key)?) })
    }
}

/// The certificates of a server, from a directory.
#[derive(Debug, Clone)]
pub struct ServerCertificates {
    chain: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl ServerCertificates {
    /// Reads them. The authorities are needed only where clients are verified.
    ///
    /// # Errors
    /// If one that is needed cannot be read, or no client could take the certificate because its time is over.
    pub fn read(directory: &Path, verifies_clients: bool) -> Result<Self, TlsError> {
        let authorities = match read(directory, "ca-cert.pem") {
            Err(TlsError::File { source, .. })
                if !verifies_clients && source.kind() == io::ErrorKind::NotFound =>
            {
                None
            }
            read => Some(read?.1),
        };
        let chain = read(directory, "server-cert.pem")?.1;
        let found = Self { chain, key: read(directory, "server-key.pem")?.1, authorities };
        match found.speak_for("localhost") {
            Err(TlsError::Rejected(source)) if is_about_time(&source) => {
                Err(TlsError::Outdated { path: directory.join("server-cert.pem"), source })
            }
            _ => Ok(found),
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
        let roots = Arc::new(roots("the authorities", self.authorities.as_deref().unwrap_or_default())?);
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build()?;
        let chain = certificates("the server's certificates", &self.chain)?;
        let (first, between) =
            chain.split_first().ok_or_else(|| TlsError::Empty { what: "the server's chain".to_owned() })?;
        let name = ServerName::try_from(name)
            .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::NotValidForName))?;
        verifier.verify_server_cert(first, between, &name, &[], UnixTime::now())?;
        Ok(())
    }
}

/// An encrypted session of a client to the server of `uri`, which asks for it, not begun yet.
///
/// # Errors
/// If the files that the URI names cannot be used, or it does not say whom to trust.
pub(super) fn client(uri: &Uri) -> Result<ClientConnection, TlsError> {
    let tls = uri.tls.as_ref().ok_or_else(|| TlsError::Uri("the URI does not ask for it".to_owned()))?;
    // The name that the server's certificate must carry.
    let name = match (&tls.hostname, &uri.address) {
        (Some(name), _) => name.clone(),
        (None, Address::Tcp { host, .. }) => host.clone(),
        (None, Address::Unix(_)) => "localhost".to_owned(),
    };
    let config = client_config(tls)?;
    let name = ServerName::try_from(name.clone()).map_err(|_| {
        TlsError::Uri(format!("{name:?} is no host name that a certificate could carry; set tls-hostname"))
    })?;
    Ok(ClientConnection::new(Arc::new(config), name)?)
}

fn client_config(tls: &TlsUri) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let directory = tls.certificates.as_deref();
    let builder = match directory {
        _ if !tls.is_verified => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        }
        Some(directory) => {
            let (what, pem) = read(directory, "ca-cert.pem")?;
            builder.with_root_certificates(roots(&what, &pem)?)
        }
        None => {
            let why = "which authorities to trust? expected tls-certificates=DIR with ca-cert.pem";
            return Err(TlsError::Uri(why.to_owned()));
        }
    };
    match directory.filter(|directory| directory.join("client-cert.pem").exists()) {
        Some(directory) => {
            let (what, pem) = read(directory, "client-cert.pem")?;
            let chain = certificates(&what, &pem)?;
            let (what, pem) = read(directory, "client-key.pem")?;
            Ok(builder.with_client_auth_cert(chain, private_key(&what, &pem)?)?)
        }
        None => Ok(builder.with_no_client_auth()),
    }
}

/// Takes any certificate, but the server must hold its key: for `tls-verify=false`.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn is_about_time(error: &rustls::Error) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let rustls::Error::InvalidCertificate(error) = error else { return false };
    matches!(error, Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })
}

/// The file `name` in `directory`: its path, for messages, and what is in it.
fn read(directory: &Path, name: &str) -> Result<(String, Vec<u8>), TlsError> {
    let path = directory.join(name);
    let shown = path.display().to_string();
    std::fs::read(&path).map(|pem| (shown, pem)).map_err(|source| TlsError::File { path, source })
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| TlsError::Pem { what: what.to_owned(), source })?;
    if found.is_empty() { Err(TlsError::Empty { what: what.to_owned() }) } else { Ok(found) }
}

fn roots(what: &str, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(what, pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn private_key(what: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    let key = PrivateKeyDer::from_pem_slice(pem)
        .map_err(|source| TlsError::Pem { what: what.to_owned(), source })?;
    match rsa::bits(&key) {
        // What the library signs with: its primes are multiples of 512 bits.
        Some(bits) if ![2048, 3072, 4096].contains(&bits) => {
            Err(TlsError::RsaKey { what: what.to_owned(), bits })
        }
        _ => Ok(key),
    }
}
