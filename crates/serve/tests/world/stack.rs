//! A world: everything from the client to the drives, one history of it, and the oracle that judges it.
//!
//! A power cut of everything, a killed server and a broken connection leave a state that the contract allows.
//! A drive that loses its power alone ends every connection, and the server is started again. Errors of
//! drives are injected only in some histories, in which requests may fail, but wrong data is never read.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use plumb_block::conformance::Content;
use plumb_block::conformance::oracle::Oracle;
use plumb_block::{
    Clock as _, Completion, Device as _, Errno, Lba, LbaRange, Nanos, Op, Outcome, Payload, Pool, Request,
    Tag, Time, VirtualClock, VolatileCache, wait_any,
};
use plumb_crash::below;
use plumb_sim::drive::Drive;
use plumb_sim::fault::Fault;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::client::Client;
use super::network::Network;
use super::planted::PlantedFault;
use super::server::{Machine, Server, pool};

/// ENOTCONN: a request that was not sent because the connection is lost.
const NOT_CONNECTED: Errno = Errno(107);
/// Number of turns after which a history that does not settle counts as stuck.
const PATIENCE: u32 = 100_000;
/// The longest request, in bytes.
const LENGTH_MAX: u64 = 64 << 10;
/// Number of blocks at the start that receive most requests, so that these overlap.
const HOT: u64 = 24;
/// Maximum number of interruptions of a recovery.
const RECOVERIES_MAX: u32 = 6;

thread_local! {
    /// Memory of the successive clients of this thread.
    static MEMORY: Pool = pool(plumb_block::Bytes(LENGTH_MAX), 64);
}

pub(super) struct World {
    chance: Xoshiro256PlusPlus,
    clock: Arc<VirtualClock>,
    time: Time,
    network: Arc<Network>,
    machine: Machine,
    server: Option<Server>,
    client: Option<Client>,
    memory: Pool,
    oracle: Oracle,
    block: u64,
    blocks: u64,
    discards: bool,
    tag: u64,
    /// True if drives of this history may fail.
    has_faults: bool,
    /// True if something has failed, so that requests may fail.
    is_broken: bool,
    /// True if the connections of the client are lost, or about to be.
    is_disconnected: bool,
    /// True if so much broke that the cache can no longer be opened.
    is_hopeless: bool,
    digest: DefaultHasher,
    has_trace: bool,
}

impl World {
    /// Returns the world of `seed`, with a cache that serves and a client.
    pub(super) fn new(seed: u64, planted: Option<PlantedFault>) -> Result<Self, String> {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let clock = Arc::new(VirtualClock::new());
        let time = Time::Virtual(Arc::clone(&clock));
        let machine = Machine::new(&time, planted, &mut chance).map_err(|error| error.to_string())?;
        let network = Network::new(&clock, chance.next_u64());
        let info = machine.drives.last().map(|drive| drive.device().info()).ok_or("no drive")?;
        let (block, blocks) = (info.logical_block.0, info.blocks());
        let mut world = Self {
            has_faults: below(&mut chance, 4) == 0,
            chance,
            clock,
            time,
            network,
            machine,
            server: None,
            client: None,
            memory: MEMORY.with(Clone::clone),
            oracle: Oracle::new(block as usize, false, Content::Zeroes),
            block,
            blocks,
            discards: info.discard_max.0 > 0,
            tag: 0,
            is_broken: false,
            is_disconnected: false,
            is_hopeless: false,
            digest: DefaultHasher::new(),
            has_trace: std::env::var_os("PLUMB_TRACE").is_some(),
        };
        world.start()?;
        Ok(world)
    }

    /// Runs the history. Returns its digest.
    pub(super) fn run(mut self) -> Result<u64, String> {
        for number in 0..40 + below(&mut self.chance, 60) {
            if self.is_hopeless {
                break;
            }
            let before = self.clock.now();
            self.step().map_err(|why| format!("step {number} at {before}: {why}"))?;
        }
        self.verify().map_err(|why| format!("at the end: {why}"))?;
        self.clock.now().hash(&mut self.digest);
        Ok(self.digest.finish())
    }

    /// Returns true if a drive has no power.
    fn is_cut(&self) -> bool {
        self.machine.is_cut()
    }

    fn trace(&self, what: &str) {
        if self.has_trace {
            eprintln!("{}: {what}", self.clock.now());
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.is_cut() {
            return self.restart_after_cut();
        }
        match below(&mut self.chance, 48) {
            0..26 => self.request(),
            26..36 => {
                let turns = 1 + below(&mut self.chance, 16);
                (0..turns).try_for_each(|_| self.advance().map(drop))
            }
            36..39 => self.settle(),
            39 => self.verify(),
            40 | 41 => {
                self.trace("the connections break");
                self.network.break_all();
                self.is_disconnected = true;
                Ok(())
            }
            42 | 43 => {
                self.trace("the power is cut");
                self.machine.drives.iter().for_each(|drive| drive.with(Drive::cut_power));
                self.restart_after_cut()
            }
            44 | 45 => self.kill(),
            46 => self.cut_one(),
            _ if self.has_faults => {
                let words = ["read:eio", "write:eio", "flush:eio", "any:slow=40ms"];
                let (word, nth) =
                    (words[below(&mut self.chance, 4) as usize], 1 + below(&mut self.chance, 5));
                let fault: Fault = format!("{word}:nth={nth}").parse().map_err(|error| format!("{error}"))?;
                let index = below(&mut self.chance, self.machine.drives.len() as u64) as usize;
                self.trace(&format!("drive {index}: {word}, the {nth}th"));
                self.machine.drives[index].with(|drive, _| drive.set_fault(fault));
                self.is_broken = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Submits a request drawn at random.
    fn request(&mut self) -> Result<(), String> {
        let chance = &mut self.chance;
        let longest = match below(chance, 32) {
            0 => LENGTH_MAX / self.block,
            1..6 => 16,
            _ => 2,
        };
        let nlb = 1 + below(chance, longest);
        let room = if below(chance, 8) > 0 { HOT } else { 4096 };
        let lba = below(chance, room).min(self.blocks - nlb);
        let fua = below(chance, 5) == 0;
        let op = match below(chance, 16) {
            0..8 => Op::Write { fua },
            8 => Op::WriteZeroes { fua, no_hole: lba.is_multiple_of(2), fast_only: false },
            9 if self.discards => Op::Discard,
            9..12 => Op::Read,
            _ => Op::Flush,
        };
        let range = if op == Op::Flush { LbaRange::EMPTY } else { LbaRange::new(Lba(lba), nlb) };
        self.submit(op, range)
    }

    /// Submits a request, unless there is no room for it.
    fn submit(&mut self, op: Op, range: LbaRange) -> Result<(), String> {
        if self.is_disconnected {
            self.settle()?;
            self.connect()?;
        }
        let Some(queues) = self.client.as_ref().map(Client::queues) else { return Ok(()) };
        let is_data = matches!(op, Op::Read | Op::Write { .. });
        let buffer =
            if is_data { self.memory.take(plumb_block::Bytes(range.nlb * self.block)) } else { None };
        if is_data && buffer.is_none() {
            return self.settle();
        }
        self.tag += 1;
        let pattern = self.oracle.submitted(self.tag, op, range);
        let payload = match (op, buffer, pattern) {
            (Op::Read, Some(buffer), _) => Payload::Into(buffer),
            (_, Some(mut buffer), Some(pattern)) => {
                pattern.fill(self.block as usize, &mut buffer);
                Payload::Bytes(buffer.freeze())
            }
            _ => Payload::None,
        };
        self.trace(&format!("{}: {op:?} of {range:?}", self.tag));
        let request = Request { tag: Tag(self.tag), op, range, payload, deadline: None };
        let queue = below(&mut self.chance, queues);
        let client = self.client.as_mut().ok_or("no client")?;
        // Requests in flight never exceed the capacity of a queue.
        if !client.submit(queue, request) {
            return Err("a queue is full before its depth is reached".to_owned());
        }
        if self.oracle.pending() >= 10 { self.settle() } else { Ok(()) }
    }

    /// Lets all parts make progress, or advances time to the next event. Returns false if there is none.
    fn advance(&mut self) -> Result<bool, String> {
        let before = self.network.traffic();
        let mut has_moved = self.server.as_mut().is_some_and(|server| server.advance(self.clock.now()));
        if let Some(client) = &mut self.client {
            match client.negotiate(&self.memory) {
                Ok(has_negotiated) => has_moved |= has_negotiated,
                // Clients that come without power are rejected.
                Err(_) if self.machine.is_cut() => {
                    self.client = None;
                    return Ok(true);
                }
                Err(why) => return Err(why),
            }
            let completions = client.poll()?;
            has_moved |= !completions.is_empty();
            completions.into_iter().try_for_each(|completion| self.completed(completion))?;
        }
        if has_moved || self.network.traffic() > before {
            return Ok(true);
        }
        let until = self.server.as_ref().and_then(Server::until);
        wait_any([], until, &mut &self.time).map_err(|error| error.to_string())
    }

    fn completed(&mut self, completion: Completion) -> Result<(), String> {
        let Completion { tag, outcome, payload, completed_at, .. } = completion;
        (tag.0, format!("{outcome:?}"), completed_at).hash(&mut self.digest);
        self.trace(&format!("{}: {outcome:?}", tag.0));
        let is_lost = matches!(outcome, Outcome::Unknown | Outcome::Failed(NOT_CONNECTED));
        let may_fail = self.is_broken || self.is_cut() || (is_lost && self.is_disconnected);
        self.is_disconnected |= is_lost;
        let bytes = match &payload {
            Payload::Into(buffer) => Some(&buffer[..]),
            _ => None,
        };
        let outcome = if is_lost { Outcome::Unknown } else { outcome };
        self.oracle.ended(tag.0, outcome, bytes, may_fail)
    }

    /// Lets everything be answered.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..PATIENCE {
            if !self.oracle.is_pending() {
                return Ok(());
            }
            if !self.advance()? {
                return Err(format!(
                    "nothing will ever happen, and {} is not answered",
                    self.oracle.waiting()
                ));
            }
        }
        Err(format!("so much has happened, and {} is not answered", self.oracle.waiting()))
    }

    /// Reads everything that was ever written, and a little that was not.
    fn verify(&mut self) -> Result<(), String> {
        if self.is_hopeless {
            return Ok(());
        }
        self.settle()?;
        let mut ranges = self.oracle.written(LENGTH_MAX / self.block);
        ranges.push(LbaRange::new(Lba(below(&mut self.chance, self.blocks)), 1));
        for range in ranges {
            self.submit(Op::Read, range)?;
        }
        self.settle()
    }

    /// Kills the process of the server, and starts it again.
    fn kill(&mut self) -> Result<(), String> {
        self.trace("the server is killed");
        self.oracle.kill();
        self.stop();
        // The kernel waits for requests of a process at a device before the process ends.
        let until = self.clock.now() + Nanos::secs(1);
        while self.clock.advance(until) < until {}
        self.start()
    }

    /// Cuts the power of one drive, which ends all connections, and starts the server again.
    fn cut_one(&mut self) -> Result<(), String> {
        let index = self.weak_drive();
        self.trace(&format!("the power of drive {index} is cut"));
        self.machine.drives[index].with(Drive::cut_power);
        for _ in 0..below(&mut self.chance, 30) {
            self.advance()?;
        }
        if below(&mut self.chance, 2) == 0 {
            self.machine.drives.iter().for_each(|drive| drive.with(Drive::cut_power));
        }
        self.restart_after_cut()
    }

    /// Returns the number of the drive that loses its power alone: the backing device, or always the same
    /// leg. If different legs of a mirror lost it, each would have continued alone, and it would be
    /// undecidable which one counts.
    fn weak_drive(&mut self) -> usize {
        if below(&mut self.chance, 2) == 0 { 0 } else { self.machine.drives.len() - 1 }
    }

    /// Starts the server again after a drive lost its power.
    fn restart_after_cut(&mut self) -> Result<(), String> {
        self.stop();
        self.oracle.cut();
        if below(&mut self.chance, 4) == 0 {
            // Recovery is interrupted, too, if it takes long enough.
            self.power_on();
            let index = self.weak_drive();
            let words = ["write", "flush", "read"];
            let (word, nth) = (words[below(&mut self.chance, 3) as usize], 1 + below(&mut self.chance, 8));
            let when = format!("{word}={nth}").parse().map_err(|error| format!("{error}"))?;
            self.trace(&format!("drive {index}: the power goes at {word}, the {nth}th"));
            self.machine.drives[index].with(|drive, now| drive.cut_when(now, when));
        }
        self.start()
    }

    fn stop(&mut self) {
        self.client = None;
        self.server = None;
        self.network.break_all();
    }

    fn power_on(&self) {
        for drive in self.machine.drives.iter().filter(|drive| drive.with(|drive, _| !drive.is_powered())) {
            drive.with(Drive::power_on);
        }
    }

    /// Starts the server, and connects.
    fn start(&mut self) -> Result<(), String> {
        self.machine.drives.iter().for_each(|drive| drive.with(|drive, _| drive.clear_faults()));
        for _ in 0..RECOVERIES_MAX {
            self.power_on();
            match self.machine.start() {
                Ok(server) => {
                    let cache = server.cache.info().volatile_cache;
                    self.oracle.set_volatile(cache != VolatileCache::None);
                    self.server = Some(server);
                    return self.connect();
                }
                Err(error) => {
                    self.trace(&format!("not started: {error}"));
                    let is_cut = self.is_cut();
                    if !is_cut && !self.is_broken {
                        return Err(format!(
                            "the cache cannot be opened: {}",
                            plumb_block::in_one_line(&error)
                        ));
                    }
                    self.is_hopeless = !is_cut;
                    if self.is_hopeless {
                        return Ok(());
                    }
                }
            }
        }
        Err("the power goes in every recovery".to_owned())
    }

    /// Connects a new client.
    fn connect(&mut self) -> Result<(), String> {
        self.client = None;
        self.is_disconnected = false;
        let Some(server) = &mut self.server else { return Err("no server".to_owned()) };
        let connections = 1 + below(&mut self.chance, 2);
        self.client = Some(Client::connect(&self.time, &self.network, server, connections));
        for _ in 0..PATIENCE {
            if self.client.as_ref().is_none_or(Client::is_ready) {
                return Ok(());
            }
            self.advance()?;
        }
        Err("the client does not get a connection".to_owned())
    }
}
