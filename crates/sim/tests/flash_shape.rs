//! Tests that the SSD models have the typical shape of SSDs: reads by depth, a cliff behind the SLC buffer, a
//! steady state below the fresh state, and flushes whose cost depends on the dirty data, or is zero with a
//! protected buffer.
use plumb_block::{Bytes, Nanos, Op};
use plumb_sim::command::Sectors;
use plumb_sim::figures::flash::{FlashFigure, FlashProbe};
use plumb_sim::figures::probe::Probe;
use plumb_sim::model::{Model, Parameters, Size, Wce};
use plumb_sim::timing::Timing;
use plumb_sim::timing::flash::{self, FillState, FlashTiming, WriteBuffer};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

fn parameters(name: &str) -> flash::Parameters {
    match &*Model::named(name).unwrap().parameters {
        Parameters::Flash(parameters) => parameters.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

fn measure(name: &str, size: Bytes, figure: FlashFigure) -> f64 {
    let model = Model::named(name).unwrap();
    FlashProbe { size, made: &|| model.timing(size, 1) }.measure(figure)
}

#[test]
fn the_figures_of_each_class_are_near_what_is_published() {
    for (name, mib) in [
        ("consumer-sata-ssd", 1024),
        ("consumer-nvme-ssd", 2048),
        ("plp-nvme-ssd", 512),
        ("enterprise-sata-ssd", 512),
    ] {
        let mut parameters = parameters(name);
        // The real buffer of 22 GiB takes 22 times as long.
        parameters.slc.iter_mut().for_each(|slc| slc.size = Size(Bytes::gib(1)));
        let behaviour = Model::named(name).unwrap().behaviour;
        let buffer = WriteBuffer {
            protected: behaviour.protected,
            dead: false,
            through: false,
            wce: behaviour.wce == Wce::On,
        };
        let size = Bytes::mib(mib);
        let made = || Box::new(FlashTiming::new(&parameters, size, buffer, 1)) as Box<dyn Timing>;
        let table = FlashProbe { size, made: &made }.table(name);
        println!("{name}\n{table:?}");
        assert!(!table.is_empty());
        for row in &table {
            let deviation = row.deviation.unwrap();
            assert!(
                deviation.abs() < 0.35,
                "{name}, {}: {:.0} % off\n{table:?}",
                row.name,
                deviation * 100.0
            );
        }
    }
}

#[test]
fn reads_scale_with_depth_and_then_stand_still() {
    for name in ["consumer-sata-ssd", "consumer-nvme-ssd", "plp-nvme-ssd"] {
        let rates: Vec<f64> =
            (0..=8).map(|power| measure(name, Bytes::gib(1), FlashFigure::Reads(1 << power))).collect();
        println!("{name}: {rates:.0?}");
        assert!(rates.windows(2).all(|pair| pair[1] > pair[0] * 0.98), "{name}: {rates:?}");
        assert!(rates[1] > rates[0] * 1.7, "two at a time are nearly twice as many: {rates:?}");
        assert!(rates[8] > rates[0] * 6.0, "{rates:?}");
        assert!(rates[8] < rates[7] * 1.02, "depth 256 gains nothing any more: {rates:?}");
    }
}

#[test]
fn writes_fall_off_a_cliff_behind_the_slc_buffer() {
    let mut parameters = parameters("consumer-nvme-ssd");
    let slc = parameters.slc.as_mut().unwrap();
    slc.size = Size(Bytes::gib(3));
    let size = Bytes::gib(6);
    let buffer = WriteBuffer { protected: false, dead: false, through: false, wce: true };
    let made = || Box::new(FlashTiming::new(&parameters, size, buffer, 1)) as Box<dyn Timing>;
    let cliff = FlashProbe { size, made: &made }.cliff(Bytes::mib(512));
    println!("{cliff:.0?}");
    let (fast, slow) = (cliff[..6].iter(), cliff[7..].iter());
    assert!(fast.clone().all(|(_, rate)| *rate > 2000.0), "{cliff:?}");
    assert!(slow.clone().all(|(_, rate)| (500.0..800.0).contains(rate)), "{cliff:?}");
}

/// Returns the rate of random 4 KiB writes at depth 32 in each of 20 stretches of four tenths of the
/// capacity.
fn aging(drive: &mut dyn Timing, size: Bytes) -> Vec<f64> {
    let (blocks, mut probe) = (size.0 / 4096, Probe::new(drive));
    let stretch = |seed| {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut next = |_| {
            let first = ((u128::from(chance.next_u64()) * u128::from(blocks)) >> 64) as u64 * 8;
            (Op::Write { fua: false }, Sectors { first, count: 8 })
        };
        probe.run(32, blocks * 4 / 10, &mut next).iops()
    };
    (0..20).map(stretch).collect()
}

#[test]
fn random_writes_reach_a_steady_state_below_fresh_and_spare_flash_helps() {
    let steady = |overprovisioning: f64| {
        let mut parameters = parameters("plp-nvme-ssd");
        parameters.overprovisioning = overprovisioning;
        parameters.state = FillState::Fresh;
        let size = Bytes::mib(256);
        let buffer = WriteBuffer { protected: true, dead: false, through: false, wce: false };
        aging(&mut FlashTiming::new(&parameters, size, buffer, 1), size)
    };
    let (little, much) = (steady(0.07), steady(0.4));
    println!("{little:.0?}\n{much:.0?}");
    assert!(little[19] < little[0] * 0.3, "{little:?}");
    assert!((little[19] / little[18] - 1.0).abs() < 0.05, "steady: {little:?}");
    assert!(much[19] > little[19] * 2.0, "{much:?} {little:?}");
}

#[test]
fn a_flush_costs_what_is_dirty_unless_the_buffer_is_protected() {
    let cost = |name| measure(name, Bytes::gib(1), FlashFigure::Flush);
    let consumer = ["consumer-sata-ssd", "consumer-nvme-ssd"].map(cost);
    assert!(consumer.iter().all(|ms| (0.4..5.4).contains(ms)), "{consumer:?}");
    let protected = ["plp-nvme-ssd", "enterprise-sata-ssd"].map(cost);
    assert!(protected.iter().all(|ms| (0.012..0.058).contains(ms)), "{protected:?}");
}

#[test]
fn a_stick_writes_small_pieces_at_a_crawl() {
    let random = measure("usb-stick", Bytes::gib(1), FlashFigure::Writes(1));
    let sequential = measure("usb-stick", Bytes::gib(1), FlashFigure::SequentialWrite);
    assert!((20.0..200.0).contains(&random), "{random}");
    assert!((10.0..60.0).contains(&sequential), "{sequential}");
}

#[test]
fn a_drive_on_which_nothing_was_written_answers_reads_from_nothing() {
    let parameters = flash::Parameters { state: FillState::Fresh, ..parameters("consumer-nvme-ssd") };
    let size = Bytes::gib(1);
    let buffer = WriteBuffer { protected: false, dead: false, through: false, wce: true };
    let made = || Box::new(FlashTiming::new(&parameters, size, buffer, 1)) as Box<dyn Timing>;
    let cold = FlashProbe { size, made: &made }.measure(FlashFigure::Reads(1));
    let warm = measure("consumer-nvme-ssd", size, FlashFigure::Reads(1));
    assert!(cold > warm * 3.0, "{cold} {warm}");
    assert!(Nanos::from_secs_f64(1.0 / cold) > Nanos::micros(5), "it is still a command");
}
