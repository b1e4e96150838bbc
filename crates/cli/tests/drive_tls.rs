//! Tests of a served drive over TCP: unencrypted on this machine, encrypted with certificates, and the
//! refusal of clients without valid ones. Clients are other programs and plumb.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{bounded, has_run, plumb, said};
use crate::drive_support;
use crate::drive_support::papers::Authority;
use crate::drive_support::{Server, has};
use tempfile::TempDir;

/// Returns a directory with all certificates of one authority.
fn papers() -> (Authority, TempDir) {
    let (authority, directory) = (Authority::new(), tempfile::tempdir().unwrap());
    authority.write(directory.path());
    authority.write_server(directory.path(), false);
    authority.write_client(directory.path(), false);
    (authority, directory)
}

fn serve(arguments: &[&str], certificates: Option<&Path>) -> Server {
    let mut all = vec!["memory", "--size", "16M", "--nbd-tcp", "127.0.0.1:0"];
    all.extend(certificates.iter().flat_map(|directory| ["--tls-certificates", directory.to_str().unwrap()]));
    all.extend(arguments);
    Server::start(&all)
}

fn uri(server: &Server) -> &str {
    server.document["nbd"].as_str().unwrap()
}

/// Reads a little from `uri`, with plumb as the client.
fn read_with_plumb(uri: &str) -> Output {
    let out = tempfile::tempdir().unwrap();
    let run = out.path().join("run");
    let arguments = ["load", uri, "--duration", "100ms", "--json", "--out", run.to_str().unwrap()];
    plumb().args(arguments).output().unwrap()
}

/// Returns the URI with another directory of certificates.
fn with_papers(uri: &str, directory: &Path) -> String {
    let (place, _) = uri.split_once('?').unwrap();
    format!("{place}?tls-certificates={}", directory.display())
}

#[test]
fn tcp_on_this_machine_needs_no_certificates_and_several_places_serve_one_drive() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("a socket");
    let server = serve(&["--nbd", socket.to_str().unwrap()], None);
    let uris: Vec<&str> =
        server.document["nbd_uris"].as_array().unwrap().iter().map(|uri| uri.as_str().unwrap()).collect();
    assert_eq!(uris.len(), 2, "{uris:?}");
    assert!(uris[0].contains("socket=") && uris[0].contains("%20"), "{uris:?}");
    assert!(uris[1].starts_with("nbd://127.0.0.1:"), "{uris:?}");
    for uri in uris {
        let output = read_with_plumb(uri);
        assert!(has_run(&output), "{uri}: {}", said(&output));
        if has("nbdinfo") {
            let output = Command::new("nbdinfo").args(["--size", uri]).output().unwrap();
            assert_eq!(
                String::from_utf8_lossy(&output.stdout).trim(),
                "16777216",
                "{uri}: {}",
                said(&output)
            );
        }
    }
    server.detach();
    assert!(!socket.exists());
}

#[test]
fn the_uri_that_is_printed_connects_everybody_over_tls() {
    let (_authority, directory) = papers();
    let server = serve(&[], Some(directory.path()));
    assert!(uri(&server).starts_with("nbds://127.0.0.1:"), "{}", server.document);
    let output = read_with_plumb(uri(&server));
    assert!(has_run(&output), "{}", said(&output));
    if has("nbdinfo") && has("nbdcopy") {
        let output = Command::new("nbdinfo").args(["--size", uri(&server)]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "16777216", "{}", said(&output));
        let (there, back) = (directory.path().join("there"), directory.path().join("back"));
        let noise: Vec<u8> =
            (0..16_u32 << 18).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        std::fs::write(&there, &noise).unwrap();
        drive_support::run(Command::new("nbdcopy").arg("--flush").arg(&there).arg(uri(&server)));
        drive_support::run(Command::new("nbdcopy").arg(uri(&server)).arg(&back));
        assert!(std::fs::read(&back).unwrap() == noise, "what came back is not what was written");
    } else {
        plumb_testkit::skip("there is no nbdinfo or nbdcopy");
    }
    if has("qemu-img") {
        let port = uri(&server).split([':', '/', '?']).nth(4).unwrap();
        let tls = format!("tls-creds-x509,id=t,endpoint=client,dir={}", directory.path().display());
        let image = format!("driver=nbd,host=127.0.0.1,port={port},tls-creds=t");
        let output = drive_support::run(Command::new("qemu-img").args([
            "info",
            "--object",
            &tls,
            "--image-opts",
            &image,
        ]));
        assert!(said(&output).contains("16 MiB"), "{}", said(&output));
    } else {
        plumb_testkit::skip("there is no qemu-img");
    }
    let status = server.order("status", &[]);
    assert_eq!(status["nbd_clients"], 0, "{status}");
    server.order("detach", &[]);
    assert_eq!(server.wait().0, Some(0));
}

/// Connects a client that must fail, with plumb and with libnbd. Returns the messages of plumb and of the
/// server.
fn turned_away(server: Server, uri: &str) -> (String, String) {
    let output = read_with_plumb(uri);
    assert_eq!(output.status.code(), Some(5), "{uri}: {}", said(&output));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if has("nbdinfo") {
        let output = Command::new("nbdinfo").args(["--size", uri]).output().unwrap();
        assert!(!output.status.success(), "{uri}: {}", said(&output));
    }
    server.order("detach", &[]);
    let (code, heard) = server.wait();
    assert_eq!(code, Some(0), "{heard}");
    (told, heard)
}

#[test]
fn a_client_without_a_certificate_is_turned_away_and_both_sides_say_so() {
    let (authority, directory) = papers();
    let server = serve(&[], Some(directory.path()));
    let stranger = tempfile::tempdir().unwrap();
    authority.write(stranger.path());
    let uri = with_papers(uri(&server), stranger.path());
    let (told, heard) = turned_away(server, &uri);
    assert!(told.contains("client-cert.pem"), "{told}");
    assert!(heard.contains("certificate"), "{heard}");
    // Without peer verification, a client needs no certificate.
    let server = serve(&["--tls-verify-peer", "off"], Some(directory.path()));
    let uri = with_papers(self::uri(&server), stranger.path());
    let output = read_with_plumb(&uri);
    assert!(has_run(&output), "{}", said(&output));
    server.order("detach", &[]);
}

#[test]
fn papers_of_another_authority_and_expired_ones_are_no_good() {
    let (authority, directory) = papers();
    // Client that trusts another authority than the server's.
    let server = serve(&[], Some(directory.path()));
    let (_other, strange) = papers();
    let uri = with_papers(uri(&server), strange.path());
    let (told, _) = turned_away(server, &uri);
    assert!(told.contains("ca-cert.pem"), "{told}");
    // Client with a certificate from another authority.
    let server = serve(&[], Some(directory.path()));
    authority.write(strange.path());
    let uri = with_papers(self::uri(&server), strange.path());
    let (told, heard) = turned_away(server, &uri);
    assert!(told.contains("certificate"), "{told}");
    assert!(heard.contains("certificate"), "{heard}");
    // Client with an expired certificate.
    let server = serve(&[], Some(directory.path()));
    authority.write_client(strange.path(), true);
    let uri = with_papers(self::uri(&server), strange.path());
    let (told, heard) = turned_away(server, &uri);
    assert!(told.contains("expired") || told.contains("certificate"), "{told}");
    assert!(heard.contains("expired"), "{heard}");
}

#[test]
fn who_does_not_encrypt_is_told_to() {
    let (_authority, directory) = papers();
    let server = serve(&[], Some(directory.path()));
    let plain = uri(&server).replace("nbds://", "nbd://");
    let plain = plain.split('?').next().unwrap().to_owned();
    let (told, _) = turned_away(server, &plain);
    assert!(told.contains("use nbds"), "{told}");
    // A plain server also refuses an encrypted client.
    let server = serve(&[], None);
    let encrypted = format!(
        "{}?tls-certificates={}",
        uri(&server).replace("nbd://", "nbds://"),
        directory.path().display()
    );
    let (told, _) = turned_away(server, &encrypted);
    assert!(told.contains("TLS"), "{told}");
}

fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = bounded(env!("CARGO_BIN_EXE_plumb"))
        .args(["drive", "serve", "memory", "--size", "1M"])
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    let text = String::from_utf8_lossy(&output.stderr);
    for word in words {
        assert!(text.contains(word), "{arguments:?}: {word} is not in {text}");
    }
}

#[test]
fn what_cannot_be_served_over_tcp_is_refused_before_anything_is_made() {
    let (authority, directory) = papers();
    let at = directory.path();
    let certificates = at.to_str().unwrap();
    let medium = at.join("medium");
    let backing = ["--backing", medium.to_str().unwrap()];
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let arguments = [&["--nbd-tcp", address][..], &backing].concat();
        refused(&arguments, 4, &["--tls-certificates", address]);
    }
    refused(&["--nbd-tcp", "example.org:1"], 2, &["--nbd-tcp", "127.0.0.1:10809"]);
    refused(&["--nbd", "tcp://127.0.0.1:1"], 2, &["--nbd-tcp"]);
    refused(&["--tls-certificates", certificates], 2, &["--nbd-tcp"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let arguments = [&["--nbd-tcp", &taken][..], &backing].concat();
    refused(&arguments, 5, &["in use", &taken]);
    let tls = ["--nbd-tcp", "127.0.0.1:0", "--tls-certificates", certificates];
    authority.write_server(at, true);
    refused(&tls, 2, &["server-cert.pem", "expired"]);
    authority.write_server(at, false);
    std::fs::copy(at.join("client-key.pem"), at.join("server-key.pem")).unwrap();
    refused(&tls, 2, &["--tls-certificates"]);
    std::fs::remove_file(at.join("server-key.pem")).unwrap();
    refused(&tls, 2, &["server-key.pem"]);
    std::fs::remove_file(at.join("ca-cert.pem")).unwrap();
    refused(&tls, 2, &["ca-cert.pem"]);
    refused(&["--nbd-tcp", "127.0.0.1:0", "--tls-certificates", "/nonexistent"], 2, &["/nonexistent"]);
    assert!(!medium.exists(), "a medium was made for a drive that was refused");
}
