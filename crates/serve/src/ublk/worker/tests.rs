//! Tests of the worker between a simulated kernel and a simulated device that use all freedom of the rules:
//! completions in any order, servers killed between any two steps. The assumptions of the kernel must hold:
//! every request is answered once, reads return written data, and after a successful flush everything
//! acknowledged before is durable.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use plumb_block::{Bytes, Device as _, DeviceInfo, LbaRange, VolatileCache};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::super::options::Survives;
use super::super::plan::Geometry;
use super::super::records::Base;
use super::*;
use plumb_state::Owner;

mod device;
mod kernel;

use device::{CachedVersions, StoredVersions};
use kernel::{Answer, Driver, Fake, UserRequest};

const BLOCK: u64 = 512;
const BLOCKS: u64 = 32;
const DEPTH: u16 = 6;

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns a server of `device`, new or with the record of its predecessor.
fn serve(device: &Arc<CachedVersions>, driver: &Arc<Mutex<Driver>>, records: &Path) -> Worker<Fake> {
    let base = Base::open(Some(records)).unwrap();
    let locked = base.lock().unwrap();
    let record = match base.find(0, &locked).unwrap() {
        Owner::Dead(record) => record,
        Owner::None => base.create(0, "a test", "the same", &locked).unwrap(),
        Owner::Alive => panic!("the server before has not let go of its record"),
    };
    let geometry = Geometry::new(&device.info()).unwrap();
    let device: Arc<dyn plumb_block::Device> = Arc::<CachedVersions>::clone(device);
    let served = Arc::new(ServedDisk::new(device, geometry, record, Survives::Durable));
    let own = DeviceQueue::open(&served, DEPTH).unwrap();
    Worker::start(served, Fake(Arc::clone(driver)), own, DEPTH).unwrap()
}

struct Bench {
    device: Arc<CachedVersions>,
    driver: Arc<Mutex<Driver>>,
    records: tempfile::TempDir,
}

impl Bench {
    fn new(seed: u64) -> Self {
        Self {
            device: CachedVersions::new(seed),
            driver: Arc::new(Mutex::new(Driver::new(DEPTH))),
            records: tempfile::tempdir().unwrap(),
        }
    }

    fn serve(&self) -> Worker<Fake> {
        serve(&self.device, &self.driver, &self.records.path().join("ublk"))
    }

    fn ask(&self, asked: UserRequest) -> u16 {
        lock(&self.driver).ask(asked).expect("a free tag")
    }

    /// Submits one request, and lets the worker work until it is answered.
    fn answer(&self, worker: &mut Worker<Fake>, asked: UserRequest) -> i32 {
        let tag = self.ask(asked);
        for _ in 0..1000 {
            worker.turn(Patience::None).unwrap();
            if let Some(answer) = lock(&self.driver).answers.remove(&tag) {
                return answer.result;
            }
        }
        panic!("no answer");
    }

    /// Kills the server: its cache is lost, and the kernel takes back unanswered requests.
    fn kill(&self, worker: Worker<Fake>) {
        self.device.die();
        drop(worker);
        lock(&self.driver).server_died();
    }
}

const fn write(block: u64, version: u64, fua: bool) -> UserRequest {
    UserRequest::Write { range: LbaRange::new(plumb_block::Lba(block), 1), version, fua }
}

const fn read(block: u64) -> UserRequest {
    UserRequest::Read { range: LbaRange::new(plumb_block::Lba(block), 1) }
}

#[test]
fn what_is_asked_is_answered_with_its_bytes() {
    let bench = Bench::new(1);
    let mut worker = bench.serve();
    assert_eq!(bench.answer(&mut worker, write(3, 7, false)), 512);
    assert_eq!(bench.answer(&mut worker, read(3)), 512);
    assert_eq!(lock(&bench.driver).last_read, [7]);
    assert_eq!(bench.answer(&mut worker, UserRequest::Flush), 0);
    assert_eq!(
        bench.answer(&mut worker, UserRequest::Discard { range: LbaRange::new(plumb_block::Lba(3), 2) }),
        0
    );
    assert_eq!(bench.answer(&mut worker, UserRequest::Raw([0xFF; 24])), -Errno::EOPNOTSUPP.0);
    assert_eq!(bench.answer(&mut worker, read(BLOCKS)), -Errno::EINVAL.0);
}

#[test]
fn a_worker_ends_when_the_device_is_stopped() {
    let bench = Bench::new(2);
    let worker = bench.serve();
    lock(&bench.driver).stop();
    worker.run().unwrap();
}

#[test]
fn a_refused_command_ends_the_worker_with_its_error() {
    let bench = Bench::new(3);
    let worker = bench.serve();
    lock(&bench.driver).refuse(22);
    assert_eq!(worker.run().unwrap_err().raw_os_error(), Some(22));
}

#[test]
fn after_a_failed_flush_none_succeeds_and_reads_and_writes_do() {
    for failing in [UserRequest::Flush, write(1, 1, true)] {
        let bench = Bench::new(4);
        let mut worker = bench.serve();
        assert_eq!(bench.answer(&mut worker, write(1, 5, false)), 512);
        bench.device.fail_next_promise();
        assert_eq!(bench.answer(&mut worker, failing), -Errno::EIO.0);
        assert_eq!(bench.answer(&mut worker, UserRequest::Flush), -Errno::EIO.0, "after {failing:?}");
        assert_eq!(bench.answer(&mut worker, write(2, 1, true)), -Errno::EIO.0);
        assert_eq!(bench.answer(&mut worker, write(2, 1, false)), 512);
        assert_eq!(bench.answer(&mut worker, read(2)), 512);
        // Nor does a flush of the next server succeed, since nothing has become durable.
        bench.kill(worker);
        let mut next = bench.serve();
        assert_eq!(bench.answer(&mut next, UserRequest::Flush), -Errno::EIO.0);
    }
}

#[test]
fn a_server_after_one_that_lost_writes_lets_no_flush_succeed() {
    let bench = Bench::new(5);
    let mut worker = bench.serve();
    assert_eq!(bench.answer(&mut worker, write(1, 5, false)), 512);
    bench.kill(worker);
    let mut next = bench.serve();
    assert!(next.served.device.is_lossy());
    assert_eq!(bench.answer(&mut next, write(1, 6, false)), 512);
    assert_eq!(bench.answer(&mut next, UserRequest::Flush), -Errno::EIO.0);
    bench.kill(next);
    assert_eq!(bench.answer(&mut bench.serve(), UserRequest::Flush), -Errno::EIO.0, "nor the one after that");
}

#[test]
fn a_server_after_one_that_lost_nothing_goes_on() {
    for has_cache in [true, false] {
        let bench = Bench::new(6);
        bench.device.set_cache(has_cache);
        let mut worker = bench.serve();
        assert_eq!(bench.answer(&mut worker, write(1, 5, false)), 512);
        if has_cache {
            assert_eq!(bench.answer(&mut worker, UserRequest::Flush), 0);
        }
        assert_eq!(bench.answer(&mut worker, write(2, 6, true)), 512);
        let unanswered = bench.ask(write(3, 7, false));
        bench.kill(worker);
        let mut next = bench.serve();
        assert!(!next.served.device.is_lossy(), "with a cache: {has_cache}");
        assert_eq!(bench.answer(&mut next, UserRequest::Flush), 0);
        assert!(lock(&bench.driver).answers.remove(&unanswered).is_some(), "it is asked again");
        for (block, version) in [(1, 5), (2, 6), (3, 7)] {
            assert_eq!(bench.answer(&mut next, read(block)), 512);
            assert_eq!(lock(&bench.driver).last_read, [version]);
        }
    }
}

/// Versions that the kernel's users assume: of each block the one whose write was answered last.
#[derive(Default)]
struct BelievedVersions {
    acknowledged: BTreeMap<u64, u64>,
    /// Copies of `acknowledged` at the request of each flush, by tag.
    asked: BTreeMap<u16, BTreeMap<u64, u64>>,
    succeeded: u32,
    failed: u32,
}

impl BelievedVersions {
    fn note(&mut self, tag: u16, answer: &Answer, stored: &BTreeMap<u64, StoredVersions>, seed: u64) {
        match answer.asked {
            UserRequest::Write { range, version, fua } if answer.result > 0 => {
                self.acknowledged.insert(range.lba.0, version);
                if fua {
                    let durable = stored.get(&range.lba.0).map_or(0, |stored| stored.durable);
                    assert!(durable >= version, "seed {seed}: FUA of {version} is {durable} in {range:?}");
                }
            }
            UserRequest::Flush => {
                let covered = self.asked.remove(&tag).unwrap_or_default();
                if answer.result < 0 {
                    self.failed += 1;
                    return;
                }
                self.succeeded += 1;
                for (block, version) in covered {
                    let durable = stored.get(&block).map_or(0, |stored| stored.durable);
                    assert!(
                        durable >= version,
                        "seed {seed}: block {block} is {durable} after a flush of {version}"
                    );
                }
            }
            _ => {}
        }
    }
}

/// Runs random requests and kills. Versions grow, and no two writes of a block are in flight at once, so that
/// a newer version is a later write.
#[test]
fn no_flush_succeeds_over_lost_writes_whenever_the_server_is_killed() {
    let (mut succeeded, mut failed, mut lossless) = (0, 0, 0);
    for seed in 0..400 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let bench = Bench::new(seed);
        bench.device.set_cache(seed % 4 != 0);
        let mut worker = bench.serve();
        let mut believed = BelievedVersions::default();
        let mut version = 0;
        for step in 0..300 {
            if step % 3 == 0 {
                let block = random.next_u64() % BLOCKS;
                let is_busy = lock(&bench.driver).writes(block);
                version += 1;
                let asked = match random.next_u64() % 8 {
                    0 | 1 => UserRequest::Flush,
                    2 => read(block),
                    3 if !is_busy => write(block, version, true),
                    _ if !is_busy => write(block, version, false),
                    _ => read(block),
                };
                if let Some(tag) = lock(&bench.driver).ask(asked)
                    && asked == UserRequest::Flush
                {
                    believed.asked.insert(tag, believed.acknowledged.clone());
                }
            }
            worker.turn(Patience::None).unwrap();
            let answers = std::mem::take(&mut lock(&bench.driver).answers);
            let stored = bench.device.stored();
            for (tag, answer) in &answers {
                believed.note(*tag, answer, &stored, seed);
            }
            if random.next_u64().is_multiple_of(60) {
                bench.kill(worker);
                worker = bench.serve();
                lossless += u32::from(!worker.served.device.is_lossy());
            }
        }
        succeeded += believed.succeeded;
        failed += believed.failed;
    }
    // The test would prove nothing if one of these never happened.
    assert!(succeeded > 1000 && failed > 100 && lossless > 100, "{succeeded} {failed} {lossless}");
}
