//! Tests of replies of honest and of mutated servers.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::nbd::wire::{
    BlockDescriptor, BlockStatus, CommandFlags, ErrorChunk, WireErrno, encode_error_chunk,
};

const LENGTH: u32 = 2048;

impl Replies {
    /// Takes bytes as if they were received. Returns the number for which there was room.
    fn feed(&mut self, bytes: &[u8]) -> usize {
        let space = self.input.space(usize::MAX);
        let count = space.len().min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        self.input.received(count);
        count
    }
}

/// Buffers of some reads: `LENGTH` bytes each, job `n` at `n * LENGTH` of the export.
struct Memory(Vec<u8>);

impl Landing for Memory {
    fn memory(&mut self, job: u32, offset: u64, length: usize) -> Option<&mut [u8]> {
        let start = offset as usize;
        assert!(start / LENGTH as usize == job as usize, "memory of another job");
        assert!(start + length <= (job as usize + 1) * LENGTH as usize, "beyond the job");
        self.0.get_mut(start..start + length)
    }
}

/// An honest conversation: the requests, and the answers in any order.
struct Transcript {
    commands: Commands,
    bytes: Vec<u8>,
    memory: Vec<u8>,
    answers: usize,
}

fn transcript(random: &mut Xoshiro256PlusPlus) -> Transcript {
    let jobs = 1 + random.next_u64() as usize % 6;
    let (mut commands, mut bytes) = (Commands::default(), Vec::new());
    let mut memory = vec![0xee; jobs * LENGTH as usize];
    let mut asked: Vec<_> = (0..jobs)
        .map(|job| {
            let command =
                [Command::READ, Command::READ, Command::WRITE, Command::FLUSH, Command::BLOCK_STATUS]
                    [random.next_u64() as usize % 5];
            let offset = job as u64 * u64::from(LENGTH);
            let flags = CommandFlags::default();
            (commands.enter(PendingCommand::new(job as u32, command, flags, offset, LENGTH)), command, offset)
        })
        .collect();
    while !asked.is_empty() {
        let (cookie, command, offset) = asked.swap_remove(random.next_u64() as usize % asked.len());
        match command {
            _ if random.next_u64().is_multiple_of(5) => {
                let message = "broken".to_owned();
                let error = ErrorChunk { errno: WireErrno::EIO, message, offset: Some(offset) };
                bytes.extend(encode_error_chunk(cookie, &error));
            }
            Command::READ => read_reply(random, cookie, offset, &mut bytes, &mut memory),
            Command::BLOCK_STATUS => {
                let descriptors = vec![BlockDescriptor { length: LENGTH, flags: 3 }];
                bytes.extend(BlockStatus { context: 1, descriptors }.encode(cookie));
            }
            _ if random.next_u64().is_multiple_of(2) => {
                bytes.extend(SimpleReply { errno: WireErrno::NONE, cookie }.encode());
            }
            _ => {
                let header = ChunkHeader { is_last: true, kind: ChunkKind::NONE, cookie, length: 0 };
                bytes.extend(header.encode());
            }
        }
    }
    Transcript { commands, bytes, memory, answers: jobs }
}

/// Adds the reply to a read in up to four chunks, in any order, some of them holes.
fn read_reply(
    random: &mut Xoshiro256PlusPlus,
    cookie: Cookie,
    offset: u64,
    bytes: &mut Vec<u8>,
    memory: &mut [u8],
) {
    let mut parts = vec![0, LENGTH / 4, LENGTH / 2, 3 * LENGTH / 4];
    while !parts.is_empty() {
        let part = parts.swap_remove(random.next_u64() as usize % parts.len());
        let (at, size) = (offset + u64::from(part), LENGTH / 4);
        let place = &mut memory[at as usize..][..size as usize];
        if random.next_u64().is_multiple_of(3) {
            place.fill(0);
            let header = ChunkHeader { is_last: false, kind: ChunkKind::OFFSET_HOLE, cookie, length: 12 };
            bytes.extend(header.encode());
            bytes.extend(at.to_be_bytes());
            bytes.extend(size.to_be_bytes());
        } else {
            place.fill(random.next_u64() as u8);
            bytes.extend(ChunkHeader::encode_offset_data(cookie, at, size, false));
            bytes.extend_from_slice(place);
        }
    }
    bytes.extend(ChunkHeader { is_last: true, kind: ChunkKind::NONE, cookie, length: 0 }.encode());
}

/// Feeds bytes in pieces of random length.
fn heard(
    random: &mut Xoshiro256PlusPlus,
    commands: &mut Commands,
    bytes: &[u8],
    memory: &mut Memory,
) -> (Result<(), ReplyFault>, Vec<Answer>) {
    let mut replies = Replies::new(true);
    let mut answers = Vec::new();
    let mut fed = 0;
    while fed < bytes.len() {
        let piece = 1 + random.next_u64() as usize % 1500;
        let taken = replies.feed(&bytes[fed..bytes.len().min(fed + piece)]);
        assert!(taken > 0, "no room left");
        fed += taken;
        if let Err(broken) = replies.advance(commands, memory, &mut answers) {
            return (Err(broken), answers);
        }
    }
    (Ok(()), answers)
}

#[test]
fn honest_replies_are_understood_in_any_order_and_in_any_pieces() {
    let seed = 5;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for round in 0..3000 {
        let Transcript { mut commands, bytes, memory, answers } = transcript(&mut random);
        let mut landed = Memory(vec![0xee; memory.len()]);
        let (outcome, answered) = heard(&mut random, &mut commands, &bytes, &mut landed);
        assert_eq!((outcome, answered.len()), (Ok(()), answers), "seed {seed}, round {round}");
        assert!(landed.0 == memory && commands.is_empty(), "seed {seed}, round {round}");
    }
}

#[test]
fn mutated_replies_neither_panic_nor_answer_twice_nor_give_bytes_that_did_not_come() {
    let seed = 6;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut refused, mut rounds) = (0, 0);
    while rounds < 100_000 {
        rounds += 1;
        let Transcript { mut commands, mut bytes, answers, .. } = transcript(&mut random);
        for _ in 0..1 + random.next_u64() % 3 {
            mutate(&mut random, &mut bytes);
        }
        let mut landed = Memory(vec![0xee; answers * LENGTH as usize]);
        let (outcome, answered) = heard(&mut random, &mut commands, &bytes, &mut landed);
        refused += u32::from(outcome.is_err());
        let mut jobs: Vec<_> = answered.iter().map(|answer| answer.asked.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        assert!(jobs.len() == answered.len() && jobs.len() <= answers, "seed {seed}, round {rounds}");
        for answer in answered {
            let is_read = answer.asked.command == Command::READ && answer.outcome.is_ok();
            assert!(!is_read || answer.asked.coverage.is_whole(LENGTH), "seed {seed}, round {rounds}");
        }
    }
    assert!(refused > rounds / 4, "only {refused} of {rounds} were refused");
}

fn mutate(random: &mut Xoshiro256PlusPlus, bytes: &mut Vec<u8>) {
    let at = random.next_u64() as usize % bytes.len();
    // Most mutations hit the headers or the first bytes, where they have the most effect.
    let at = if random.next_u64().is_multiple_of(2) { at } else { at % 64.min(bytes.len()) };
    match random.next_u64() % 6 {
        0 => bytes[at] = random.next_u64() as u8,
        1 => bytes[at] ^= 1 << (random.next_u64() % 8),
        2 => drop(bytes.drain(at..(at + 1 + random.next_u64() as usize % 40).min(bytes.len()))),
        3 => bytes.insert(at, random.next_u64() as u8),
        4 => {
            let part = bytes[at..(at + 40).min(bytes.len())].to_vec();
            bytes.splice(at..at, part);
        }
        _ => {
            let end = (at + 4).min(bytes.len());
            bytes[at..end].fill(0xff);
        }
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}

/// Function from a cookie to the server's answer.
type Reply = Box<dyn Fn(Cookie) -> Vec<u8>>;

#[test]
fn what_breaks_the_protocol_is_named() {
    let read = || {
        let mut commands = Commands::default();
        let cookie =
            commands.enter(PendingCommand::new(0, Command::READ, CommandFlags::default(), 0, LENGTH));
        (commands, cookie)
    };
    let cases: Vec<(&str, Reply)> = vec![
        (
            "no request in flight has",
            Box::new(|_| SimpleReply { errno: WireErrno::NONE, cookie: Cookie(9) }.encode().to_vec()),
        ),
        ("simply", Box::new(|cookie| SimpleReply { errno: WireErrno::NONE, cookie }.encode().to_vec())),
        (
            "not asked for",
            Box::new(|cookie| ChunkHeader::encode_offset_data(cookie, 1, LENGTH, true).to_vec()),
        ),
        (
            "not asked for",
            Box::new(|cookie| ChunkHeader::encode_offset_data(cookie, 0, u32::MAX - 8, true).to_vec()),
        ),
        ("no bytes", Box::new(|cookie| ChunkHeader::encode_offset_data(cookie, 0, 0, true).to_vec())),
        (
            "fewer bytes",
            Box::new(|cookie| {
                ChunkHeader { is_last: true, kind: ChunkKind::NONE, cookie, length: 0 }.encode().to_vec()
            }),
        ),
        (
            "1 MiB",
            Box::new(|cookie| {
                ChunkHeader { is_last: true, kind: ChunkKind::ERROR, cookie, length: 2 << 20 }
                    .encode()
                    .to_vec()
            }),
        ),
        ("begins with", Box::new(|_| b"HTTP/1.1 400 Bad Request".to_vec())),
    ];
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for (part, bytes) in cases {
        let (mut commands, cookie) = read();
        let mut memory = Memory(vec![0; LENGTH as usize]);
        let (outcome, answered) = heard(&mut random, &mut commands, &bytes(cookie), &mut memory);
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains(part) && answered.is_empty(), "expected {part:?}: {message}");
    }
}
