//! Tests that every shipped model keeps the contract of the waist, in virtual and in real time.
use std::sync::Arc;

use plumb_block::conformance::{self, CannotStage, Rig};
use plumb_block::{
    Bytes, Clock, Device, Errno, Nanos, Pool, PoolShape, QueueOptions, RealClock, Result, Time, VirtualClock,
};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::fault::{CommandKind, Effect, Fault};
use plumb_sim::kernel::{self, Flushes};
use plumb_sim::model::{Behaviour, IgnoresFlush, Model};

const DEPTH: u32 = 16;
const SEEDS: u64 = 3;

/// A drive in virtual time.
struct SimulatedRig {
    model: Model,
    /// True if a simulated kernel is above the drive.
    has_kernel: bool,
    wce: Option<bool>,
    seed: u64,
    clock: Arc<VirtualClock>,
    handle: Option<Handle>,
    pool: Pool,
}

impl SimulatedRig {
    fn new(model: Model, wce: Option<bool>, seed: u64) -> Self {
        Self { pool: pool(&model), model, has_kernel: false, wce, seed, clock: Arc::default(), handle: None }
    }

    fn drive(&self) -> &Handle {
        self.handle.as_ref().unwrap()
    }

    fn device(&self) -> Arc<dyn Device> {
        let device = self.drive().device();
        let time = Time::Virtual(Arc::clone(&self.clock));
        if self.has_kernel { kernel::above(device, &time, Flushes::AsLinux) } else { device }
    }
}

fn pool(model: &Model) -> Pool {
    let buffer = model.geometry.logical_block.0 * 16;
    Pool::new(PoolShape { buffer, count: DEPTH * 4, alignment: Bytes(512) }).unwrap()
}

fn drive(model: &Model, wce: Option<bool>, seed: u64) -> Drive {
    let options = DriveOptions { size: Some(Bytes::mib(64)), wce, seed, ..DriveOptions::default() };
    Drive::new(model, options).unwrap()
}

impl Rig for SimulatedRig {
    fn describe(&self) -> String {
        format!("{} in virtual time, wce {:?}, seed {}", self.model.name, self.wce, self.seed)
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        self.seed += 1000;
        let time = Time::Virtual(Arc::clone(&self.clock));
        let handle = Handle::new(drive(&self.model, self.wce, self.seed), time);
        self.handle = Some(handle);
        Ok(self.device())
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    fn let_time_pass(&mut self) {
        let until = self.clock.now() + Nanos::millis(1);
        while self.clock.advance(until) < until {}
    }

    fn cut_power(&mut self) -> std::result::Result<Arc<dyn Device>, CannotStage> {
        self.drive().with(Drive::cut_power);
        self.drive().with(Drive::power_on);
        Ok(self.device())
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        let fault = Fault::next(CommandKind::Flush, Effect::Fail(Errno::EIO));
        self.drive().with(|drive, _| drive.set_fault(fault));
        Ok(())
    }

    fn hold_next_request(&mut self) -> std::result::Result<(), CannotStage> {
        let fault = Fault::next(CommandKind::Any, Effect::Timeout);
        self.drive().with(|drive, _| drive.set_fault(fault));
        Ok(())
    }

    fn release_held(&mut self) {
        self.drive().with(Drive::release_held);
    }
}

/// Rig of a simulated drive in real time.
struct RealTimeRig {
    model: Model,
    seed: u64,
    clock: Arc<dyn Clock>,
    handle: Option<Handle>,
    pool: Pool,
}

impl Rig for RealTimeRig {
    fn describe(&self) -> String {
        format!("{} in real time, seed {}", self.model.name, self.seed)
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        self.seed += 1000;
        let handle = Handle::new(drive(&self.model, None, self.seed), Time::Real(Arc::clone(&self.clock)));
        Ok(self.handle.insert(handle).device())
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn cut_power(&mut self) -> std::result::Result<Arc<dyn Device>, CannotStage> {
        let handle = self.handle.as_ref().unwrap();
        handle.with(Drive::cut_power);
        handle.with(Drive::power_on);
        Ok(handle.device())
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        let fault = Fault::next(CommandKind::Flush, Effect::Fail(Errno::EIO));
        self.handle.as_ref().unwrap().with(|drive, _| drive.set_fault(fault));
        Ok(())
    }
}

/// Returns true if the model keeps the contract: no lies, and no damage beyond that of a cut.
fn is_honest(behaviour: &Behaviour) -> bool {
    let damage = &behaviour.damage;
    behaviour.ignores_flush == IgnoresFlush::Never
        && !behaviour.driver_drops_flush
        && !behaviour.ignores_fua
        && !behaviour.reports_write_through
        && !behaviour.battery_dead
        && damage.torn + damage.shorn + damage.misdirected + damage.unserialized == 0.0
}

#[test]
fn every_honest_model_keeps_the_contract_in_virtual_time() {
    for model in
        Model::all().unwrap().into_iter().filter(|model| is_honest(&model.behaviour) && model.name != "null")
    {
        for wce in [None, Some(true), Some(false)] {
            for seed in 0..SEEDS {
                let mut rig = SimulatedRig::new(model.clone(), wce, seed);
                conformance::run(&mut rig, seed).assert_conforms();
            }
        }
    }
}

#[test]
fn a_kernel_above_a_drive_keeps_the_contract() {
    // With and without FUA, and with and without a volatile cache.
    for name in ["consumer-nvme-ssd", "consumer-sata-ssd", "nearline-4tb"] {
        for wce in [Some(true), None] {
            for seed in 0..SEEDS {
                let model = Model::named(name).unwrap();
                let mut rig = SimulatedRig { has_kernel: true, ..SimulatedRig::new(model, wce, seed) };
                conformance::run(&mut rig, seed).assert_conforms();
            }
        }
    }
}

#[test]
fn a_drive_that_knows_of_its_dead_battery_keeps_the_contract() {
    for name in ["plp-nvme-ssd", "enterprise-sata-ssd", "nearline-4tb"] {
        let mut model = Model::named(name).unwrap();
        let behaviour = &mut model.behaviour;
        (behaviour.protected, behaviour.battery_dead, behaviour.battery_noticed) = (true, true, true);
        for seed in 0..SEEDS {
            let mut rig = SimulatedRig::new(model.clone(), None, seed);
            conformance::run(&mut rig, seed).assert_conforms();
        }
    }
}

/// Returns an array behind a controller with a cache and the given `behaviour`.
fn with_controller(behaviour: &str) -> Model {
    let honest = "protected = { value = false, source = \"nothing in the field report says so\" }";
    let space = include_str!("../models/hdd-space.toml").replacen(honest, behaviour, 1);
    let space = space.replacen("\"nearline-4tb\"", "\"consumer-nvme-ssd\"", 1);
    Model::from_text("mine.toml", &(space + include_str!("array_controller.toml"))).unwrap()
}

#[test]
fn a_controller_with_a_cache_keeps_the_contract_unless_it_relies_on_a_dead_battery() {
    let dead = "protected = true\nbattery_dead = true";
    let dead_and_known = format!("{dead}\nbattery_noticed = true");
    for behaviour in ["protected = true", "protected = false", &dead_and_known] {
        for (wce, seed) in [None, Some(false)].into_iter().flat_map(|wce| (0..SEEDS).map(move |s| (wce, s))) {
            let mut rig = SimulatedRig::new(with_controller(behaviour), wce, seed);
            conformance::run(&mut rig, seed).assert_conforms();
        }
    }
    let is_found = (0..12).any(|seed| {
        let mut rig = SimulatedRig::new(with_controller(dead), None, seed);
        conformance::run(&mut rig, seed).failed().next().is_some()
    });
    assert!(is_found, "a dead battery that the controller relies on passed");
}

#[test]
fn fast_models_keep_the_contract_in_real_time() {
    for name in ["memory", "plp-nvme-ssd"] {
        let model = Model::named(name).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let mut rig = RealTimeRig { pool: pool(&model), model, seed: 1, clock, handle: None };
        conformance::run(&mut rig, 1).assert_conforms();
    }
}

/// Makes a behaviour dishonest.
type Lie = fn(&mut Behaviour);

/// The kit must find dishonest drives, or the tests of honest ones would prove nothing.
#[test]
fn every_lie_is_found() {
    let honest = Model::named("consumer-nvme-ssd").unwrap();
    let lies: [(&str, Lie); 5] = [
        ("ignores flushes", |behaviour| behaviour.ignores_flush = IgnoresFlush::Always),
        ("ignores the last flush", |behaviour| behaviour.ignores_flush = IgnoresFlush::Last(1)),
        ("a driver drops flushes", |behaviour| behaviour.driver_drops_flush = true),
        ("ignores FUA", |behaviour| behaviour.ignores_fua = true),
        ("damages", |behaviour| behaviour.damage.torn = 1.0),
    ];
    for (lie, tell) in lies {
        let mut model = honest.clone();
        tell(&mut model.behaviour);
        let found = (0..12).any(|seed| {
            let mut rig = SimulatedRig::new(model.clone(), None, seed);
            let report = conformance::run(&mut rig, seed);
            report.failed().next().is_some()
        });
        assert!(found, "a drive that {lie} passed");
    }
}
