//! Tests of power losses with connected clients: each client learns of the loss at its next request, with
//! every export, so that an honest drive is never taken for a liar.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::process::{Command, Stdio};

use plumb_block::{
    BufferMut, Bytes, Completion, Device as _, Lba, LbaRange, Op, Outcome, Payload, Pool, PoolShape, Queue,
    QueueOptions, Request, Tag, Wait,
};
use plumb_serve::nbd::client::{NbdDevice, Options};

use crate::common::{plumb, said};
use crate::drive_support::papers::Authority;
use crate::drive_support::{Server, cannot_attach};

const BLOCK: u64 = 4096;

/// NBD client with one queue, whose connection is idle between requests.
struct Client {
    device: NbdDevice,
    queue: Box<dyn Queue>,
    pool: Pool,
}

impl Client {
    fn connect(uri: &str, connections: u32) -> Self {
        let options = Options { connections, ..Options::default() };
        let device = NbdDevice::connect(&uri.parse().unwrap(), options).unwrap();
        let shape = PoolShape { buffer: Bytes(BLOCK), count: 4, alignment: Bytes(BLOCK) };
        let pool = Pool::new(shape).unwrap();
        let queue = device.open_queue(QueueOptions { depth: 4, pool: pool.clone() }).unwrap();
        Self { device, queue, pool }
    }

    fn ask(&mut self, op: Op, range: LbaRange, payload: Payload) -> Completion {
        let request = Request { tag: Tag(0), op, range, payload, deadline: None };
        self.queue.submit(request).unwrap();
        let mut completions = Vec::new();
        self.queue.poll(Wait::ONE, &mut completions).unwrap();
        completions.pop().unwrap()
    }

    fn write(&mut self, fill: u8) -> Outcome {
        let mut buffer: BufferMut = self.pool.take(Bytes(BLOCK)).unwrap();
        buffer.fill(fill);
        let range = LbaRange::new(Lba(0), BLOCK / self.device.info().logical_block.0);
        self.ask(Op::Write { fua: false }, range, Payload::Bytes(buffer.freeze())).outcome
    }

    fn flush(&mut self) -> Outcome {
        self.ask(Op::Flush, LbaRange::EMPTY, Payload::None).outcome
    }
}

/// Cuts the power, now or at the next flush of another client, and turns it on again.
fn lose_power(server: &Server, uri: &str, at_flush: bool) {
    if at_flush {
        server.order("cut", &["--at-flush", "1"]);
        assert_ne!(Client::connect(uri, 1).flush(), Outcome::Done, "the power goes with it");
    } else {
        server.order("cut", &[]);
    }
    assert_eq!(server.order("power-on", &[])["power"], true);
}

#[test]
fn clients_of_nbd_that_were_connected_are_told_at_the_next_request() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(directory.path());
    authority.write_server(directory.path(), false);
    authority.write_client(directory.path(), false);
    let socket = directory.path().join("nbd");
    let served = ["consumer-nvme-ssd", "--size", "16M", "--nbd", socket.to_str().unwrap()];
    let tls = ["--nbd-tcp", "127.0.0.1:0", "--tls-certificates", directory.path().to_str().unwrap()];
    let server = Server::start(&[&served[..], &tls].concat());
    let uris: Vec<&str> =
        server.document["nbd_uris"].as_array().unwrap().iter().map(|uri| uri.as_str().unwrap()).collect();
    assert!(uris.len() == 2 && uris[1].starts_with("nbds:"), "{uris:?}");
    for (round, at_flush) in [false, true, false].into_iter().enumerate() {
        for uri in &uris {
            for connections in [1, 4] {
                let place = format!("{uri}, {connections} connections, cut {round}");
                let (mut written, mut idle) =
                    (Client::connect(uri, connections), Client::connect(uri, connections));
                assert_eq!(written.write(7), Outcome::Done, "{place}");
                lose_power(&server, uris[0], at_flush);
                assert_ne!(written.flush(), Outcome::Done, "{place}: what it wrote may be gone");
                assert_ne!(idle.flush(), Outcome::Done, "{place}: also if it never asked for anything");
                assert_eq!(Client::connect(uri, connections).flush(), Outcome::Done, "{place}: a new one");
            }
        }
    }
    server.order("detach", &["--cut-off"]);
    assert_eq!(server.wait().0, Some(0));
}

#[test]
fn an_honest_drive_loses_nothing_that_a_load_was_promised_over_three_cuts() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let server = Server::start(&["consumer-nvme-ssd", "--size", "16M", "--nbd", socket.to_str().unwrap()]);
    let uri = server.document["nbd"].as_str().unwrap();
    for cut in 0..3 {
        let run = directory.path().join(format!("run-{cut}"));
        // The rate is so low that the connection is idle nearly always.
        let mut load = plumb()
            .args(["load", uri, "--write", "100", "--rate", "40iops", "--sync-every", "4", "--verify"])
            .args(["--duration", "1h", "--overwrite", "--json", "--out"])
            .arg(&run)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while server.order("status", &[])["writes"].as_u64().unwrap() < 20 * (cut + 1) {
            assert!(load.try_wait().unwrap().is_none(), "{}", said(&load.wait_with_output().unwrap()));
        }
        lose_power(&server, uri, false);
        let output = load.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5), "it ends with its connection: {}", said(&output));
        assert!(!said(&output).contains("data-not-as-written"), "{}", said(&output));
    }
    server.detach();
}

#[test]
fn who_connects_to_a_drive_without_power_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let server = Server::start(&["memory", "--size", "16M", "--nbd", socket.to_str().unwrap()]);
    server.order("cut", &[]);
    let uri = server.document["nbd"].as_str().unwrap();
    let refused = NbdDevice::connect(&uri.parse().unwrap(), Options::default()).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("is off: `plumb drive power-on"), "{refused}");
    server.order("power-on", &[]);
    assert_eq!(Client::connect(uri, 1).flush(), Outcome::Done);
    server.detach();
}

fn open(device: &str) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(device)
}

/// Returns true if the device can be opened and read with direct I/O.
fn is_readable(device: &str) -> bool {
    let direct = format!("if={device}");
    let arguments = ["bs=4096", "count=1", "iflag=direct", "of=/dev/null", "status=none", &direct];
    Command::new("dd").args(arguments).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn an_attached_device_fails_every_request_until_it_was_closed() {
    if let Some(reason) = cannot_attach(&[]) {
        return plumb_testkit::skip(&reason);
    }
    let server = Server::start(&["consumer-nvme-ssd", "--size", "16M", "--attach"]);
    let device = server.device();
    for direct in [false, true] {
        let file = open(device).unwrap();
        file.write_all_at(&[1; 4096], 0).unwrap();
        file.sync_all().unwrap();
        // Data written with direct I/O is clean in the kernel and lost in the drive, so only the drive's
        // server can report the loss.
        let past = OpenOptions::new()
            .write(true)
            .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
            .open(device)
            .unwrap();
        let mut pool_bytes = vec![0_u8; 8192];
        let start = pool_bytes.as_ptr().align_offset(4096);
        pool_bytes[start..start + 4096].fill(2);
        if direct {
            past.write_all_at(&pool_bytes[start..start + 4096], 4096).unwrap();
        } else {
            file.write_all_at(&[2; 4096], 4096).unwrap();
        }
        drop(past);
        server.order("cut", &[]);
        let status = server.order("power-on", &[]);
        let waits_for = status["device_open_across_cut"].as_array().unwrap();
        // A program that another test starts has a copy of the descriptor until its exec.
        let own = format!("open in process {} ", std::process::id());
        assert!(waits_for.iter().any(|user| user.as_str().unwrap().contains(&own)), "{status}");
        for attempt in 0..3 {
            assert!(file.sync_all().is_err(), "direct: {direct}, sync {attempt}");
            file.write_all_at(&[3; 4096], 8192).unwrap_or_default();
        }
        assert!(!is_readable(device), "those who come while it is open get errors, too");
        drop(file);
        while !server.order("status", &[])["device_open_across_cut"].as_array().unwrap().is_empty() {
            std::thread::yield_now();
        }
        let file = open(device).unwrap();
        let mut bytes = [9; 4096];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [1; 4096], "what was synced before");
        file.read_exact_at(&mut bytes, 8192).unwrap();
        assert_eq!(bytes, [0; 4096], "what was written since is not there");
        file.sync_all().unwrap();
    }
    server.detach();
}

#[test]
fn an_attached_device_that_nobody_has_open_is_there_at_once() {
    if let Some(reason) = cannot_attach(&[]) {
        return plumb_testkit::skip(&reason);
    }
    let server = Server::start(&["consumer-nvme-ssd", "--size", "16M", "--attach"]);
    for _ in 0..3 {
        assert!(is_readable(server.device()));
        server.order("cut", &[]);
        assert!(!is_readable(server.device()), "without power");
        let status = server.order("power-on", &[]);
        assert_eq!(status["device_open_across_cut"].as_array().map(Vec::len), Some(0), "{status}");
        assert!(is_readable(server.device()));
    }
    server.detach();
}
