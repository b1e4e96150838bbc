//! The conformance kit of `plumb-block` over caches of simulated drives, in virtual and in real time, and
//! over files.

use std::sync::Arc;

use plumb_block::conformance::{self, CannotStage, Rig};
use plumb_block::{
    Bytes, Caching, Clock, Device, EngineChoice, Errno, Nanos, Pool, PoolShape, QueueOptions, RealClock,
    Result, Time, VirtualClock,
};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{BUFFER, BUFFERS_MIN, Layout, Options, Settings, Uuid};
use plumb_linux::{FileDevice, FileOptions};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::fault::{CommandKind, Effect, Fault};
use plumb_sim::model::Model;

const DEPTH: u32 = 16;

fn pool() -> Pool {
    Pool::new(PoolShape { buffer: Bytes::kib(64), count: DEPTH * 4, alignment: Bytes(4096) }).unwrap()
}

fn settings() -> Settings {
    let (cache, backing, segment) = (Uuid([1; 16]), Uuid([2; 16]), Bytes::mib(1));
    Settings { cache, backing, size: Bytes::mib(32), segment, layout: Layout::Mirror }
}

fn options() -> Result<Options> {
    let shape = PoolShape { buffer: BUFFER, count: BUFFERS_MIN, alignment: Bytes::kib(4) };
    Ok(Options::new(Pool::new(shape)?))
}

/// A cache over simulated drives.
struct SimulatedRig {
    models: Vec<&'static str>,
    seed: u64,
    time: Time,
    /// The legs, and then the backing device.
    drives: Vec<Handle>,
    cache: Option<CachedDevice>,
    pool: Pool,
}

impl SimulatedRig {
    fn new(models: &[&'static str], seed: u64, time: Time) -> Self {
        Self { models: models.to_vec(), seed, time, drives: Vec::new(), cache: None, pool: pool() }
    }

    fn members(&self) -> Members {
        let mut devices: Vec<_> = self.drives.iter().map(Handle::device).collect();
        let backing = devices.pop().unwrap();
        Members { legs: devices.into_iter().map(Some).collect(), backing }
    }

    fn open(&mut self) -> Result<Arc<dyn Device>> {
        self.cache = None;
        let cache = CachedDevice::open(options()?, self.members(), self.time.clone())?;
        Ok(Arc::new(self.cache.insert(cache).clone()))
    }
}

impl Rig for SimulatedRig {
    fn describe(&self) -> String {
        format!("a cache over {:?}, virtual {}, seed {}", self.models, self.time.is_virtual(), self.seed)
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        self.seed += 1000;
        self.cache = None;
        self.drives.clear();
        for model in &self.models {
            let options =
                DriveOptions { size: Some(Bytes::mib(64)), seed: self.seed, ..DriveOptions::default() };
            let drive = Drive::new(&Model::named(model).unwrap(), options).unwrap();
            self.drives.push(Handle::new(drive, self.time.clone()));
        }
        let Members { legs, backing } = self.members();
        let legs: Vec<_> = legs.into_iter().flatten().collect();
        driver::create(&settings(), &legs, &backing.info())?;
        self.open()
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.time.clock()
    }

    fn let_time_pass(&mut self) {
        if let Time::Virtual(clock) = &self.time {
            let until = clock.now() + Nanos::millis(1);
            while clock.advance(until) < until {}
        }
    }

    /// Cuts the power of all drives at once.
    fn cut_power(&mut self) -> std::result::Result<Arc<dyn Device>, CannotStage> {
        // The kit still has queues of the cache, which must not go on with power again.
        self.cache.iter().for_each(CachedDevice::halt);
        self.drives.iter().for_each(|drive| drive.with(Drive::cut_power));
        self.drives.iter().for_each(|drive| drive.with(Drive::power_on));
        self.open().map_err(|error| CannotStage(format!("not opened after a cut: {error}")))
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        let fault = Fault::next(CommandKind::Flush, Effect::Fail(Errno::EIO));
        self.drives.iter().for_each(|drive| drive.with(|drive, _| drive.set_fault(fault.clone())));
        Ok(())
    }
}

/// A cache over files, past the page cache.
struct OverFiles {
    options: FileOptions,
    directory: tempfile::TempDir,
    clock: Arc<dyn Clock>,
    cache: Option<CachedDevice>,
    pool: Pool,
}

impl Rig for OverFiles {
    fn describe(&self) -> String {
        "a cache over files".to_owned()
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        self.cache = None;
        let open = |name: &str| {
            let path = self.directory.path().join(name);
            std::fs::File::create(&path).and_then(|file| file.set_len(64 << 20)).unwrap();
            FileDevice::open(&path, self.options, Arc::clone(&self.clock))
        };
        let leg: Arc<dyn Device> = Arc::new(open("log")?);
        let backing: Arc<dyn Device> = Arc::new(open("backing")?);
        driver::create(&settings(), &[Arc::clone(&leg)], &backing.info())?;
        let members = Members { legs: vec![Some(leg)], backing };
        let cache = CachedDevice::open(options()?, members, Time::Real(Arc::clone(&self.clock)))?;
        Ok(Arc::new(self.cache.insert(cache).clone()))
    }

    fn is_page_cached(&self) -> bool {
        self.options.opening.caching != Caching::Direct
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}

fn over_files(options: FileOptions) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let probe = directory.path().join("probe");
    std::fs::write(&probe, vec![0; 4096]).unwrap();
    if let Err(error) = FileDevice::open(&probe, options, Arc::clone(&clock)) {
        return plumb_testkit::skip(&format!("no direct I/O here: {error}"));
    }
    let mut rig = OverFiles { options, directory, clock, cache: None, pool: pool() };
    conformance::run(&mut rig, 1).assert_conforms();
}

#[test]
fn a_cache_over_files_keeps_the_contract() {
    over_files(FileOptions::write_direct().shared());
}

/// Runs the kit over files whose queues answer in their poll, and have no descriptor that could wake a
/// waiting thread.
#[test]
fn a_cache_over_files_without_io_uring_keeps_the_contract() {
    over_files(FileOptions::write_direct().engine(EngineChoice::Synchronous));
}

#[test]
fn a_cache_keeps_the_contract_in_virtual_time() {
    for models in
        [&["plp-nvme-ssd", "nearline-4tb"][..], &["consumer-nvme-ssd", "consumer-nvme-ssd", "nearline-4tb"]]
    {
        for seed in 0..2 {
            let mut rig = SimulatedRig::new(models, seed, Time::Virtual(Arc::new(VirtualClock::new())));
            conformance::run(&mut rig, seed).assert_conforms();
        }
    }
}

#[test]
fn a_cache_keeps_the_contract_in_real_time() {
    let mut rig = SimulatedRig::new(&["memory", "plp-nvme-ssd"], 1, Time::real());
    conformance::run(&mut rig, 1).assert_conforms();
}
