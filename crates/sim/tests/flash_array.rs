//! Tests of arrays: the cluster disk of article A is as fast with its cache off, the columns of article C add
//! up, and a quorum does not wait for the slowest copy.
use plumb_block::{Bytes, Nanos, Op};
use plumb_sim::Sectors;
use plumb_sim::figures::probe::{Probe, Taken};
use plumb_sim::model::{Model, Parameters, Time};
use plumb_sim::timing::array::{self, Acknowledge, ArrayTiming, MemberCaches};
use plumb_sim::timing::null::{self, NullTiming};
use plumb_sim::timing::{Timing, flash::FillState};

const SIZE: Bytes = Bytes::gib(4);
const WRITE: Op = Op::Write { fua: false };

fn random(timing: &mut dyn Timing, (depth, count): (u64, u64), op: Op, sectors: u64) -> Taken {
    let places = SIZE.0 / 512 / sectors;
    let mut state = 1_u64;
    Probe::new(timing).run(depth, count, |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (op, Sectors { first: (state >> 33) % places * sectors, count: sectors })
    })
}

#[test]
fn the_cluster_disk_of_article_a_does_not_care_for_the_cache_setting() {
    let model = Model::named("all-flash-cluster").unwrap();
    let run = |wce: bool, op: Op, sectors: u64| {
        let mut timing = model.timing(SIZE, 7);
        timing.set_wce(Nanos(0), wce);
        random(&mut *timing, (64, 10_000), op, sectors)
    };
    for op in [WRITE, Op::Read] {
        let (on, off) = (run(true, op, 16).iops(), run(false, op, 16).iops());
        println!("8 KiB, depth 64, {op:?}: on {on:.0}, off {off:.0}");
        assert!((off / on - 1.0).abs() < 0.02, "{op:?}: on {on}, off {off}");
    }
    let reads = run(false, Op::Read, 64).iops() * 32_768.0 / 1e9;
    assert!((reads / 2.25 - 1.0).abs() < 0.05, "article A: 2.25 GB/s for each machine, here {reads}");
}

#[test]
fn four_columns_of_disks_do_more_than_one_disk() {
    let run = |name: &str| {
        let mut timing = Model::named(name).unwrap().timing(SIZE, 7);
        random(&mut *timing, (32, 300), Op::Read, 128).iops()
    };
    let (space, disk) = (run("hdd-space"), run("nearline-4tb"));
    assert!(space > disk * 2.0 && space < disk * 5.0, "{space} {disk}");
}

fn mirror(acknowledge: Acknowledge) -> ArrayTiming {
    let model = Model::named("all-flash-cluster").unwrap();
    let Parameters::Array { array, .. } = &*model.parameters else { panic!("not an array") };
    let jitter = Time(Nanos::millis(2));
    let array = array::Parameters { acknowledge, jitter, ..array.clone() };
    let caches = MemberCaches { volatile: false, wce: false };
    let member = null::Parameters { latency: Time(Nanos::micros(100)) };
    ArrayTiming::new(&array, SIZE, caches, 1, |_, _| Box::new(NullTiming::new(&member)))
}

#[test]
fn a_quorum_does_not_wait_for_the_slowest_copy() {
    let mean = |acknowledge| random(&mut mirror(acknowledge), (1, 2000), WRITE, 8).mean;
    let (all, quorum) = (mean(Acknowledge::All), mean(Acknowledge::Quorum));
    assert!(quorum < all && quorum > Nanos::micros(220), "{quorum} {all}");
    // A read uses one copy, whatever writes wait for.
    let read = random(&mut mirror(Acknowledge::All), (1, 2000), Op::Read, 8).mean;
    assert!(read < quorum, "{read} {quorum}");
}

#[test]
fn the_fill_of_members_is_that_of_their_model() {
    let model = Model::named("all-flash-cluster").unwrap();
    let Parameters::Array { member, .. } = &*model.parameters else { panic!("not an array") };
    let Parameters::Flash(flash) = &*member.parameters else { panic!("not flash") };
    assert_eq!(flash.state, FillState::Filled);
}
