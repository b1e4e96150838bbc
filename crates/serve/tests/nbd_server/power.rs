//! Tests of losses of power: connected clients notice it, and later clients have lost nothing.

use std::io;
use std::sync::Arc;

use plumb_block::conformance::ModelOptions;
use plumb_block::{Op, Power};
use plumb_serve::nbd::server::Options;
use plumb_serve::nbd::wire::{Command, CommandFlags, GoRequest, OptionCode, OptionReplyKind, WireErrno};

use crate::nbd_server::client::{Client, Reply};
use crate::nbd_server::running::{RunningServer, export};
use crate::nbd_server::staged::StagedServer;

const NONE: CommandFlags = CommandFlags(0);

fn serve() -> (StagedServer, RunningServer) {
    let device = StagedServer::new(ModelOptions::small(1));
    let running = RunningServer::start(vec![export("disk", Arc::new(device.clone()))], Options::default());
    (device, running)
}

type Ask = fn(&mut Client) -> io::Result<Reply>;

#[test]
fn every_request_of_those_who_were_connected_fails_with_the_power_on_again() {
    let asks: [Ask; 4] = [
        |client| client.ask(Command::FLUSH, NONE, (0, 0), &[]),
        |client| client.ask(Command::WRITE, CommandFlags::FUA, (0, 512), &[2; 512]),
        |client| client.ask(Command::READ, NONE, (0, 512), &[]),
        |client| client.ask(Command::TRIM, NONE, (0, 512), &[]),
    ];
    for ask in asks {
        for has_written in [true, false] {
            let (device, running) = serve();
            let mut client = Client::open(&running.socket, "disk", true).unwrap();
            if has_written {
                assert_eq!(client.write(0, &[1; 512], NONE).unwrap(), WireErrno::NONE);
            }
            let before = device.seen().len();
            device.set_power(Power { is_on: true, losses: 1 });
            assert!(ask(&mut client).is_err(), "has written: {has_written}");
            assert_eq!(device.seen().len(), before, "nothing reaches the device");
            let mut new = Client::open(&running.socket, "disk", true).unwrap();
            assert_eq!(new.flush().unwrap(), WireErrno::NONE);
        }
    }
}

#[test]
fn what_was_in_flight_at_a_loss_of_power_is_unanswered_though_the_device_has_done_it() {
    let (device, running) = serve();
    let mut client = Client::open(&running.socket, "disk", false).unwrap();
    device.hold(|op, _| op == Op::Flush);
    client.send(Command::FLUSH, NONE, (0, 0), &[]).unwrap();
    while !device.seen().iter().any(|(op, _)| *op == Op::Flush) {
        std::thread::yield_now();
    }
    device.set_power(Power { is_on: true, losses: 1 });
    device.release();
    assert!(client.reply().is_err());
}

#[test]
fn who_connects_while_the_power_is_off_is_told_so() {
    let (device, running) = serve();
    device.set_power(Power { is_on: false, losses: 1 });
    let mut client = Client::greeted(&running.socket).unwrap();
    let go = GoRequest { name: "disk".to_owned(), wants: Vec::new() }.encode();
    for code in [OptionCode::GO, OptionCode::INFO] {
        let (kind, why) = client.option(code, &go).unwrap().pop().unwrap();
        let why = String::from_utf8(why).unwrap();
        assert!(
            kind == OptionReplyKind::ERR_POLICY && why.contains("power of disk is off"),
            "{kind:?}: {why}"
        );
    }
    device.set_power(Power { is_on: true, losses: 1 });
    let replies = client.option(OptionCode::GO, &go).unwrap();
    assert_eq!(replies.last().unwrap().0, OptionReplyKind::ACK, "it is on again");
}

#[test]
fn connections_that_are_ended_end_whatever_they_do() {
    let (_device, running) = serve();
    let mut idle = Client::open(&running.socket, "disk", false).unwrap();
    let mut greeted = Client::greeted(&running.socket).unwrap();
    running.server.end_connections();
    assert!(idle.flush().is_err());
    assert!(greeted.option(OptionCode::LIST, &[]).is_err());
    assert_eq!(Client::open(&running.socket, "disk", false).unwrap().flush().unwrap(), WireErrno::NONE);
}
