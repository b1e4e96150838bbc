//! Tests of many connections, of the limits on them and on their memory, of lost clients, and of starting and
//! stopping.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use plumb_block::conformance::ModelOptions;
use plumb_block::{Bytes, Errno, Op, Outcome};
use plumb_serve::nbd::server::{Listener, Options, PATH_MAX_BYTES, ServeError, Server};
use plumb_serve::nbd::wire::{Command, CommandFlags, GoRequest, OptionCode, OptionReplyKind, WireErrno};

use crate::nbd_server::client::Client;
use crate::nbd_server::memory::memory;
use crate::nbd_server::running::{RunningServer, export};
use crate::nbd_server::staged::StagedServer;

const NONE: CommandFlags = CommandFlags(0);

fn files_max() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap_or(u64::MAX)
}

#[test]
fn a_thousand_idle_connections_are_held() {
    if files_max() < 2_300 {
        return plumb_testkit::skip("needs 2,300 open files: raise `ulimit -n`");
    }
    let running = RunningServer::of_memory(Bytes::mib(1));
    let idle: Vec<_> = (0..1000).map(|_| Client::open(&running.socket, "disk", true).unwrap()).collect();
    assert_eq!(running.server.connections(), 1000);
    let mut busy = Client::open(&running.socket, "disk", true).unwrap();
    assert_eq!(busy.write(0, &[3; 4096], NONE).unwrap(), WireErrno::NONE);
    for (index, mut client) in idle.into_iter().enumerate() {
        assert_eq!(client.read(0, 512).unwrap(), [3; 512], "connection {index}");
        if index % 2 == 0 {
            client.send(Command::DISC, NONE, (0, 0), &[]).unwrap();
        }
    }
}

#[test]
fn one_connection_too_many_is_told_so() {
    let mut options = Options::default();
    options.connections_max = 2;
    let running = RunningServer::start(vec![export("disk", memory(Bytes::mib(1)))], options);
    let mut held: Vec<_> = (0..2).map(|_| Client::open(&running.socket, "disk", false).unwrap()).collect();
    let mut refused = Client::greeted(&running.socket).unwrap();
    let go = GoRequest { name: "disk".to_owned(), wants: Vec::new() };
    let (kind, why) = refused.option(OptionCode::GO, &go.encode()).unwrap().pop().unwrap();
    assert_eq!(kind, OptionReplyKind::ERR_POLICY);
    assert!(String::from_utf8(why).unwrap().contains("2 connections"));
    assert_eq!(held[1].read(0, 512).unwrap(), [0; 512], "the others go on");
}

#[test]
fn a_stop_answers_what_was_asked_and_takes_the_socket_away() {
    let mut running = RunningServer::of_memory(Bytes::mib(1));
    assert_eq!(std::fs::metadata(&running.socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = Client::open(&running.socket, "disk", false).unwrap();
    let asked = client.send(Command::WRITE, NONE, (0, 512), &[1; 512]).unwrap();
    running.stop();
    assert_eq!(client.reply().unwrap().cookie, asked);
    assert!(client.reply().is_err(), "then the connection ends");
    assert!(!running.socket.exists());
}

/// Returns the reason of a refusal; an empty string if it failed for another reason, or did not fail.
fn refusal<T>(outcome: Result<T, ServeError>) -> String {
    match outcome {
        Err(ServeError::Refused(why)) => why,
        _ => String::new(),
    }
}

fn is_taken(path: &Path) -> bool {
    refusal(Listener::unix(path)).contains("another server listens there")
}

#[test]
fn the_socket_of_a_dead_server_is_replaced_that_of_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a dead server leaves its socket");
    let alive = Listener::unix(&path).unwrap();
    assert!(is_taken(&path));
    drop(alive);
    assert!(!path.exists());
    std::fs::write(&path, "precious").unwrap();
    assert!(refusal(Listener::unix(&path)).contains("not a socket"));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left in the directory");
}

#[test]
fn a_replaced_socket_is_not_taken_away_by_the_one_that_lost_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let old = Listener::unix(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _new = Listener::unix(&path).unwrap();
    drop(old);
    assert!(UnixStream::connect(&path).is_ok());
}

#[test]
fn beyond_this_machine_only_with_tls() {
    let server = Server::new(vec![export("disk", memory(Bytes::mib(1)))], Options::default()).unwrap();
    let listener = Listener::tcp("0.0.0.0:0".parse().unwrap()).unwrap();
    let refused = refusal(server.serve(vec![listener]));
    assert!(refused.contains("without TLS"), "{refused}");
}

#[test]
fn exports_need_names_of_their_own() {
    let twice = vec![export("disk", memory(Bytes::mib(1))), export("disk", memory(Bytes::mib(1)))];
    assert!(Server::new(twice, Options::default()).is_err());
    assert!(Server::new(Vec::new(), Options::default()).is_err());
}

#[test]
fn several_connections_see_one_device() {
    let running = RunningServer::of_memory(Bytes::mib(4));
    let threads: Vec<_> = (0..4_u64)
        .map(|mine| {
            let socket = running.socket.clone();
            std::thread::spawn(move || {
                let mut client = Client::open(&socket, "disk", mine % 2 == 0).unwrap();
                for block in 0..200 {
                    let offset = (block * 4 + mine) * 512;
                    assert_eq!(client.write(offset, &[mine as u8 + 1; 512], NONE).unwrap(), WireErrno::NONE);
                    assert_eq!(client.read(offset, 512).unwrap(), [mine as u8 + 1; 512]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let all = Client::open(&running.socket, "disk", false).unwrap().read(0, 800 * 512).unwrap();
    for (block, bytes) in all.chunks(512).enumerate() {
        assert_eq!(bytes, [block as u8 % 4 + 1; 512], "block {block}");
    }
}

#[test]
fn a_socket_is_made_where_clients_can_name_it_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let room = PATH_MAX_BYTES - directory.path().as_os_str().len() - 2;
    // The directory is so deep that the temporary name of the socket would be too long, but its final name is
    // not.
    let deep = directory.path().join("d".repeat(room - 1));
    std::fs::create_dir(&deep).unwrap();
    let listener = Listener::unix(&deep.join("s")).unwrap();
    UnixStream::connect(deep.join("s")).unwrap();
    drop(listener);
    assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 0, "nothing is left");
    let refused = refusal(Listener::unix(&deep.join("ss")));
    assert!(refused.contains("this one has 108"), "{refused}");
}

#[test]
fn clients_that_read_nothing_keep_nobody_from_large_reads() {
    const LARGEST: u32 = 32 << 20;
    // Enough memory for the larger buffers of some connections, and of none.
    for memory_max in [Bytes::mib(64), Bytes(0)] {
        let mut options = Options::default();
        options.memory_max = memory_max;
        let running = RunningServer::start(vec![export("disk", memory(Bytes::mib(64)))], options);
        let mut writer = Client::open(&running.socket, "disk", false).unwrap();
        let bytes: Vec<u8> = (0..LARGEST).map(|index| (index / 512 + index % 251) as u8).collect();
        assert_eq!(writer.write(0, &bytes, NONE).unwrap(), WireErrno::NONE);
        let silent: Vec<_> = (0..20)
            .map(|number| {
                let mut client = Client::open(&running.socket, "disk", number % 2 == 0).unwrap();
                for _ in 0..3 {
                    client.send(Command::READ, NONE, (0, LARGEST), &[]).unwrap();
                }
                client
            })
            .collect();
        for (is_rich, flags) in [(false, NONE), (true, NONE), (true, CommandFlags::DF)] {
            let mut client = Client::open(&running.socket, "disk", is_rich).unwrap();
            // A small request before and after the large one, which must not get between its bytes.
            for (offset, length) in [(512, 512), (0, LARGEST), (1024, 4096)] {
                client.send(Command::READ, flags, (offset, length), &[]).unwrap();
            }
            let mut replies: Vec<_> = (0..3).map(|_| client.reply().unwrap()).collect();
            replies.sort_by_key(|reply| reply.cookie);
            let read: Vec<&[u8]> = replies.iter().map(|reply| &*reply.bytes).collect();
            assert!(
                read == [&bytes[512..1024], &bytes[..], &bytes[1024..1024 + 4096]],
                "{memory_max}, {is_rich}, {flags:?}: {:?}",
                replies.iter().map(|reply| (reply.errno, reply.bytes.len())).collect::<Vec<_>>()
            );
        }
        drop(silent);
    }
}

#[test]
fn a_failure_in_the_middle_of_a_large_read_is_told_or_ends_the_connection() {
    for (is_rich, flags) in [(false, NONE), (true, NONE), (true, CommandFlags::DF)] {
        let device = StagedServer::new(ModelOptions { blocks: 2048, ..ModelOptions::small(1) });
        let mut options = Options::default();
        // Pieces of 4 KiB, the largest transfer of the model: more than may wait at once.
        options.memory_max = Bytes(0);
        let running =
            RunningServer::start(vec![export("disk", std::sync::Arc::new(device.clone()))], options);
        let mut client = Client::open(&running.socket, "disk", is_rich).unwrap();
        let middle = |op, range: plumb_block::LbaRange| op == Op::Read && range.lba.0 >= 1024;
        device.end_next(Outcome::Failed(Errno::EIO), middle);
        let reply = client.ask(Command::READ, flags, (0, 1 << 20), &[]);
        if is_rich && flags == NONE {
            assert_eq!(reply.unwrap().errno, WireErrno::EIO);
            assert_eq!(client.read(0, 512).unwrap(), [0; 512], "the connection goes on");
        } else {
            assert!(reply.is_err(), "{reply:?}");
        }
    }
}

#[test]
fn a_client_that_died_with_a_request_that_is_never_answered_is_gone() {
    let device = StagedServer::new(ModelOptions::small(1));
    device.hold(|_, _| true);
    let running =
        RunningServer::start(vec![export("disk", std::sync::Arc::new(device.clone()))], Options::default());
    let mut client = Client::open(&running.socket, "disk", false).unwrap();
    // More requests than there is memory for, so that the server stops receiving.
    for _ in 0..200 {
        client.send(Command::WRITE, NONE, (0, 512), &[1; 512]).unwrap();
    }
    while device.seen().len() < 64 {
        std::thread::yield_now();
    }
    assert_eq!(running.server.connections(), 1);
    drop(client);
    // A program that another test is starting may still have the socket of the client.
    while running.server.connections() > 0 {
        std::thread::yield_now();
    }
    device.release();
}
