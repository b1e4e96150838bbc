//! Tests of a thousand disks: planned and applied in waves, with printed figures. Guards against work that
//! grows with the square of the number of disks, and against two disks of one port or array in a wave.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use jiff::Timestamp;
use plumb_policy::apply::{ApplyEnd, Session, apply_in};
use plumb_policy::claims::Claims;
use plumb_policy::gateway::Gateway as _;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind};
use plumb_policy::plan::{Ask, DiskSelection, PlanRequest, make};
use plumb_policy::rollback::rollback_in;
use plumb_policy::waves::WAVE_SIZE;

const DISKS: usize = 1000;

#[test]
fn a_thousand_disks_are_planned_applied_and_restored() {
    let kinds = [MockKind::Sas, MockKind::Sata, MockKind::Sas, MockKind::Nvme];
    let gateway = MockGateway::new((0..DISKS).map(|index| MockDisk::new(kinds[index % kinds.len()])));
    for array in 0..20 {
        let names: Vec<String> = (0..2).map(|leg| gateway_name(&gateway, array * 4 + leg)).collect();
        gateway.md(&format!("md{array}"), "raid1", &[&names[0], &names[1]]);
    }
    let claims = Claims::default();
    let now = Timestamp::UNIX_EPOCH;
    let ask = Ask::new(PlanRequest::Off, DiskSelection::All, &claims, now);
    let start = Instant::now();
    let plan = make(&gateway, &ask).unwrap();
    let planned_in = start.elapsed();
    assert_eq!(plan.changes.len(), DISKS, "{:?}", plan.refused.first());

    let mut taken = HashSet::new();
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for change in &plan.changes {
        assert!(
            taken.insert((change.wave, change.port.clone())),
            "two of {} in wave {}",
            change.port,
            change.wave
        );
        for group in &change.redundancy_groups {
            assert!(taken.insert((change.wave, group.clone())), "two of {group} in wave {}", change.wave);
        }
        *sizes.entry(change.wave).or_default() += 1;
    }
    assert_eq!(sizes[&0], 1);
    assert!(sizes.values().all(|size| *size <= WAVE_SIZE));
    assert!(plan.changes.windows(2).all(|pair| pair[0].wave <= pair[1].wave));

    // In memory, since every step has a sync, whose time depends on the disk.
    let memory = std::path::Path::new("/dev/shm");
    let root = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let stop = AtomicBool::new(false);
    let session = Session { gateway: &gateway, claims: &claims, now, stop: &stop, progress: &|_| () };
    let settled = gateway.now();
    let start = Instant::now();
    let report = apply_in(&session, &plan, root.path()).unwrap();
    let applied_in = start.elapsed();
    assert_eq!(report.ended, ApplyEnd::Complete);
    let start = Instant::now();
    let back = rollback_in(&session, &report.journal).unwrap();
    assert_eq!(back.ended, ApplyEnd::Complete);
    eprintln!(
        "{DISKS} disks, {} waves: planned in {planned_in:?}, applied in {applied_in:?} (and {} of settling in virtual \
         time), rolled back in {:?}",
        plan.waves(),
        gateway.now().since(settled),
        start.elapsed()
    );
}

/// Returns the name of the disk with this index.
fn gateway_name(gateway: &MockGateway, index: usize) -> String {
    let series: Vec<String> = gateway.tree().list("/sys/class/block").unwrap();
    let serial = format!("MOCK{index:06}");
    series.into_iter().find(|name| gateway.disk(name).is_some_and(|disk| disk.serial == serial)).unwrap()
}
