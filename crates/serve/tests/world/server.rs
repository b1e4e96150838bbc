//! The server of a world: a cache over simulated drives, exported, with its connections.

use std::sync::Arc;

use plumb_block::{Bytes, Device, Nanos, Pool, PoolShape, Result, Time, Wait};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{BUFFER, BUFFERS_MIN, Layout, MissingLegs, Mode, Options, Settings, Uuid};
use plumb_crash::below;
use plumb_serve::nbd::Turn;
use plumb_serve::nbd::server::{self, Connection, Export, Exports};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::model::Model;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;

use super::network::End;
use super::planted::{Faulty, PlantedFault};

/// Size of a drive.
const SIZE: Bytes = Bytes::mib(64);
/// Segment of the log.
const SEGMENT: Bytes = Bytes::kib(64);

thread_local! {
    /// Memory of the successive caches of this thread.
    static MEMORY: Pool = pool(BUFFER, BUFFERS_MIN);
}

/// Returns a pool of `count` buffers.
pub(super) fn pool(buffer: Bytes, count: u32) -> Pool {
    Pool::new(PoolShape { buffer, count, alignment: Bytes::kib(4) }).unwrap()
}

/// The machine: its drives, and the settings of its cache.
pub(super) struct Machine {
    pub(super) time: Time,
    /// The legs of the log, and then the backing device.
    pub(super) drives: Vec<Handle>,
    mode: Mode,
    planted: Option<PlantedFault>,
}

impl Machine {
    /// Creates drives with a new cache on them.
    ///
    /// # Errors
    /// If the cache cannot be created.
    pub(super) fn new(
        time: &Time,
        planted: Option<PlantedFault>,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Result<Self> {
        let legs = 1 + below(chance, 2);
        let backing = ["nearline-4tb", "consumer-nvme-ssd", "memory"][below(chance, 3) as usize];
        let models = (0..legs).map(|_| "consumer-nvme-ssd").chain([backing]);
        let drives = models.map(|model| {
            let options =
                DriveOptions { size: Some(SIZE), seed: chance.next_u64(), ..DriveOptions::default() };
            let drive = Drive::new(&Model::named(model).unwrap(), options)?;
            Ok(Handle::new(drive, time.clone()))
        });
        let drives = drives.collect::<Result<Vec<_>>>()?;
        let segments = 4 + below(chance, 12);
        let size = Bytes(segments * SEGMENT.0 + (8 << 12));
        let (cache, backing) = (Uuid([1; 16]), Uuid([2; 16]));
        let settings = Settings { cache, backing, size, segment: SEGMENT, layout: Layout::Mirror };
        let mode = [Mode::WriteBack, Mode::WriteBack, Mode::Ordered, Mode::WriteThrough];
        let machine = Self { time: time.clone(), drives, mode: mode[below(chance, 4) as usize], planted };
        let Members { legs, backing } = machine.members();
        let legs: Vec<_> = legs.into_iter().flatten().collect();
        driver::create(&settings, &legs, &backing.info())?;
        Ok(machine)
    }

    /// Returns true if a drive has no power.
    pub(super) fn is_cut(&self) -> bool {
        self.drives.iter().any(|drive| drive.with(|drive, _| !drive.is_powered()))
    }

    fn members(&self) -> Members {
        let mut devices: Vec<_> = self.drives.iter().map(Handle::device).collect();
        let backing = devices.pop().unwrap();
        Members { legs: devices.into_iter().map(Some).collect(), backing }
    }

    /// Starts a server, whose cache recovers first.
    ///
    /// # Errors
    /// If the cache cannot be opened.
    pub(super) fn start(&self) -> Result<Server> {
        let memory = MEMORY.with(Clone::clone);
        let (mode, degraded) = (self.mode, MissingLegs::Any);
        let bypass_after = Some(Bytes::kib(48));
        let options = Options { mode, degraded, bypass_after, ..Options::new(memory) };
        let cache = CachedDevice::open(options, self.members(), self.time.clone())?;
        let inner: Arc<dyn Device> = Arc::new(cache.clone());
        let device = match self.planted {
            None => inner,
            Some(planted) => Arc::new(Faulty { inner, planted, read: Arc::default() }),
        };
        let export = Export { name: "disk".to_owned(), description: String::new(), device };
        let mut options = server::Options::default();
        options.clock = self.time.clock();
        options.depth = 16;
        let exports = Exports::new(vec![export], options).map_err(|error| {
            plumb_block::Error::new(plumb_block::ErrorKind::Invalid, "export", "disk")
                .because(error.to_string())
        })?;
        Ok(Server { cache, exports, connections: Vec::new() })
    }
}

/// A process that serves.
pub(super) struct Server {
    pub(super) cache: CachedDevice,
    exports: Exports,
    connections: Vec<Peer>,
}

/// A connection, and the event that it waits for.
struct Peer {
    connection: Connection,
    stream: End,
    until: Option<Nanos>,
}

impl Server {
    /// Accepts a client.
    pub(super) fn accept(&mut self, stream: End) {
        self.connections.push(Peer { connection: self.exports.connect(), stream, until: None });
    }

    /// Lets each connection take a turn. Returns true if any made progress.
    pub(super) fn advance(&mut self, now: Nanos) -> bool {
        let mut has_moved = false;
        self.connections.retain_mut(|Peer { connection, stream, until }| {
            match connection.advance(stream, now, Wait::NONE) {
                Ok(Turn::Moved(wants)) => {
                    (*until, has_moved) = (wants.until, true);
                    true
                }
                Ok(Turn::Idle(wants)) => {
                    *until = wants.until;
                    true
                }
                Ok(Turn::Over) | Err(_) => {
                    has_moved = true;
                    false
                }
            }
        });
        has_moved
    }

    /// Returns the time at which a connection must take a turn without an event.
    pub(super) fn until(&self) -> Option<Nanos> {
        self.connections.iter().filter_map(|peer| peer.until).min()
    }
}

/// Ends the process at once, as a kill does.
impl Drop for Server {
    fn drop(&mut self) {
        self.cache.halt();
    }
}
