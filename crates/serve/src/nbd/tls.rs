//! TLS: certificates, keys, and how server and client encrypt with them. The files are laid out as QEMU,
//! nbdkit and libnbd have them:
//!
//! ```text
//! DIR/ca-cert.pem                       the authorities that the other side's certificate must come from
//! DIR/server-cert.pem, client-cert.pem  the own certificate, then those between it and its authority
//! DIR/server-key.pem, client-key.pem    its key
//! ```
//!
//! Only certificates: the library has no external pre-shared keys. TLS 1.2 and 1.3. The system's own
//! authorities are not used: their location varies, and trust in an export should be explicit.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme,
};

use super::uri::{Address, TlsUri, Uri};

/// Error of unusable certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is not PEM, or does not contain the required kind of object.
    #[error("cannot read {what}: expected PEM")]
    Pem {
        /// Name of the file that is not PEM.
        what: String,
        /// Error that reading the file as PEM failed with.
        source: rustls::pki_types::pem::Error,
    },
    /// A required file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The certificates do not match, have expired, or are of an unsupported kind.
    #[error("{what} cannot be used")]
    Rejected {
        /// Name of the file that cannot be used.
        what: String,
        /// Reason of the rejection.
        source: rustls::Error,
    },
    /// The authority of the other side is unusable.
    #[error("the authorities cannot be used")]
    Authority(#[from] rustls::server::VerifierBuilderError),
    /// Something is missing or unsuitable; with advice.
    #[error("{0}")]
    Unusable(String),
}

impl From<rustls::Error> for TlsError {
    fn from(source: rustls::Error) -> Self {
        Self::Rejected { what: "the certificates".to_owned(), source }
    }
}

/// Encryption of a server, with the certificates of a directory.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub(super) config: Arc<ServerConfig>,
    directory: PathBuf,
    verifies_clients: bool,
    chain: Vec<CertificateDer<'static>>,
    /// Verifier that acts like a client that trusts the authorities of the directory, if there are any.
    client: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerTls {
    /// Reads the certificates in `directory`. If clients are verified, those without a certificate from the
    /// authorities there are rejected.
    ///
    /// # Errors
    /// If a required one cannot be read, they do not match, or no client could accept the certificate because
    /// it has expired.
    pub fn read(directory: &Path, verifies_clients: bool) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let authorities = match read(directory, "ca-cert.pem") {
            Err(TlsError::File { source, .. })
                if !verifies_clients && source.kind() == io::ErrorKind::NotFound =>
            {
                None
            }
            read => {
                let (what, pem) = read?;
                Some(Arc::new(roots(&what, &pem)?))
            }
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match authorities.clone().filter(|_| verifies_clients) {
            None => builder.with_no_client_auth(),
            Some(roots) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?,
            ),
        };
        let (what, pem) = read(directory, "server-cert.pem")?;
        let chain = certificates(&what, &pem)?;
        let (key_file, key) = read(directory, "server-key.pem")?;
        let config = builder.with_single_cert(chain.clone(), private_key(&key_file, &key)?)?;
        let verifier = |roots| WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let client = authorities.map(verifier).transpose()?;
        let directory = directory.to_owned();
        let found = Self { config: Arc::new(config), directory, verifies_clients, chain, client };
        match found.speak_for("localhost") {
            Err(source) if is_about_time(&source) => Err(TlsError::Rejected { what, source }),
            _ => Ok(found),
        }
    }

    /// Checks that a client that trusts the authorities of the directory accepts the server for the host
    /// `name`.
    ///
    /// # Errors
    /// The reason why it does not; also if there are no authorities.
    pub(crate) fn speak_for(&self, name: &str) -> Result<(), rustls::Error> {
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let client = self.client.as_ref().ok_or(unknown.clone())?;
        let (first, between) = self.chain.split_first().ok_or(unknown)?;
        let name = ServerName::try_from(name)
            .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::NotValidForName))?;
        client.verify_server_cert(first, between, &name, &[], UnixTime::now()).map(|_| ())
    }

    /// Returns the directory if it also has certificates for clients on this machine.
    pub(crate) fn of_clients(&self) -> Option<PathBuf> {
        let needed: &[&str] =
            if self.verifies_clients { &["ca-cert.pem", "client-cert.pem"] } else { &["ca-cert.pem"] };
        needed.iter().all(|name| self.directory.join(name).exists()).then(|| self.directory.clone())
    }
}

/// Creates the client's TLS session for the server of `uri`, not yet started.
///
/// # Errors
/// If the files named by the URI are unusable, or it names no authority to trust.
pub(super) fn client(uri: &Uri) -> Result<ClientConnection, TlsError> {
    let tls = uri.tls.as_ref().ok_or_else(|| TlsError::Unusable("the URI does not ask for it".to_owned()))?;
    // The name that the server's certificate must carry.
    let name = match (&tls.hostname, &uri.address) {
        (Some(name), _) => name.clone(),
        (None, Address::Tcp { host, .. }) => host.clone(),
        (None, Address::Unix(_)) => "localhost".to_owned(),
    };
    let config = client_config(tls)?;
    let name = ServerName::try_from(name.clone()).map_err(|_| {
        TlsError::Unusable(format!(
            "{name:?} is not a host name that a certificate could carry; set tls-hostname"
        ))
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
            return Err(TlsError::Unusable(why.to_owned()));
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

/// Verifier that accepts any certificate, but requires the server to hold its key: for `tls-verify=false`.
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

/// Reads the file `name` in `directory`. Returns its path, for messages, and its contents.
fn read(directory: &Path, name: &str) -> Result<(String, Vec<u8>), TlsError> {
    let path = directory.join(name);
    let shown = path.display().to_string();
    std::fs::read(&path).map(|pem| (shown, pem)).map_err(|source| TlsError::File { path, source })
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| TlsError::Pem { what: what.to_owned(), source })?;
    if found.is_empty() {
        return Err(TlsError::Unusable(format!("{what} has no certificate in it")));
    }
    Ok(found)
}

fn roots(what: &str, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(what, pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Reads a private key that rustls can sign with.
fn private_key(what: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    let key = PrivateKeyDer::from_pem_slice(pem)
        .map_err(|source| TlsError::Pem { what: what.to_owned(), source })?;
    match any_supported_type(&key) {
        Ok(_) => Ok(key),
        Err(_) => Err(TlsError::Unusable(format!(
            "rustls refuses the key in {what}: use an ECDSA or Ed25519 key, or an RSA key of 2048, 3072 or 4096 bits \
             (`openssl genrsa 3072`), and a certificate for it"
        ))),
    }
}
