//! Tests that whatever a client sends, the server neither panics nor hangs nor grows, and that its answers
//! are well-formed.
//!
//! Sessions are made from a grammar of the protocol, then most of them are damaged. They run against the real
//! state machines over a transport in memory that delivers and takes bytes in pieces of any size. The answers
//! are parsed; in sessions that were not damaged every request must be answered once.
//!
//! `PLUMB_SOAK=1` runs millions of frames.

mod answers;
mod grammar;
mod pipe;

#[path = "../../../tests/nbd_server/memory.rs"]
mod memory;

use std::sync::Arc;
use std::time::Instant;

use plumb_block::{Bytes, Nanos, VirtualClock, Wait};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{Connection, Export, Exports, Options, TransmissionFault};
use crate::nbd::Turn;
use grammar::Session;
use memory::{ReadOnly, memory};
use pipe::Pipe;

const SEED: u64 = 0x6e62_6400;

fn exports() -> Exports {
    let export = |name: &str, device| Export { name: name.to_owned(), description: "x".repeat(40), device };
    let mut options = Options { depth: 8, memory_max: Bytes::mib(256), ..Options::default() };
    options.clock = Arc::new(VirtualClock::new());
    let (disk, fixed) = (memory(Bytes::mib(1)), Arc::new(ReadOnly(memory(Bytes::mib(1)))));
    Exports::new(vec![export("disk", disk), export("fixed", fixed)], options).unwrap()
}

/// Serves a connection over a pipe, with a stopped clock, until it ends or is stuck.
fn serve(pipe: &mut Pipe, mut connection: Connection) -> Result<Turn, TransmissionFault> {
    loop {
        match connection.advance(pipe, Nanos::ZERO, Wait::NONE)? {
            Turn::Moved(_) => {}
            turn @ Turn::Idle(_) if pipe.is_stuck() => return Ok(turn),
            Turn::Idle(_) => {}
            Turn::Over => return Ok(Turn::Over),
        }
    }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Runs sessions until they had `frames` frames. Returns the number of bytes by which the process grew after
/// the first tenth.
fn run(frames: u64, seed: u64) -> i64 {
    let exports = exports();
    let (mut done, mut session, mut settled) = (0, 0, None);
    let started = Instant::now();
    while done < frames {
        session += 1;
        let case = seed.wrapping_mul(1_000_003).wrapping_add(session);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(case);
        let Session { bytes, frames, is_intact, expected } = Session::random(&mut random);
        done += frames;
        let mut pipe = Pipe::new(bytes, random);
        let outcome = serve(&mut pipe, exports.connect());
        let is_stuck = matches!(outcome, Ok(Turn::Idle(_)));
        assert!(!is_stuck, "session {case}: the server neither reads, writes nor ends");
        if let Err(wrong) = answers::check(pipe.sent(), is_intact.then_some(&expected)) {
            panic!("session {case} (intact: {is_intact}, ended {outcome:?}): {wrong}");
        }
        if settled.is_none() && done > frames_until_settled(frames) {
            settled = Some(resident_bytes());
        }
    }
    println!("{done} frames in {session} sessions, {:.1} s, seed {seed}", started.elapsed().as_secs_f64());
    resident_bytes() as i64 - settled.unwrap_or_default() as i64
}

const fn frames_until_settled(frames: u64) -> u64 {
    frames / 10
}

/// Environment variable of a process that runs only this test, since memory is counted by process.
const ALONE: &str = "PLUMB_FUZZ_ALONE";

#[test]
fn no_bytes_make_the_server_panic_hang_or_grow() {
    if std::env::var_os(ALONE).is_none() {
        let name = "nbd::server::tests::no_bytes_make_the_server_panic_hang_or_grow";
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ALONE, "1")
            .status()
            .unwrap();
        assert!(alone.success(), "alone in a process: {alone}");
        return;
    }
    let frames = if std::env::var_os("PLUMB_SOAK").is_some() { 4_000_000 } else { 250_000 };
    let grown = run(frames, SEED);
    assert!(grown < 64 << 20, "the process grew by {grown} bytes");
}
