//! TLS for the client: certificates from a directory laid out as libnbd and QEMU expect it.
//!
//! ```text
//! DIR/ca-cert.pem       the authorities that the server's certificate must come from; not looked at unverified
//! DIR/client-cert.pem   this client's certificate, optional
//! DIR/client-key.pem    its key
//! ```
//!
//! The system's own authorities are not consulted: where they are differs between systems, and an export should be
//! trusted because somebody said so.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::error::ConnectError;
use crate::nbd::uri::{Address, TlsUri, Uri};

/// An encrypted session to the server of `uri`, not begun yet.
pub(super) fn session(uri: &Uri) -> Result<ClientConnection, ConnectError> {
    let failed = |because: String| ConnectError::Tls { place: uri.to_string(), because };
    let tls = uri.tls.as_ref().ok_or_else(|| failed("the URI does not ask for it".to_owned()))?;
    let config = config(tls).map_err(failed)?;
    let name = server_name(uri, tls).map_err(failed)?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| failed(error.to_string()))
}

/// The name that the server's certificate must carry: that of the URI, or the host; `localhost` for a Unix socket.
fn server_name(uri: &Uri, tls: &TlsUri) -> Result<ServerName<'static>, String> {
    let name = match (&tls.hostname, &uri.address) {
        (Some(name), _) => name.clone(),
        (None, Address::Tcp { host, .. }) => host.clone(),
        (None, Address::Unix(_)) => "localhost".to_owned(),
    };
    ServerName::try_from(name.clone())
        .map_err(|_| format!("{name:?} is no host name that a certificate could carry; set tls-hostname"))
}

fn config(tls: &TlsUri) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let directory = tls.certificates.as_deref();
    let builder = if tls.is_verified {
        let directory =
            directory.ok_or("which authorities to trust? expected tls-certificates=DIR with ca-cert.pem")?;
        builder.with_root_certificates(authorities(directory)?)
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider)))
    };
    match directory.map(|directory| (directory.join("client-cert.pem"), directory.join("client-key.pem"))) {
        Some((certificate, key)) if certificate.exists() => {
            let chain = certificates(&certificate)?;
            let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| unreadable(&key, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

fn authorities(directory: &Path) -> Result<RootCertStore, String> {
    let path = directory.join("ca-cert.pem");
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&path)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(path, &error))?;
    if found.is_empty() { Err(format!("{} has no certificate in it", path.display())) } else { Ok(found) }
}

fn unreadable(path: &Path, error: &rustls::pki_types::pem::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// Takes any certificate, but the server must hold its key: for `tls-verify=false`.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
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
