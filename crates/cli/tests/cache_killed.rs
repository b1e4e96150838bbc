//! Test that kills the server of a cache (SIGKILL) repeatedly among overlapping requests of several clients:
//! every acknowledged write is there when the cache is served again, even without a flush, because the
//! devices keep running.

use std::fs::File;
use std::process::{Child, Stdio};

use plumb_block::{Bytes, Completion, Lba, LbaRange, Payload, Pool, PoolShape, Request, Tag, Wait};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::cache_support::Place;
use crate::drive_killed::{BLOCK, Clients, DEPTH, Ending, GROUP, GROUPS, Judge, Load};

/// Number of servers that are killed.
const LIVES: u64 = 10;
/// Variable for another number, such as 300.
const LIVES_VARIABLE: &str = "PLUMB_CACHE_LIVES";

/// Reads one block through the first client.
fn read(clients: &mut Clients, pool: &Pool, lba: u64, into: &mut [u8]) -> Result<(), String> {
    let buffer = pool.take(Bytes(BLOCK)).ok_or("no buffer is left")?;
    let request = Request::read_into(Tag(lba), LbaRange::new(Lba(lba), 1), buffer);
    let queue = &mut clients.queues[0];
    queue.submit(request).map_err(|_| "the queue is full")?;
    let mut completions = Vec::new();
    queue.poll(Wait::ONE, &mut completions).map_err(|error| error.to_string())?;
    match completions.pop() {
        Some(Completion { payload: Payload::Into(bytes), outcome, .. }) if outcome.is_done() => {
            into.copy_from_slice(&bytes);
            Ok(())
        }
        other => Err(format!("block {lba} cannot be read: {other:?}")),
    }
}

/// Event during the requests of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// The backing file is extended, and the cache ordered to grow.
    Growth,
}

impl Beside {
    /// Starts the event. It may or may not be complete when the server is killed.
    fn begin(self, place: &Place) -> Option<Child> {
        if self == Self::Nothing {
            return None;
        }
        let file = File::options().write(true).open(place.path("backing")).unwrap();
        file.set_len(file.metadata().unwrap().len() + (1 << 20)).unwrap();
        let mut grow = place.plumb();
        grow.args(["cache", "grow", &place.name, "--backing"]).stdout(Stdio::null()).stderr(Stdio::null());
        Some(grow.spawn().unwrap())
    }
}

fn servers_live_and_end(lives: u64, seed: u64, more: &[&str], beside: Beside) {
    let place = Place::new(16 << 20);
    place.create(more);
    let shape = PoolShape { buffer: Bytes::kib(32), count: DEPTH * 4, alignment: Bytes(4096) };
    let pool = Pool::new(shape).unwrap();
    let mut load = Load { seed, next_tag: 0 };
    let mut held = vec![0; (GROUPS * GROUP) as usize];
    for life in 0..lives {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ life << 32);
        let ending = Ending::draw(&mut chance);
        let server = place.serve();
        let mut clients = Clients::connect(&server.uri(), &pool);
        let mut judge = Judge::new(&held, false);
        let order = beside.begin(&place);
        let result = load.run(&mut chance, ending, &mut clients, &mut judge);
        server.kill();
        // The order may have failed with its server; only its end matters.
        if let Some(mut order) = order {
            order.wait().unwrap();
        }
        let result = result.and_then(|()| clients.poll(&mut judge));
        drop(clients);
        let again = place.serve();
        let mut clients = Clients::connect(&again.uri(), &pool);
        let judged =
            result.and_then(|()| judge.judge(|lba, into| read(&mut clients, &pool, lba, into), seed));
        let answered = judge.answered;
        held = judged.unwrap_or_else(|error| {
            panic!("seed {seed}, {more:?}, server {life}, {ending:?} after {answered} answers: {error}")
        });
        drop(clients);
        // Killing after recovery must be as harmless as before.
        again.kill();
    }
    place.cache(&["detach", &place.name]);
    let file = std::fs::read(place.path("backing")).unwrap();
    let judge = Judge::new(&held, false);
    let from_file = |lba: u64, into: &mut [u8]| {
        into.copy_from_slice(&file[(lba * BLOCK) as usize..][..BLOCK as usize]);
        Ok(())
    };
    judge.judge(from_file, seed).unwrap_or_else(|error| panic!("seed {seed}, {more:?}, detached: {error}"));
}

#[test]
fn what_was_answered_is_there_after_the_server_was_killed() {
    let wanted = std::env::var(LIVES_VARIABLE).ok().and_then(|lives| lives.parse().ok());
    let lives = wanted.unwrap_or(LIVES);
    servers_live_and_end(lives, 11, &[], Beside::Nothing);
    servers_live_and_end(lives / 2, 12, &["--log", "log2", "--mirror"], Beside::Nothing);
}

#[test]
fn what_was_answered_is_there_after_the_server_was_killed_while_the_backing_file_grew() {
    servers_live_and_end(LIVES, 13, &[], Beside::Growth);
}
