//! Tests that a served drive stays while NBD clients use it: detaching is refused with their names, unless
//! they are to be cut off.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::common::{exited, has_run, said};
use crate::drive_support::{Server, has};

/// Client that stays connected until it is told to write and to report the result.
struct Client(Child);

impl Client {
    fn connect(uri: &str) -> Self {
        let child = Command::new("qemu-io")
            .args(["-f", "raw", uri])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut client = Self(child);
        // An answer shows that the client is connected.
        client.ask("write -P 1 0 4k", "wrote 4096");
        client
    }

    fn ask(&mut self, command: &str, answer: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{command}").unwrap();
        let mut lines = BufReader::new(self.0.stdout.as_mut().unwrap());
        let mut text = String::new();
        while !text.contains(answer) {
            assert!(lines.read_line(&mut text).unwrap() > 0, "{command}: {text}");
        }
    }

    /// Writes once more, and returns the output.
    fn write_and_leave(mut self) -> String {
        // A client whose connection was cut may be gone.
        writeln!(self.0.stdin.take().unwrap(), "write -P 2 0 4k").unwrap_or_default();
        said(&self.0.wait_with_output().unwrap())
    }
}

fn serve(socket: &Path, more: &[&str]) -> Server {
    let mut arguments = vec!["memory", "--size", "16M", "--nbd", socket.to_str().unwrap()];
    arguments.extend(more);
    Server::start(&arguments)
}

#[test]
fn clients_are_named_and_keep_their_drive() {
    if !has("qemu-io") {
        return plumb_testkit::skip("there is no qemu-io");
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let server = serve(&socket, &["--nbd-tcp", "127.0.0.1:0"]);
    let uris = server.document["nbd_uris"].as_array().unwrap();
    let local = Client::connect(uris[0].as_str().unwrap());
    let remote = Client::connect(uris[1].as_str().unwrap());
    let pid = local.0.id();
    assert_eq!(server.order("status", &[])["nbd_clients"], 2);
    let refused = exited(server.try_order("detach", &[]), 4);
    let text = said(&refused);
    for word in [&format!("process {pid} (qemu-io)"), "127.0.0.1:", "--cut-off"] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    assert!(local.write_and_leave().contains("wrote 4096"), "the client lost the drive");
    assert!(remote.write_and_leave().contains("wrote 4096"), "the client lost the drive");
    // The server notices by itself that the clients are gone.
    while server.order("status", &[])["nbd_clients"] != 0 {
        std::thread::yield_now();
    }
    server.detach();
}

#[test]
fn clients_that_are_cut_off_get_errors_and_the_server_ends_well() {
    if !has("qemu-io") {
        return plumb_testkit::skip("there is no qemu-io");
    }
    for flag in ["--cut-off", "--force"] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nbd");
        let server = serve(&socket, &[]);
        let client = Client::connect(server.document["nbd"].as_str().unwrap());
        server.order("detach", &[flag]);
        let (code, heard) = server.wait();
        assert_eq!((code, heard.as_str()), (Some(0), ""), "{flag}");
        assert!(!socket.exists());
        let text = client.write_and_leave();
        assert!(!text.contains("wrote 4096"), "{flag}: {text}");
    }
}

/// Returns the output of a load of 64 KiB on the export at `socket`.
fn load(socket: &Path, more: &[&str]) -> Output {
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let directory = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["load", &uri, "--count", "16", "--out"])
        .arg(directory.path().join("run"))
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_drive_without_power_is_not_waited_for_and_answers_again_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let server = serve(&socket, &[]);
    server.order("cut", &[]);
    let output = exited(load(&socket, &[]), 5);
    assert!(said(&output).contains("is off: `plumb drive power-on"), "{}", said(&output));
    server.order("power-on", &[]);
    let output = load(&socket, &[]);
    assert!(has_run(&output), "{}", said(&output));
    server.detach();
}

#[test]
fn an_export_that_takes_no_writes_is_refused_before_the_first() {
    if !has("nbdkit") {
        return plumb_testkit::skip("there is no nbdkit");
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    // nbdkit ends with the command that it runs.
    let status = Command::new("nbdkit")
        .args(["--readonly", "-U", socket.to_str().unwrap(), "memory", "16M", "--run"])
        .arg(format!(
            "{} load 'nbd+unix:///?socket={}' --write 100 --overwrite --count 16 --out {}; test $? -eq 4",
            env!("CARGO_BIN_EXE_plumb"),
            socket.display(),
            directory.path().join("run").display()
        ))
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", said(&status));
    assert!(said(&status).contains("read-only"), "{}", said(&status));
}
