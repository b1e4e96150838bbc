//! Tests that changes of a disk by others are found by the next reading and by `verify`, with the layer.

use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_policy::apply::{Session, apply_in};
use plumb_policy::claims::Claims;
use plumb_policy::device::Reader;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind};
use plumb_policy::plan::{Ask, DiskSelection, PlanRequest, make};
use plumb_policy::verify::verify;
use plumb_policy::watch::{Change, Watcher};

fn look(watcher: &mut Watcher, gateway: &MockGateway) -> Vec<Change> {
    let claims = Claims::default();
    watcher.look(Reader::new(gateway, &claims, Timestamp::UNIX_EPOCH).unwrap().all())
}

#[test]
fn drift_without_an_event_is_seen_by_the_next_look_and_by_verify() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Nvme)]);
    let claims = Claims::default();
    let now = Timestamp::UNIX_EPOCH;
    let ask = Ask::new(PlanRequest::Off, DiskSelection::All, &claims, now);
    let plan = make(&gateway, &ask).unwrap();
    let stop = AtomicBool::new(false);
    let session = Session { gateway: &gateway, claims: &claims, now, stop: &stop, progress: &|_| () };
    let root = tempfile::tempdir().unwrap();
    apply_in(&session, &plan, root.path()).unwrap();

    let mut watcher = Watcher::new();
    assert!(look(&mut watcher, &gateway).is_empty());
    assert!(look(&mut watcher, &gateway).is_empty());
    // Another program switches the cache on without the kernel's knowledge: trap H3.
    gateway.meddle("sda", |disk| disk.wce = true);
    let seen = look(&mut watcher, &gateway);
    assert!(
        seen.iter()
            .any(|change| change.name == "sda" && change.what.contains("write cache of the device: off"))
    );
    assert!(seen.iter().all(|change| change.name == "sda"), "{seen:#?}");
    assert!(look(&mut watcher, &gateway).is_empty(), "it is told once");
    assert!(watcher.metrics().contains("plumb_policy_write_cache_enabled{disk=\"sda\""));

    let found = verify(&session, &plan).unwrap();
    assert!(found.has_drift());
    let drifted: Vec<&str> =
        found.disks.iter().filter(|disk| !disk.drift.is_empty()).map(|disk| disk.name.as_str()).collect();
    assert_eq!(drifted, ["sda"]);
    gateway.vanish("nvme0n1");
    let gone = verify(&session, &plan).unwrap();
    let gone = gone.disks.iter().find(|disk| disk.name == "nvme0n1").unwrap();
    assert_eq!(
        (gone.name_now.as_deref(), gone.drift.as_slice()),
        (None, &["the disk is not there".to_owned()][..])
    );
}
