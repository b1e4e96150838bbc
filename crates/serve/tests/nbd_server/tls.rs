//! Tests of encryption with certificates, in both directions, with another client.

use std::path::Path;
use std::process::Command;

use plumb_block::Bytes;
use plumb_serve::nbd::server::{Listener, Options};
use plumb_serve::nbd::tls::{ServerTls, TlsError};
use plumb_serve::nbd::wire::{GoRequest, OptionCode, OptionReplyKind};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use crate::nbd_server::client::Client;
use crate::nbd_server::interop::has;
use crate::nbd_server::memory::memory;
use crate::nbd_server::running::{RunningServer, export};

/// Certificates of an authority, a server and a client, as PEM; the client's in files as libnbd expects them.
struct Papers {
    authority: String,
    server: (String, String),
}

fn papers(directory: &Path, has_client: bool) -> Papers {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let issue = |usage: ExtendedKeyUsagePurpose| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, &authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let server = issue(ExtendedKeyUsagePurpose::ServerAuth);
    std::fs::write(directory.join("ca-cert.pem"), authority.pem()).unwrap();
    if has_client {
        let (certificate, key) = issue(ExtendedKeyUsagePurpose::ClientAuth);
        std::fs::write(directory.join("client-cert.pem"), certificate).unwrap();
        std::fs::write(directory.join("client-key.pem"), key).unwrap();
    }
    Papers { authority: authority.pem(), server }
}

/// Returns the encryption options of a server with `chain` and `key`, written to `directory`.
fn server(
    directory: &Path,
    chain: impl AsRef<[u8]>,
    key: impl AsRef<[u8]>,
    is_mutual: bool,
) -> Result<ServerTls, TlsError> {
    std::fs::write(directory.join("server-cert.pem"), chain).unwrap();
    std::fs::write(directory.join("server-key.pem"), key).unwrap();
    ServerTls::read(directory, is_mutual)
}

/// Starts a server on a loopback port that requires encryption. Returns it, and the address for clients with
/// the certificates in `directory`.
fn start(papers: &Papers, is_mutual: bool, directory: &Path) -> (RunningServer, String) {
    let own = tempfile::tempdir().unwrap();
    std::fs::write(own.path().join("ca-cert.pem"), &papers.authority).unwrap();
    let mut options = Options::default();
    options.tls = Some(server(own.path(), &papers.server.0, &papers.server.1, is_mutual).unwrap());
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = listener.tcp_address().unwrap().port();
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("s");
    let unix = Listener::unix(&socket).unwrap();
    let exports = vec![export("disk", memory(Bytes::mib(4)))];
    let running = RunningServer::start_on(exports, options, vec![listener, unix], socket, home);
    (running, format!("nbds://localhost:{port}/disk?tls-certificates={}", directory.display()))
}

fn nbdinfo_size(uri: &str) -> Result<String, String> {
    let output = Command::new("nbdinfo").args(["--size", uri]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn libnbd_talks_encrypted() {
    if !has("nbdinfo") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let papers = papers(directory.path(), false);
    let (_running, uri) = start(&papers, false, directory.path());
    assert_eq!(nbdinfo_size(&uri), Ok("4194304".to_owned()));
    let copy = directory.path().join("copy");
    let status = Command::new("nbdcopy").args([&uri, copy.to_str().unwrap()]).status().unwrap();
    assert!(status.success());
    assert_eq!(std::fs::metadata(&copy).unwrap().len(), 4 << 20);
}

#[test]
fn a_client_without_a_certificate_is_turned_away_where_one_is_wanted() {
    if !has("nbdinfo") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let known = papers(directory.path(), true);
    let (_running, uri) = start(&known, true, directory.path());
    assert_eq!(nbdinfo_size(&uri), Ok("4194304".to_owned()));
    std::fs::remove_file(directory.path().join("client-cert.pem")).unwrap();
    std::fs::remove_file(directory.path().join("client-key.pem")).unwrap();
    assert!(nbdinfo_size(&uri).is_err());
    // A client of another authority, which trusts this server.
    let stranger = tempfile::tempdir().unwrap();
    drop(papers(stranger.path(), true));
    std::fs::write(stranger.path().join("ca-cert.pem"), &known.authority).unwrap();
    let uri = uri.replace(directory.path().to_str().unwrap(), stranger.path().to_str().unwrap());
    assert!(nbdinfo_size(&uri).is_err());
}

#[test]
fn nothing_is_told_in_the_clear() {
    let directory = tempfile::tempdir().unwrap();
    let papers = papers(directory.path(), false);
    let (running, _) = start(&papers, false, directory.path());
    let mut client = Client::greeted(&running.socket).unwrap();
    let go = GoRequest { name: "disk".to_owned(), wants: Vec::new() }.encode();
    for (code, data) in [(OptionCode::LIST, &[][..]), (OptionCode::GO, &go), (OptionCode::INFO, &go)] {
        let replies = client.option(code, data).unwrap();
        assert_eq!(replies[0].0, OptionReplyKind::ERR_TLS_REQD, "{code:?}");
    }
}

#[test]
fn papers_that_do_not_fit_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (papers(directory.path(), false), papers(directory.path(), false));
    let pem = |chain: &str, key: &str| server(directory.path(), chain, key, false);
    assert!(pem(&one.server.0, &other.server.1).is_err(), "another's key");
    assert!(pem("", &one.server.1).is_err(), "no certificate");
    assert!(pem(&one.server.0, "nonsense").is_err(), "no key");
}

#[test]
fn rsa_keys_that_rustls_refuses_are_named_with_the_lengths_that_it_takes() {
    if !has("openssl") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for bits in [1024, 2048, 2100, 3072, 4608] {
        let (bits_text, key, certificate) = (bits.to_string(), at("key"), at("certificate"));
        openssl(&["genrsa", "-out", &key, &bits_text]);
        openssl(&["req", "-x509", "-new", "-key", &key, "-subj", "/CN=localhost", "-out", &certificate]);
        openssl(&["rsa", "-in", &key, "-traditional", "-out", &at("traditional")]);
        let chain = std::fs::read(&certificate).unwrap();
        for file in ["key", "traditional"] {
            let key = std::fs::read(at(file)).unwrap();
            let read = server(directory.path(), &chain, &key, false);
            match (bits, read) {
                (2048 | 3072, Ok(_)) => {}
                (1024 | 2100 | 4608, Err(error)) => {
                    let said = error.to_string();
                    assert!(said.contains("rustls refuses the key") && said.contains("4096"), "{said}");
                }
                (_, other) => panic!("{bits} bits, {file}: {other:?}"),
            }
        }
    }
}
