//! Tests of clients that lie, stop in the middle, or send unknown messages.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plumb_block::Bytes;
use plumb_serve::nbd::server::Options;
use plumb_serve::nbd::wire::{
    ClientFlags, Command, CommandFlags, GoRequest, Info, InfoKind, MetaContextRequest, OptionCode,
    OptionReplyKind, RequestHeader, WireErrno, encode_option,
};

use crate::nbd_server::client::Client;
use crate::nbd_server::memory::memory;
use crate::nbd_server::running::{RunningServer, export};

const NONE: CommandFlags = CommandFlags(0);

#[test]
fn options_that_nobody_knows_are_answered_and_the_handshake_goes_on() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    let mut client = Client::greeted(&running.socket).unwrap();
    for code in [4, 11, 12, 4711, u32::MAX] {
        let replies = client.option(OptionCode(code), &[1, 2, 3]).unwrap();
        assert_eq!(replies[0].0, OptionReplyKind::ERR_UNSUP, "option {code}");
    }
    let replies = client.option(OptionCode::LIST, &[]).unwrap();
    assert_eq!(replies.len(), 2, "one export and the end of the list");
}

#[test]
fn options_that_are_wrong_get_the_errors_of_the_protocol() {
    let exports = vec![export("a", memory(Bytes::mib(1))), export("b", memory(Bytes::mib(1)))];
    let running = RunningServer::start(exports, Options::default());
    let mut client = Client::greeted(&running.socket).unwrap();
    let mut answer = |code, data: &[u8]| client.option(code, data).unwrap().pop().unwrap().0;
    let go = |name: &str| GoRequest { name: name.to_owned(), wants: Vec::new() }.encode();
    let contexts = MetaContextRequest { export: "a".to_owned(), queries: Vec::new() }.encode();
    assert_eq!(answer(OptionCode::GO, &go("c")), OptionReplyKind::ERR_UNKNOWN);
    assert_eq!(
        answer(OptionCode::GO, &go("")),
        OptionReplyKind::ERR_UNKNOWN,
        "there are two: which is the default?"
    );
    assert_eq!(answer(OptionCode::GO, &[0, 0, 0, 200, 1]), OptionReplyKind::ERR_INVALID);
    assert_eq!(answer(OptionCode::LIST, &[1]), OptionReplyKind::ERR_INVALID);
    assert_eq!(answer(OptionCode::STARTTLS, &[]), OptionReplyKind::ERR_POLICY);
    assert_eq!(
        answer(OptionCode::LIST_META_CONTEXT, &contexts),
        OptionReplyKind::ERR_INVALID,
        "not structured"
    );
    assert_eq!(answer(OptionCode::LIST, &vec![0; 1 << 20]), OptionReplyKind::ERR_TOO_BIG);
    assert_eq!(answer(OptionCode::ABORT, &[]), OptionReplyKind::ACK);
}

#[test]
fn an_option_of_four_gibibytes_is_refused_at_once() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    for code in [OptionCode::GO, OptionCode::LIST, OptionCode(4711), OptionCode::EXPORT_NAME] {
        let mut client = Client::greeted(&running.socket).unwrap();
        let mut header = encode_option(code, &[])[..12].to_vec();
        header.extend(u32::MAX.to_be_bytes());
        client.stream.write_all(&header).unwrap();
        let mut answer = Vec::new();
        client.stream.read_to_end(&mut answer).unwrap();
        let kind =
            answer.get(12..16).map(|kind| OptionReplyKind(u32::from_be_bytes(kind.try_into().unwrap())));
        let expected = (code != OptionCode::EXPORT_NAME).then_some(OptionReplyKind::ERR_TOO_BIG);
        assert_eq!(kind, expected, "{code:?}: and then the end");
    }
}

#[test]
fn an_export_says_what_it_is() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    let mut client = Client::greeted(&running.socket).unwrap();
    let wants = vec![InfoKind::NAME, InfoKind::DESCRIPTION, InfoKind::BLOCK_SIZE];
    let replies =
        client.option(OptionCode::INFO, &GoRequest { name: String::new(), wants }.encode()).unwrap();
    let infos: Vec<Info> = replies
        .iter()
        .filter(|(kind, _)| *kind == OptionReplyKind::INFO)
        .map(|(_, data)| Info::decode(data).unwrap())
        .collect();
    assert!(infos.contains(&Info::Name("disk".to_owned())), "{infos:?}");
    assert!(infos.contains(&Info::Description("a test".to_owned())), "{infos:?}");
    assert!(
        infos.contains(&Info::BlockSize { minimum: 512, preferred: 4096, maximum: 32 << 20 }),
        "{infos:?}"
    );
    assert!(infos.iter().any(|info| matches!(info, Info::Export { size: 1_048_576, .. })), "{infos:?}");
}

#[test]
fn the_old_way_to_choose_an_export_works() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    let mut client = Client::greeted(&running.socket).unwrap();
    client.stream.write_all(&encode_option(OptionCode::EXPORT_NAME, b"disk")).unwrap();
    let mut answer = [0; 10];
    client.stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..8], (1_u64 << 20).to_be_bytes());
    assert_eq!(client.read(0, 512).unwrap(), [0; 512]);
    let mut client = Client::greeted(&running.socket).unwrap();
    client.stream.write_all(&encode_option(OptionCode::EXPORT_NAME, b"no such")).unwrap();
    assert_eq!(client.stream.read(&mut answer).unwrap(), 0, "no such export: the connection ends");
}

#[test]
fn hostile_requests_get_errors_and_the_connection_goes_on() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    for is_rich in [false, true] {
        let mut client = Client::open(&running.socket, "disk", is_rich).unwrap();
        let mut errno =
            |command, flags, offset, length| client.ask(command, flags, (offset, length), &[]).unwrap().errno;
        assert_eq!(errno(Command::READ, NONE, u64::MAX - 511, 512), WireErrno::EINVAL);
        assert_eq!(errno(Command::READ, NONE, u64::MAX, u32::MAX), WireErrno::EINVAL);
        assert_eq!(errno(Command::READ, NONE, 0, u32::MAX), WireErrno::EINVAL);
        assert_eq!(errno(Command::READ, NONE, 0, 0), WireErrno::EINVAL);
        assert_eq!(errno(Command::READ, NONE, 1, 512), WireErrno::EINVAL);
        assert_eq!(errno(Command::READ, CommandFlags(1 << 15), 0, 512), WireErrno::EINVAL);
        assert_eq!(errno(Command::TRIM, NONE, 0, u32::MAX - 511), WireErrno::EINVAL);
        assert_eq!(errno(Command::WRITE_ZEROES, NONE, 0, u32::MAX - 511), WireErrno::ENOSPC);
        assert_eq!(errno(Command::FLUSH, NONE, 512, 512), WireErrno::EINVAL);
        assert_eq!(errno(Command::CACHE, NONE, 0, 512), WireErrno::EINVAL);
        assert_eq!(errno(Command(999), NONE, 0, 512), WireErrno::EINVAL);
        // FUA may be on every command.
        assert_eq!(errno(Command::READ, CommandFlags::FUA, 0, 512), WireErrno::NONE);
        assert_eq!(errno(Command::FLUSH, CommandFlags::FUA, 0, 0), WireErrno::NONE);
    }
}

#[test]
fn large_requests_come_back_whole() {
    let running = RunningServer::of_memory(Bytes::mib(64));
    let mut client = Client::open(&running.socket, "disk", true).unwrap();
    for length in [32 << 10, 33 << 10, 1 << 20, (4 << 20) + 512, 32 << 20] {
        let bytes: Vec<u8> =
            (0..length).map(|index: usize| (index / 512 + index % 251 + length / 512) as u8).collect();
        assert_eq!(client.write(512, &bytes, NONE).unwrap(), WireErrno::NONE);
        assert!(client.read(512, length as u32).unwrap() == bytes, "{length} bytes");
    }
}

#[test]
fn nonsense_ends_the_connection() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    let mut client = Client::open(&running.socket, "disk", false).unwrap();
    client.stream.write_all(&[0x55; RequestHeader::BYTES]).unwrap();
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0);
    let mut stream = UnixStream::connect(&running.socket).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut all = Vec::new();
    // A reset is an end, too: the server closed with unread bytes.
    match stream.read_to_end(&mut all) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn what_was_asked_is_answered_though_the_client_stops_sending() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    for is_polite in [false, true] {
        let mut client = Client::open(&running.socket, "disk", false).unwrap();
        let cookies: Vec<_> =
            (0..20).map(|block| client.send(Command::READ, NONE, (block * 512, 512), &[]).unwrap()).collect();
        if is_polite {
            client.send(Command::DISC, NONE, (0, 0), &[]).unwrap();
        }
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answered: Vec<_> = cookies.iter().map(|_| client.reply().unwrap().cookie).collect();
        assert_eq!(answered, cookies);
        assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0, "then the connection ends");
    }
}

#[test]
fn a_client_that_vanishes_takes_nobody_with_it() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    for cut in [0, 1, 10, 27, 28, 100, 539] {
        let mut client = Client::open(&running.socket, "disk", false).unwrap();
        let header = RequestHeader {
            flags: NONE,
            command: Command::WRITE,
            cookie: plumb_serve::nbd::wire::Cookie(1),
            offset: 0,
            length: 512,
        };
        let bytes = [header.encode().as_slice(), &[7; 512]].concat();
        client.stream.write_all(&bytes[..cut]).unwrap();
        drop(client);
    }
    assert_eq!(Client::open(&running.socket, "disk", false).unwrap().read(0, 512).unwrap(), [0; 512]);
}

#[test]
fn a_handshake_that_stalls_is_ended() {
    let mut options = Options::default();
    // A client that does shake hands has to be done within it.
    options.handshake_timeout = Duration::from_secs(5);
    let running = RunningServer::start(vec![export("disk", memory(Bytes::mib(1)))], options);
    let mut client = Client::open(&running.socket, "disk", false).unwrap();
    let mut silent = UnixStream::connect(&running.socket).unwrap();
    let mut halfway = Client::greeted(&running.socket).unwrap();
    halfway.stream.write_all(&encode_option(OptionCode::LIST, &[])[..5]).unwrap();
    let mut greeting = Vec::new();
    silent.read_to_end(&mut greeting).unwrap();
    assert_eq!(greeting.len(), 18, "the greeting and then the end");
    assert_eq!(halfway.stream.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(client.read(0, 512).unwrap(), [0; 512], "whoever has shaken hands may be idle");
}

#[test]
fn flags_that_nobody_knows_end_the_handshake() {
    let running = RunningServer::of_memory(Bytes::mib(1));
    let mut stream = UnixStream::connect(&running.socket).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&ClientFlags(0x8000_0001).encode()).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}
