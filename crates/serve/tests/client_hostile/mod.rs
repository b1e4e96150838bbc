//! Tests of the client with servers that break off, stall, lie, or end the connection: the client must not
//! acknowledge an unknown outcome, and a breach of the protocol must not end as success.

mod scripted;

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use plumb_block::{
    Bytes, Clock, Completion, Device, Errno, Lba, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Pool,
    PoolShape, Queue, QueueOptions, RealClock, Request, Tag, Time, Wait,
};
use plumb_serve::nbd::client::{ConnectError, NbdDevice, Options};
use plumb_serve::nbd::uri::Uri;
use plumb_serve::nbd::wire::{
    ChunkHeader, ChunkKind, Command, CommandFlags, Cookie, ErrorChunk, SimpleReply, WireErrno,
    encode_error_chunk,
};

use self::scripted::{CAPABLE, MULTI, Nature, Peer, ScriptedServer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// Outcome of requests after the connection is lost.
const NOT_CONNECTED: Outcome = Outcome::Failed(Errno(107));

fn pool() -> Pool {
    Pool::new(PoolShape { buffer: Bytes::kib(256), count: 16, alignment: Bytes(4096) }).unwrap()
}

fn options(connections: u32) -> Options {
    Options { connections, drop_patience: Nanos::millis(100), ..Options::default() }
}

fn queue_of(device: &NbdDevice, pool: &Pool) -> Box<dyn Queue> {
    device.open_queue(QueueOptions { depth: 16, pool: pool.clone() }).unwrap()
}

fn complete(queue: &mut dyn Queue, request: Request) -> Completion {
    queue.submit(request).unwrap();
    all(queue, 1).pop().unwrap()
}

fn all(queue: &mut dyn Queue, count: u32) -> Vec<Completion> {
    let mut completions = Vec::new();
    while completions.len() < count as usize {
        queue
            .poll(
                Wait { completions: count - completions.len() as u32, patience: None, deadline: None },
                &mut completions,
            )
            .unwrap();
    }
    completions
}

fn read(pool: &Pool, lba: u64, nlb: u64) -> Request {
    Request::read_into(Tag(lba), LbaRange::new(Lba(lba), nlb), pool.take(Bytes(nlb * 512)).unwrap())
}

fn write(lba: u64, nlb: u64, fua: bool) -> Request {
    let payload = Payload::Pattern(Pattern { seed: 1, lba: Lba(lba), generation: 1 });
    Request { op: Op::Write { fua }, ..Request::write(Tag(lba), LbaRange::new(Lba(lba), nlb), payload) }
}

fn flush() -> Request {
    Request::flush(Tag(1))
}

/// Function that breaks the connection in some way after a read was requested.
type Break = fn(&mut Peer, Cookie);

#[test]
fn whatever_breaks_the_connection_leaves_its_requests_unknown() {
    let ways: [(&str, Break); 6] = [
        ("closes", |_, _| {}),
        ("closes in the middle", |peer, cookie| {
            peer.send(&ChunkHeader::encode_offset_data(cookie, 0, 4096, true));
            peer.send(&[7; 100]);
        }),
        ("answers to nobody", |peer, cookie| peer.data(Cookie(cookie.0 ^ 1 << 40), 0, &[7; 4096], true)),
        ("sends too much", |peer, cookie| peer.send(&ChunkHeader::encode_offset_data(cookie, 0, 4097, true))),
        ("sends garbage", |peer, _| peer.send(b"220 mail.example ESMTP ready")),
        ("sends too little", |peer, cookie| {
            peer.data(cookie, 0, &[7; 2048], false);
            peer.done(cookie);
        }),
    ];
    for (way, broken) in ways {
        let server = ScriptedServer::start(&[Nature::with(CAPABLE)], move |_, peer| {
            let asked = peer.expect(Command::READ);
            broken(peer, asked.cookie);
        });
        let (device, pool) = (server.connect(options(1)), pool());
        let mut queue = queue_of(&device, &pool);
        let first = complete(&mut *queue, read(&pool, 0, 8));
        assert_eq!(first.outcome, Outcome::Unknown, "the server {way}");
        assert_eq!(complete(&mut *queue, read(&pool, 0, 8)).outcome, NOT_CONNECTED, "the server {way}");
        assert_eq!(device.latched(), None);
        assert_eq!(complete(&mut *queue, flush()).outcome, NOT_CONNECTED, "the server {way}");
        assert_eq!(device.latched().map(|latch| latch.errno), Some(Errno(107)));
        drop((queue, device));
        server.end();
    }
}

#[test]
fn answers_in_any_order_and_in_pieces_land_where_they_belong() {
    let server = ScriptedServer::start(&[Nature::with(CAPABLE)], |_, peer| {
        let asked: Vec<_> = (0..3).map(|_| peer.expect(Command::READ)).collect();
        for header in asked.iter().rev() {
            // Two halves, the second first and as a hole; half a buffer is received in place.
            let half = header.length / 2;
            peer.send(
                &ChunkHeader {
                    is_last: false,
                    kind: ChunkKind::OFFSET_HOLE,
                    cookie: header.cookie,
                    length: 12,
                }
                .encode(),
            );
            peer.send(&(header.offset + u64::from(half)).to_be_bytes());
            peer.send(&half.to_be_bytes());
            let fill = (header.offset >> 17) as u8 + 1;
            peer.data(header.cookie, header.offset, &vec![fill; half as usize], true);
        }
        peer.serve(0);
    });
    let (device, pool) = (server.connect(options(1)), pool());
    let mut queue = queue_of(&device, &pool);
    for number in 0..3 {
        queue.submit(read(&pool, number * 256, 256)).unwrap();
    }
    for completion in all(&mut *queue, 3) {
        let Payload::Into(bytes) = &completion.payload else { panic!("{completion:?}") };
        let (data, hole) = bytes.split_at(bytes.len() / 2);
        let fill = (completion.tag.0 / 256) as u8 + 1;
        assert!(
            data.iter().all(|byte| *byte == fill) && hole.iter().all(|byte| *byte == 0),
            "{completion:?}"
        );
    }
    drop((queue, device));
    server.end();
}

#[test]
fn an_error_chunk_fails_its_read_alone() {
    let server = ScriptedServer::start(&[Nature::with(CAPABLE)], |_, peer| {
        let asked = peer.expect(Command::READ);
        peer.data(asked.cookie, asked.offset, &[7; 512], false);
        let error = ErrorChunk { errno: WireErrno::EIO, message: "worn".to_owned(), offset: Some(600) };
        peer.send(&encode_error_chunk(asked.cookie, &error));
        peer.serve(3);
    });
    let (device, pool) = (server.connect(options(1)), pool());
    let mut queue = queue_of(&device, &pool);
    assert_eq!(complete(&mut *queue, read(&pool, 0, 8)).outcome, Outcome::Failed(Errno::EIO));
    assert!(complete(&mut *queue, read(&pool, 0, 8)).outcome.is_done());
    drop((queue, device));
    server.end();
}

#[test]
fn a_request_past_its_deadline_is_unknown_and_keeps_its_buffer_until_the_answer() {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let server = ScriptedServer::start(&[Nature::with(CAPABLE)], move |_, peer| {
        let asked = peer.expect(Command::READ);
        released.lock().unwrap().recv().unwrap();
        peer.data(asked.cookie, asked.offset, &[7; 4096], true);
        peer.serve(3);
    });
    let clock = Arc::new(RealClock::start());
    let device =
        server.connect(Options { time: Time::Real(Arc::clone(&clock) as Arc<dyn Clock>), ..options(1) });
    let pool = pool();
    let mut queue = queue_of(&device, &pool);
    let deadline = clock.now().saturating_add(Nanos::millis(20));
    let late = complete(&mut *queue, Request { deadline: Some(deadline), ..read(&pool, 0, 8) });
    assert!(late.outcome == Outcome::Unknown && late.completed_at >= deadline);
    assert!(
        matches!(late.payload, Payload::None) && pool.available() == 15,
        "the answer may still land in it"
    );
    release.send(()).unwrap();
    assert!(complete(&mut *queue, read(&pool, 8, 8)).outcome.is_done());
    assert_eq!(pool.available(), 16);
    drop((queue, device));
    server.end();
}

#[test]
fn nothing_is_sent_twice_and_no_flush_vouches_for_what_a_lost_server_had() {
    let server = ScriptedServer::start(&[Nature::with(CAPABLE)], |_, peer| {
        for command in [Command::WRITE, Command::FLUSH, Command::WRITE] {
            let asked = peer.expect(command);
            peer.done(asked.cookie);
        }
        peer.expect(Command::WRITE);
    });
    let (device, pool) = (server.connect(options(1)), pool());
    let mut queue = queue_of(&device, &pool);
    for request in [write(0, 8, false), flush(), write(8, 8, false)] {
        assert!(complete(&mut *queue, request).outcome.is_done());
    }
    let lost = complete(&mut *queue, write(16, 8, false));
    assert_eq!(lost.outcome, Outcome::Unknown);
    assert!(matches!(lost.payload, Payload::Pattern(_)), "its memory is nobody's any more");
    assert_eq!(complete(&mut *queue, flush()).outcome, NOT_CONNECTED);
    assert!(device.latched().is_some() && device.extents(LbaRange::new(Lba(0), 8)).is_err());
    assert!(device.open_queue(QueueOptions { depth: 1, pool: pool.clone() }).is_err());
    drop((queue, device));
    server.end();
}

#[test]
fn the_loss_of_one_connection_is_the_loss_of_all() {
    // The probe uses the first connection.
    let server = ScriptedServer::start(&[Nature::with(CAPABLE | MULTI); 3], |number, peer| match number {
        1 => {
            peer.expect(Command::READ);
        }
        _ => peer.serve(1),
    });
    let (device, pool) = (server.connect(options(3)), pool());
    assert_eq!(device.connections(), 3);
    let [mut first, mut second, mut third] = std::array::from_fn(|_| queue_of(&device, &pool));
    assert!(complete(&mut *first, write(0, 8, false)).outcome.is_done());
    assert_eq!(complete(&mut *second, read(&pool, 0, 8)).outcome, Outcome::Unknown);
    // The flush may have been in flight when its connection was cut.
    let outcome = complete(&mut *third, flush()).outcome;
    assert!(matches!(outcome, Outcome::Unknown | NOT_CONNECTED), "{outcome:?}");
    assert_eq!(complete(&mut *third, flush()).outcome, NOT_CONNECTED);
    drop((first, second, third, device));
    server.end();
}

#[test]
fn without_fua_a_durable_write_is_a_write_and_then_a_flush() {
    let flags = CAPABLE & !0b1000;
    let server = ScriptedServer::start(&[Nature::with(flags)], |_, peer| {
        for command in [Command::WRITE, Command::FLUSH] {
            let asked = peer.expect(command);
            assert_eq!(asked.flags, CommandFlags::default());
            peer.done(asked.cookie);
        }
        let asked = peer.expect(Command::WRITE);
        peer.done(asked.cookie);
        let asked = peer.expect(Command::FLUSH);
        peer.fail(asked.cookie, WireErrno::EIO);
        assert!(peer.request().is_none(), "a flush after a failed one is not even asked");
    });
    let (device, pool) = (server.connect(options(1)), pool());
    let mut queue = queue_of(&device, &pool);
    assert!(complete(&mut *queue, write(0, 8, true)).outcome.is_done());
    assert_eq!(complete(&mut *queue, write(0, 8, true)).outcome, Outcome::Failed(Errno::EIO));
    assert_eq!(device.latched().map(|latch| latch.errno), Some(Errno::EIO));
    assert_eq!(complete(&mut *queue, flush()).outcome, Outcome::Failed(Errno::EIO));
    drop((queue, device));
    server.end();
}

#[test]
fn a_flush_that_fails_after_its_deadline_latches_too() {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let server = ScriptedServer::start(&[Nature::with(CAPABLE)], move |_, peer| {
        let asked = peer.expect(Command::FLUSH);
        released.lock().unwrap().recv().unwrap();
        peer.fail(asked.cookie, WireErrno::ENOSPC);
        peer.serve(1);
    });
    let clock = Arc::new(RealClock::start());
    let device =
        server.connect(Options { time: Time::Real(Arc::clone(&clock) as Arc<dyn Clock>), ..options(1) });
    let pool = pool();
    let mut queue = queue_of(&device, &pool);
    let deadline = clock.now().saturating_add(Nanos::millis(5));
    let late = complete(&mut *queue, Request { deadline: Some(deadline), ..flush() });
    assert_eq!(late.outcome, Outcome::Unknown);
    release.send(()).unwrap();
    assert!(complete(&mut *queue, read(&pool, 0, 8)).outcome.is_done());
    assert_eq!(device.latched().map(|latch| latch.errno), Some(Errno::ENOSPC));
    drop((queue, device));
    server.end();
}

#[test]
fn large_requests_go_in_pieces_and_fail_if_one_of_them_does() {
    let nature = Nature { maximum: 4096, ..Nature::with(CAPABLE) };
    let server = ScriptedServer::start(&[nature], |_, peer| {
        let mut written = Vec::new();
        for _ in 0..3 {
            let (header, bytes) = peer.request().unwrap();
            assert!(header.command == Command::WRITE && bytes.len() <= 4096);
            written.extend(bytes);
            peer.done(header.cookie);
        }
        let mut expected = vec![0; 20 * 512];
        Pattern { seed: 1, lba: Lba(8), generation: 1 }.fill(512, &mut expected);
        assert!(written == expected);
        let asked: Vec<_> = (0..3).map(|_| peer.expect(Command::WRITE)).collect();
        for (number, header) in asked.iter().enumerate() {
            if number == 1 {
                peer.fail(header.cookie, WireErrno::ENOSPC);
            } else {
                peer.send(&SimpleReply { errno: WireErrno::NONE, cookie: header.cookie }.encode());
            }
        }
        peer.serve(4);
    });
    let (device, pool) = (server.connect(options(1)), pool());
    let mut queue = queue_of(&device, &pool);
    assert_eq!(device.info().transfer_max, Bytes(4096));
    assert!(complete(&mut *queue, write(8, 20, false)).outcome.is_done());
    assert_eq!(complete(&mut *queue, write(8, 20, false)).outcome, Outcome::Failed(Errno::ENOSPC));
    let joined = complete(&mut *queue, read(&pool, 0, 100));
    assert!(matches!(&joined.payload, Payload::Into(bytes) if bytes.iter().all(|byte| *byte == 4)));
    drop((queue, device));
    server.end();
}

#[test]
fn a_server_that_knows_no_options_is_spoken_to_the_old_way() {
    let nature = Nature { is_fixed: false, ..Nature::with(0b101) };
    let server = ScriptedServer::start(&[nature], |_, peer| {
        let asked = peer.expect(Command::READ);
        peer.send(&SimpleReply { errno: WireErrno::NONE, cookie: asked.cookie }.encode());
        peer.send(&vec![5; asked.length as usize]);
        assert!(peer.request().is_none());
    });
    let (device, pool) = (server.connect(options(4)), pool());
    assert_eq!(device.connections(), 1, "it does not say that several are safe");
    let mut queue = queue_of(&device, &pool);
    let done = complete(&mut *queue, read(&pool, 0, 100));
    assert!(matches!(&done.payload, Payload::Into(bytes) if bytes.iter().all(|byte| *byte == 5)));
    assert_eq!(
        complete(&mut *queue, Request::discard(Tag(1), LbaRange::new(Lba(0), 1))).outcome,
        Outcome::Failed(Errno::EOPNOTSUPP)
    );
    drop((queue, device));
    server.end();
}

#[test]
fn a_queue_dropped_under_a_stalled_server_frees_its_buffers() {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let server = ScriptedServer::start(&[Nature::with(CAPABLE)], move |_, peer| {
        released.lock().unwrap().recv().unwrap();
        peer.serve(8);
    });
    let (device, pool) = (server.connect(options(1)), pool());
    let mut queue = queue_of(&device, &pool);
    for number in 0..8 {
        let range = LbaRange::new(Lba(0), 512);
        let buffer = pool.take(Bytes::kib(256)).unwrap();
        let write = Request::write(Tag(number), range, Payload::Bytes(buffer.freeze()));
        queue.submit(write).unwrap();
    }
    queue.submit(read(&pool, 0, 8)).unwrap();
    queue.poll(Wait::NONE, &mut Vec::new()).unwrap();
    drop(queue);
    assert_eq!(pool.available(), 16);
    release.send(()).unwrap();
    let mut other = queue_of(&device, &pool);
    let done = complete(&mut *other, read(&pool, 0, 8));
    assert!(matches!(&done.payload, Payload::Into(bytes) if bytes.iter().all(|byte| *byte == 8)));
    drop((other, device));
    server.end();
}

#[test]
fn the_descriptor_to_wait_on_tells_of_answers_deadlines_and_the_end() {
    let server = ScriptedServer::start(&[Nature::with(CAPABLE)], |_, peer| {
        let asked = peer.expect(Command::READ);
        peer.data(asked.cookie, asked.offset, &[7; 4096], true);
        // The next request is never answered; the one after it ends the connection.
        peer.expect(Command::READ);
        peer.expect(Command::READ);
    });
    let clock = Arc::new(RealClock::start());
    let device =
        server.connect(Options { time: Time::Real(Arc::clone(&clock) as Arc<dyn Clock>), ..options(1) });
    let pool = pool();
    let mut queue = queue_of(&device, &pool);
    let until = |milliseconds| Some(clock.now().saturating_add(Nanos::millis(milliseconds)));
    let requests = [
        (read(&pool, 0, 8), Outcome::Done),
        (Request { deadline: until(20), ..read(&pool, 0, 8) }, Outcome::Unknown),
        (read(&pool, 0, 8), Outcome::Unknown),
    ];
    for (number, (request, outcome)) in requests.into_iter().enumerate() {
        let mut completions = Vec::new();
        queue.submit(request).unwrap();
        queue.poll(Wait::NONE, &mut completions).unwrap();
        while completions.is_empty() {
            let mut fds = [PollFd::from_borrowed_fd(queue.wake_fd().unwrap(), PollFlags::IN)];
            let patience = Timespec { tv_sec: 600, tv_nsec: 0 };
            assert_eq!(poll(&mut fds, Some(&patience)).unwrap(), 1, "request {number} is never told of");
            queue.poll(Wait::NONE, &mut completions).unwrap();
        }
        assert_eq!(completions[0].outcome, outcome, "request {number}");
    }
    drop((queue, device));
    server.end();
}

#[test]
fn a_server_that_takes_nobody_or_says_nothing_is_told_of_as_silent() {
    let directory = tempfile::tempdir().unwrap();
    for backlog in [0, 8] {
        let socket = directory.path().join(backlog.to_string());
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&socket).unwrap()).unwrap();
        listen(&listener, backlog).unwrap();
        // Without a backlog a single client fills the socket, and the next waits to be connected.
        let first = UnixStream::connect(&socket).unwrap();
        let uri: Uri = format!("nbd+unix:///?socket={}", socket.display()).parse().unwrap();
        let error = NbdDevice::connect(&uri, Options { connect_timeout: Nanos::secs(1), ..options(1) });
        let said = error.err().unwrap();
        assert!(matches!(said, ConnectError::Silent { seconds: 1, .. }), "backlog {backlog}: {said:?}");
        assert!(said.to_string().contains("within 1 s"), "{said}");
        drop((first, listener));
    }
}
