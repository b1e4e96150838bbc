//! Many connections, the limit on them, and starting and stopping.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use plumb_block::Bytes;
use plumb_serve::nbd::server::{Listener, OWNER_ONLY, Options, PATH_MAX_BYTES, ServeError, Server};
use plumb_serve::nbd::wire::{Command, CommandFlags, GoRequest, OptionCode, OptionReplyKind, WireErrno};

use crate::nbd_server::client::Client;
use crate::nbd_server::running::{Running, export, memory};

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
    let running = Running::of_memory(Bytes::mib(1));
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
    let running = Running::start(vec![export("disk", memory(Bytes::mib(1)))], options);
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
    let mut running = Running::of_memory(Bytes::mib(1));
    assert_eq!(std::fs::metadata(&running.socket).unwrap().permissions().mode() & 0o777, OWNER_ONLY);
    let mut client = Client::open(&running.socket, "disk", false).unwrap();
    let asked = client.send(Command::WRITE, NONE, (0, 512), &[1; 512]).unwrap();
    running.stop();
    assert_eq!(client.reply().unwrap().cookie, asked);
    assert!(client.reply().is_err(), "then the connection ends");
    assert!(!running.socket.exists());
}

fn is_taken(path: &Path) -> bool {
    matches!(Listener::unix(path, OWNER_ONLY), Err(ServeError::Taken { .. }))
}

#[test]
fn the_socket_of_a_dead_server_is_replaced_that_of_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a dead server leaves its socket");
    let alive = Listener::unix(&path, OWNER_ONLY).unwrap();
    assert!(is_taken(&path));
    drop(alive);
    assert!(!path.exists());
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(Listener::unix(&path, OWNER_ONLY), Err(ServeError::NotASocket { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left in the directory");
}

#[test]
fn a_replaced_socket_is_not_taken_away_by_the_one_that_lost_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let old = Listener::unix(&path, OWNER_ONLY).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _new = Listener::unix(&path, OWNER_ONLY).unwrap();
    drop(old);
    assert!(UnixStream::connect(&path).is_ok());
}

#[test]
fn beyond_this_machine_only_with_tls() {
    let server = Server::new(vec![export("disk", memory(Bytes::mib(1)))], Options::default()).unwrap();
    let listener = Listener::tcp("0.0.0.0:0".parse().unwrap()).unwrap();
    let refused = server.serve(vec![listener]).unwrap_err();
    assert!(matches!(refused, ServeError::InTheClear { .. }), "{refused}");
}

#[test]
fn exports_need_names_of_their_own() {
    let twice = vec![export("disk", memory(Bytes::mib(1))), export("disk", memory(Bytes::mib(1)))];
    assert!(Server::new(twice, Options::default()).is_err());
    assert!(Server::new(Vec::new(), Options::default()).is_err());
}

#[test]
fn several_connections_see_one_device() {
    let running = Running::of_memory(Bytes::mib(4));
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
    // So deep that the name under which it is made would be too long, and its own is just not.
    let deep = directory.path().join("d".repeat(room - 1));
    std::fs::create_dir(&deep).unwrap();
    let listener = Listener::unix(&deep.join("s"), OWNER_ONLY).unwrap();
    UnixStream::connect(deep.join("s")).unwrap();
    drop(listener);
    assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 0, "nothing is left");
    let refused = Listener::unix(&deep.join("ss"), OWNER_ONLY).unwrap_err();
    assert!(matches!(refused, ServeError::TooLong { bytes: 108, .. }), "{refused}");
}
