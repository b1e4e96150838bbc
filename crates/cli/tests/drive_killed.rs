//! Tests that kill the server (SIGKILL), or cut the power, among overlapping requests of several NBD clients:
//! writes acknowledged as durable are in the backing file. They guard against a version that does not reach
//! the file because of another request in flight for the same blocks.
//!
//! The judge is [`History`], the rules for one block in the conformance kit. A history covers one group of
//! [`GROUP`] blocks in the life of one server; groups share only flushes.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use plumb_block::conformance::{History, Moment, Version};
use plumb_block::{
    Bytes, Completion, Device, Lba, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Pool, PoolShape, Queue,
    QueueOptions, RealClock, Request, Stamp, Tag, Time, Wait, wait_any,
};
use plumb_serve::nbd::client::{NbdDevice, Options};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::drive_support::Server;

/// Number of servers per kind of drive, each with [`GROUPS`] histories.
const LIVES: u64 = 20;
pub(crate) const GROUPS: u64 = 16;
/// Number of blocks in a group: few, so that requests overlap.
pub(crate) const GROUP: u64 = 4;
/// Logical block of these drives in bytes.
pub(crate) const BLOCK: u64 = 512;
const CLIENTS: usize = 3;
const REQUESTS: u64 = 160;
pub(crate) const DEPTH: u32 = 32;

/// End of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// SIGKILL after this number of answers.
    Killed { answered: u64 },
    /// SIGKILL after all answers.
    KilledIdle,
    /// Power cut after this number of answers, then SIGKILL.
    Cut { answered: u64 },
}

impl Ending {
    /// Draws an end. Every second server is killed at or near its first answer.
    pub(crate) fn draw(chance: &mut Xoshiro256PlusPlus) -> Self {
        match below(chance, 8) {
            0 | 1 => Self::Killed { answered: 1 },
            2 | 3 => Self::Killed { answered: 1 + below(chance, 16) },
            4 | 5 => Self::Killed { answered: 1 + below(chance, REQUESTS) },
            6 => Self::KilledIdle,
            _ => Self::Cut { answered: 1 + below(chance, REQUESTS) },
        }
    }

    const fn answered(self) -> u64 {
        match self {
            Self::Killed { answered } | Self::Cut { answered } => answered,
            Self::KilledIdle => REQUESTS,
        }
    }
}

/// Request without an answer yet.
struct Pending {
    op: Op,
    range: LbaRange,
    submitted: Moment,
}

/// Record of the requests and answers of the clients of one server.
pub(crate) struct Judge {
    blocks: Vec<History<u64>>,
    pending: HashMap<Tag, Pending>,
    now: Moment,
    /// True if a write is durable only after a flush.
    is_volatile: bool,
    pub(crate) answered: u64,
}

impl Judge {
    /// Creates the judge of blocks with the contents `held`; `is_volatile` if an answered write is durable
    /// only after a flush.
    pub(crate) fn new(held: &[u64], is_volatile: bool) -> Self {
        let blocks = held.iter().map(|held| History::starting_with(*held)).collect();
        Self { blocks, pending: HashMap::new(), now: 1, is_volatile, answered: 0 }
    }

    fn submitted(&mut self, tag: Tag, op: Op, range: LbaRange) {
        self.now += 1;
        let content = if matches!(op, Op::Write { .. }) { tag.0 } else { 0 };
        for block in blocks(range) {
            let version = Version::submitted(content, self.now, op != Op::Discard);
            self.blocks[block].versions.push(version);
        }
        self.pending.insert(tag, Pending { op, range, submitted: self.now });
    }

    fn completed(&mut self, completion: &Completion) -> Result<(), String> {
        let Some(pending) = self.pending.remove(&completion.tag) else {
            return Err(format!("request {} was answered twice", completion.tag.0));
        };
        match completion.outcome {
            Outcome::Done => {}
            // ENOTCONN, or ESHUTDOWN from a drive without power: the write may have landed.
            Outcome::Unknown | Outcome::Failed(_) | Outcome::PowerLost => return Ok(()),
        }
        self.now += 1;
        self.answered += 1;
        let Pending { op, range, submitted } = pending;
        if op == Op::Flush {
            self.blocks.iter_mut().for_each(|block| block.flushed(submitted));
        }
        let is_fua = matches!(op, Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. });
        for block in blocks(range) {
            let mut versions = self.blocks[block].versions.iter_mut();
            if let Some(version) = versions.find(|version| version.submitted == submitted) {
                version.completed = Some(self.now);
                version.is_durable |= is_fua || !self.is_volatile;
            }
        }
        Ok(())
    }

    /// Compares the blocks that `read` finds with the allowed versions, and returns their contents.
    pub(crate) fn judge(
        &self,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), String>,
        seed: u64,
    ) -> Result<Vec<u64>, String> {
        let mut held = Vec::new();
        for (lba, history) in self.blocks.iter().enumerate() {
            let mut bytes = [0; BLOCK as usize];
            read(lba as u64, &mut bytes)?;
            let found = match Stamp::read(&bytes) {
                None if bytes.iter().all(|byte| *byte == 0) => 0,
                Some(stamp) if stamp.seed == seed && stamp.lba.0 == lba as u64 && stamp.is_whole(&bytes) => {
                    stamp.generation
                }
                other => return Err(format!("block {lba} holds {other:?}, which nobody wrote")),
            };
            let allowed = history.survivors(self.now + 1).versions;
            if !allowed.iter().any(|version| history.versions[*version].content == found) {
                let versions = &history.versions;
                return Err(format!(
                    "block {lba} holds version {found} of {versions:#?}; allowed are {allowed:?}"
                ));
            }
            held.push(found);
        }
        Ok(held)
    }
}

/// Clients of one server, each with its own connection.
pub(crate) struct Clients {
    pub(crate) queues: Vec<Box<dyn Queue>>,
    _devices: Vec<NbdDevice>,
    time: Time,
}

impl Clients {
    pub(crate) fn connect(uri: &str, pool: &Pool) -> Self {
        let uri = uri.parse().unwrap();
        let clock = std::sync::Arc::new(RealClock::start());
        let connect = || {
            let options = Options {
                connections: 1,
                time: Time::Real(clock.clone()),
                drop_patience: Nanos::ZERO,
                ..Options::default()
            };
            NbdDevice::connect(&uri, options).unwrap()
        };
        let devices: Vec<_> = (0..CLIENTS).map(|_| connect()).collect();
        let open = |device: &NbdDevice| {
            device.open_queue(QueueOptions { depth: DEPTH, pool: pool.clone() }).unwrap()
        };
        let queues = devices.iter().map(open).collect();
        Self { queues, _devices: devices, time: Time::Real(clock) }
    }

    /// Sends submitted requests, and processes answers.
    pub(crate) fn poll(&mut self, judge: &mut Judge) -> Result<(), String> {
        let mut completions = Vec::new();
        for queue in &mut self.queues {
            queue.poll(Wait::NONE, &mut completions).map_err(|error| error.to_string())?;
        }
        completions.iter().try_for_each(|completion| judge.completed(completion))
    }

    fn wait(&mut self) -> Result<(), String> {
        let queues = self.queues.iter().map(|queue| &**queue);
        wait_any(queues, None, &mut &self.time).map(drop).map_err(|error| error.to_string())
    }
}

/// Drive of one kind, served on one file by a series of servers.
struct Bench {
    directory: tempfile::TempDir,
    arguments: Vec<String>,
    load: Load,
    held: Vec<u64>,
}

impl Bench {
    /// Runs one server until its end, and judges the contents of its file.
    fn life(&mut self, chance: &mut Xoshiro256PlusPlus, pool: &Pool) -> Result<(), String> {
        let ending = Ending::draw(chance);
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let server = Server::start(&arguments);
        let mut clients = Clients::connect(server.document["nbd"].as_str().unwrap(), pool);
        let mut judge = Judge::new(&self.held, server.document["wce"] == true);
        let result = self.load.run(chance, ending, &mut clients, &mut judge);
        if matches!(ending, Ending::Cut { .. }) {
            server.order("cut", &[]);
        }
        server.kill();
        result.and_then(|()| clients.poll(&mut judge)).map_err(|error| format!("{ending:?}: {error}"))?;
        let file = File::open(self.directory.path().join("medium")).unwrap();
        let read = |lba: u64, bytes: &mut [u8]| {
            file.read_exact_at(bytes, lba * BLOCK).map_err(|error| error.to_string())
        };
        self.held = judge
            .judge(read, self.load.seed)
            .map_err(|error| format!("{ending:?} after {} answers: {error}", judge.answered))?;
        Ok(())
    }
}

/// Load of the clients; each write has a unique number.
pub(crate) struct Load {
    pub(crate) seed: u64,
    pub(crate) next_tag: u64,
}

impl Load {
    /// Submits random requests until the server must end.
    pub(crate) fn run(
        &mut self,
        chance: &mut Xoshiro256PlusPlus,
        ending: Ending,
        clients: &mut Clients,
        judge: &mut Judge,
    ) -> Result<(), String> {
        let burst = 1 + below(chance, 24);
        for number in 0..REQUESTS {
            let queue = below(chance, CLIENTS as u64) as usize;
            let first = below(chance, GROUPS) * GROUP;
            let offset = below(chance, GROUP);
            let range = LbaRange::new(Lba(first + offset), 1 + below(chance, GROUP - offset));
            let (op, range) = match below(chance, 16) {
                0 => (Op::Flush, LbaRange::EMPTY),
                1 => (Op::Discard, range),
                2 => {
                    (Op::WriteZeroes { fua: below(chance, 2) == 0, no_hole: false, fast_only: false }, range)
                }
                3..=8 => (Op::Write { fua: true }, range),
                _ => (Op::Write { fua: false }, range),
            };
            self.next_tag += 1;
            let tag = Tag(self.next_tag);
            let payload = match op {
                Op::Write { .. } => {
                    Payload::Pattern(Pattern { seed: self.seed, lba: range.lba, generation: tag.0 })
                }
                _ => Payload::None,
            };
            let mut request = Request { tag, op, range, payload, deadline: None };
            judge.submitted(tag, op, range);
            while let Err(full) = clients.queues[queue].submit(request) {
                clients.wait()?;
                clients.poll(judge)?;
                request = full.0;
            }
            if number % burst == 0 {
                clients.poll(judge)?;
            }
            if judge.answered >= ending.answered() {
                return Ok(());
            }
        }
        clients.poll(judge)?;
        while judge.answered < ending.answered() && !judge.pending.is_empty() {
            clients.wait()?;
            clients.poll(judge)?;
        }
        Ok(())
    }
}

fn blocks(range: LbaRange) -> std::ops::Range<usize> {
    range.lba.0 as usize..range.end().0 as usize
}

pub(crate) fn below(chance: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    chance.next_u64() % limit
}

/// Runs a series of servers for this kind of drive.
fn hold_to_what_was_answered(model: &str, wce: Option<&str>, seed: u64) {
    let directory = crate::common::scratch();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (medium, socket) = (path("medium"), path("nbd"));
    let mut arguments =
        [model, "--size", "16M", "--backing", &medium, "--nbd", &socket].map(str::to_owned).to_vec();
    arguments.extend(wce.iter().flat_map(|wce| ["--wce", wce].map(str::to_owned)));
    let shape = PoolShape { buffer: Bytes::kib(32), count: DEPTH * 4, alignment: Bytes(4096) };
    let pool = Pool::new(shape).unwrap();
    let held = vec![0; (GROUPS * GROUP) as usize];
    let mut bench = Bench { directory, arguments, load: Load { seed, next_tag: 0 }, held };
    for life in 0..LIVES {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ life << 32);
        if let Err(error) = bench.life(&mut chance, &pool) {
            panic!("{model}, write cache {wce:?}, seed {seed}, server {life}: {error}");
        }
    }
}

#[test]
fn what_was_answered_as_durable_is_in_the_file_of_a_killed_flash_drive() {
    hold_to_what_was_answered("consumer-nvme-ssd", Some("on"), 1);
    hold_to_what_was_answered("consumer-nvme-ssd", Some("off"), 2);
    // Without tearing inside blocks, which is beyond the crash rules.
    hold_to_what_was_answered("usb-stick?behaviour.damage.torn=0.0", None, 3);
}

#[test]
fn what_was_answered_as_durable_is_in_the_file_of_a_killed_disk() {
    for (model, seed) in [("sas-15k", 4), ("ata-40gb", 6), ("he8-media-cache", 8)] {
        hold_to_what_was_answered(model, Some("on"), seed);
        hold_to_what_was_answered(model, Some("off"), seed + 1);
    }
}
