//! Tests of the client with other servers: their capabilities are understood, their errors arrive, they are
//! killed during writes, and only valid certificates are accepted.

use std::path::Path;

use crate::client_support::Program;
use plumb_block::{
    Bytes, Completion, Device, Errno, ExtentState, Lba, LbaRange, Nanos, Outcome, Pattern, Payload, Pool,
    PoolShape, Queue, QueueOptions, Request, Tag, VolatileCache, Wait,
};
use plumb_serve::nbd::client::{NbdDevice, Options};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

fn pool() -> Pool {
    Pool::new(PoolShape { buffer: Bytes::kib(64), count: 64, alignment: Bytes(4096) }).unwrap()
}

fn connect(uri: &str, options: Options) -> NbdDevice {
    NbdDevice::connect(&uri.parse().unwrap(), options).unwrap()
}

fn queue_of(device: &NbdDevice, pool: &Pool) -> Box<dyn Queue> {
    device.open_queue(QueueOptions { depth: 32, pool: pool.clone() }).unwrap()
}

fn complete(queue: &mut dyn Queue, request: Request) -> Completion {
    queue.submit(request).unwrap();
    let mut completions = Vec::new();
    while completions.is_empty() {
        queue.poll(Wait::ONE, &mut completions).unwrap();
    }
    completions.pop().unwrap()
}

fn pattern(lba: u64, generation: u64) -> Pattern {
    Pattern { seed: 3, lba: Lba(lba), generation }
}

fn write(lba: u64, generation: u64) -> Request {
    Request::write(Tag(lba), LbaRange::new(Lba(lba), 8), Payload::Pattern(pattern(lba, generation)))
}

fn read(pool: &Pool, lba: u64) -> Request {
    Request::read_into(Tag(lba), LbaRange::new(Lba(lba), 8), pool.take(Bytes::kib(4)).unwrap())
}

#[test]
fn what_nbdkit_offers_is_understood() {
    let Some(server) = Program::nbdkit(&["memory", "4M"]) else { return };
    let device = connect(&server.uri(""), Options { connections: 3, ..Options::default() });
    let info = device.info();
    assert_eq!((info.size, info.logical_block, device.connections()), (Bytes::mib(4), Bytes(512), 3));
    assert!(info.volatile_cache == VolatileCache::Enabled && info.fua_native && info.discard_max > Bytes(0));
    assert!(device.set_wce(false).is_err());
    let pool = pool();
    let mut queue = queue_of(&device, &pool);
    assert!(complete(&mut *queue, write(800, 1)).outcome.is_done());
    let extents = device.extents(LbaRange::new(Lba(0), 8192)).unwrap();
    assert!(extents.iter().any(|extent| extent.state == ExtentState::Hole), "{extents:?}");
    let written = extents.iter().find(|extent| extent.state == ExtentState::Written).unwrap();
    assert!(written.range.lba.0 <= 800 && written.range.end().0 >= 808, "{extents:?}");
    let Some(alone) = Program::nbdkit(&["--filter=multi-conn", "memory", "4M", "multi-conn-mode=disable"])
    else {
        return;
    };
    assert_eq!(connect(&alone.uri(""), Options::default()).connections(), 1);
}

/// Tests that queues share one connection to qemu-nbd, which promises nothing about several connections to a
/// writable image.
#[test]
fn queues_share_the_one_connection_to_qemu() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let Some(server) = Program::qemu_nbd(&["-f", "raw", file.path().to_str().unwrap()]) else { return };
    let device = connect(&server.uri(""), Options::default());
    assert_eq!(device.connections(), 1);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let device = &device;
            scope.spawn(move || {
                let pool = pool();
                let mut queue = queue_of(device, &pool);
                for number in 0..100 {
                    let lba = (worker * 16 + number % 16) * 8;
                    assert!(complete(&mut *queue, write(lba, number)).outcome.is_done());
                    let seen = complete(&mut *queue, read(&pool, lba));
                    let mut expected = vec![0; 4096];
                    pattern(lba, number).fill(512, &mut expected);
                    let Payload::Into(bytes) = &seen.payload else { panic!("{seen:?}") };
                    assert!(
                        seen.tag == Tag(lba) && bytes[..] == expected[..],
                        "worker {worker}, write {number}"
                    );
                }
                assert!(complete(&mut *queue, Request::flush(Tag(1))).outcome.is_done());
            });
        }
    });
}

#[test]
fn errors_and_delays_arrive() {
    let Some(server) =
        Program::nbdkit(&["--filter=error", "memory", "4M", "error-pread=EIO", "error-pread-rate=100%"])
    else {
        return;
    };
    let pool = pool();
    let device = connect(&server.uri(""), Options::default());
    let mut queue = queue_of(&device, &pool);
    assert_eq!(complete(&mut *queue, read(&pool, 0)).outcome, Outcome::Failed(Errno::EIO));
    assert!(complete(&mut *queue, write(0, 1)).outcome.is_done() && device.latched().is_none());
    let Some(slow) = Program::nbdkit(&["--filter=delay", "memory", "4M", "rdelay=100ms"]) else { return };
    let device = connect(&slow.uri(""), Options { connections: 1, ..Options::default() });
    let mut queue = queue_of(&device, &pool);
    let done = complete(&mut *queue, read(&pool, 0));
    assert!(done.outcome.is_done() && done.service_time() >= Nanos::millis(100), "{:?}", done.service_time());
}

#[test]
fn read_only_exports_refuse_writes_here() {
    let Some(server) = Program::nbdkit(&["-r", "memory", "4M"]) else { return };
    let pool = pool();
    let device = connect(&server.uri(""), Options::default());
    assert!(device.info().is_read_only);
    let mut queue = queue_of(&device, &pool);
    assert_eq!(complete(&mut *queue, write(0, 1)).outcome, Outcome::Failed(Errno::EROFS));
    let Some(writable) = Program::nbdkit(&["memory", "4M"]) else { return };
    assert!(!connect(&writable.uri(""), Options::default()).info().is_read_only);
    assert_eq!(device.info().discard_max, Bytes(0));
}

/// Kills a server of memory during writes, and starts it again, empty: all acknowledged data is lost, as
/// after a power cut with a volatile cache. No flush may succeed for this data.
#[test]
fn a_server_killed_in_the_middle_of_writes_acknowledges_nothing_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    for round in 0..10_u64 {
        let arguments = ["--filter=delay", "memory", "4M", "wdelay=1ms"];
        let Some(mut server) = Program::nbdkit_at(&socket, &arguments) else { return };
        let device = connect(&server.uri(""), Options { connections: 2, ..Options::default() });
        let pool = pool();
        let mut queues = [queue_of(&device, &pool), queue_of(&device, &pool)];
        let mut completions = Vec::new();
        for queue in &mut queues {
            (0..32).for_each(|number| queue.submit(write(number * 8, 1)).unwrap());
            queue
                .poll(
                    Wait { completions: 1 + round as u32 * 3, patience: None, deadline: None },
                    &mut completions,
                )
                .unwrap();
        }
        let acknowledged = completions.iter().filter(|completion| completion.outcome.is_done()).count();
        server.kill();
        for queue in &mut queues {
            queue.poll(Wait { completions: 64, patience: None, deadline: None }, &mut completions).unwrap();
        }
        assert_eq!(completions.len(), 64, "round {round}");
        for completion in &completions {
            assert!(
                matches!(completion.outcome, Outcome::Done | Outcome::Unknown | Outcome::Failed(Errno(107))),
                "round {round}: {completion:?}"
            );
        }
        assert!(acknowledged > 0, "round {round}");
        let flush = loop {
            match complete(&mut *queues[1], Request::flush(Tag(1))).outcome {
                // The flush was sent before the loss was seen.
                Outcome::Unknown => {}
                other => break other,
            }
        };
        assert_eq!(
            flush,
            Outcome::Failed(Errno(107)),
            "round {round}: {acknowledged} acknowledged writes are gone"
        );
        assert!(device.latched().is_some());
    }
}

#[test]
fn a_restarted_file_server_keeps_what_was_flushed() {
    let directory = tempfile::tempdir().unwrap();
    let (socket, path) = (directory.path().join("s"), directory.path().join("f"));
    std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let arguments = ["file", path.to_str().unwrap()];
    let Some(mut server) = Program::nbdkit_at(&socket, &arguments) else { return };
    let pool = pool();
    for generation in 1..6 {
        let device = connect(&server.uri(""), Options::default());
        let mut queue = queue_of(&device, &pool);
        assert!(complete(&mut *queue, write(0, generation)).outcome.is_done());
        assert!(complete(&mut *queue, Request::flush(Tag(2))).outcome.is_done(), "generation {generation}");
        server.kill();
        server = Program::nbdkit_at(&socket, &arguments).unwrap();
        let device = connect(&server.uri(""), Options::default());
        let seen = complete(&mut *queue_of(&device, &pool), read(&pool, 0));
        let mut expected = vec![0; 4096];
        pattern(0, generation).fill(512, &mut expected);
        assert!(matches!(&seen.payload, Payload::Into(bytes) if bytes[..] == expected[..]), "{generation}");
    }
}

/// Creates `ca-cert.pem`, `server-cert.pem`, `server-key.pem` as nbdkit expects them, and those of a client.
fn certificates(directory: &Path) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let put = |name: &str, pem: String| std::fs::write(directory.join(name), pem).unwrap();
    put("ca-cert.pem", authority_certificate.pem());
    let issuer = Issuer::new(authority, authority_key);
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        put(&format!("{name}-cert.pem"), certificate.signed_by(&key, &issuer).unwrap().pem());
        put(&format!("{name}-key.pem"), key.serialize_pem());
    }
}

#[test]
fn certificates_are_believed_only_where_they_should_be() {
    let [trusted, stranger] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    [&trusted, &stranger].into_iter().for_each(|directory| certificates(directory.path()));
    let directory = format!("--tls-certificates={}", trusted.path().display());
    let Some(server) = Program::nbdkit(&["--tls=require", "--tls-verify-peer", &directory, "memory", "4M"])
    else {
        return;
    };
    let uri = |parameters: &str| server.uri(parameters).replacen("nbd+", "nbds+", 1);
    let certificates = |directory: &Path| format!("&tls-certificates={}", directory.display());
    let device = connect(&uri(&certificates(trusted.path())), Options::default());
    let pool = pool();
    let mut queue = queue_of(&device, &pool);
    for number in 0..32 {
        queue.submit(write(number * 8, 7)).unwrap();
    }
    let mut completions = Vec::new();
    queue.poll(Wait { completions: 32, patience: None, deadline: None }, &mut completions).unwrap();
    assert!(completions.iter().all(|completion| completion.outcome.is_done()));
    let seen = complete(&mut *queue, read(&pool, 80));
    let mut expected = vec![0; 4096];
    pattern(80, 7).fill(512, &mut expected);
    assert!(matches!(&seen.payload, Payload::Into(bytes) if bytes[..] == expected[..]));
    let refusals = [
        (uri(&certificates(stranger.path())), "certificate"),
        (uri(&format!("{}&tls-hostname=other.example", certificates(trusted.path()))), "certificate"),
        (uri(""), "tls-certificates=DIR"),
        (server.uri(""), "use nbds"),
    ];
    for (uri, part) in refusals {
        let error = NbdDevice::connect(&uri.parse().unwrap(), Options::default()).err().unwrap();
        let message = plumb_block::in_one_line(&error);
        assert!(message.contains(part), "{uri}: {message}");
    }
}

#[test]
fn a_place_without_a_server_is_an_error_that_names_it() {
    let uri = "nbd+unix:///x?socket=/nonexistent/socket".parse().unwrap();
    let error = NbdDevice::connect(&uri, Options::default()).err().unwrap();
    assert!(error.to_string().contains("/nonexistent/socket"), "{error}");
}
