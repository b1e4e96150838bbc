//! Tests that policies switched for blocks are restored at the end, and after a kill at any change by the
//! next command. Guards against a change without a promise, and a promise that does not restore.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use plumb_block::FailureKind;
use plumb_compare::setting::{
    Changes, LeftChanges, Machine, PolicySetting, SchedulerSetting, Setting as _, Undo, left_changes,
};
use plumb_policy::claims::Claims;
use plumb_policy::mock::{Kill, MockDisk, MockGateway, MockKind};
use plumb_policy::state::State;
use plumb_state::whole_file::FileError;

/// Returns a directory, in memory if possible, since journals sync each record.
fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Returns a machine with two disks, the second of which is off.
fn machine(place: &Path) -> (Arc<Machine>, Arc<MockGateway>) {
    let named = |name: &str, disk: MockDisk| disk.with(|disk| disk.name = name.to_owned());
    let disks =
        [named("sda", MockDisk::new(MockKind::Sas)), named("sdb", MockDisk::new(MockKind::Sata).off())];
    let gateway = Arc::new(MockGateway::new(disks));
    let machine = Machine {
        gateway: gateway.clone(),
        claims: Claims::default(),
        now: Timestamp::UNIX_EPOCH,
        journals: place.join("journals"),
        records: place.join("records"),
    };
    (Arc::new(machine), gateway)
}

fn policies(machine: &Arc<Machine>) -> PolicySetting {
    let disks = ["sda", "sdb"].map(str::to_owned).to_vec();
    PolicySetting::new(Arc::clone(machine), disks, vec![State::On, State::Off])
}

fn caches(gateway: &MockGateway) -> [bool; 2] {
    ["sda", "sdb"].map(|name| gateway.disk(name).is_some_and(|disk| disk.wce))
}

/// Restores the changes of killed comparisons. Returns their descriptions, and errors.
fn put_back_left(machine: &Machine) -> Vec<String> {
    let put_back = |left: Result<LeftChanges, FileError>| match left {
        Ok(left) => (left.words(), left.put_back(machine).map_err(|error| error.to_string())),
        Err(damaged) => (damaged.to_string(), Ok(())),
    };
    let each = left_changes(&machine.records).unwrap().into_iter().map(put_back);
    each.map(|(words, outcome)| outcome.map_or_else(|error| error, |()| words)).collect()
}

fn left(place: &Path) -> usize {
    std::fs::read_dir(place.join("records")).map_or(0, Iterator::count)
}

#[test]
fn levels_are_set_as_often_as_they_come_and_put_back() {
    let place = place();
    let (machine, gateway) = machine(place.path());
    let mut setting = policies(&machine);
    for level in [0, 1, 1, 0, 1, 0] {
        setting.set(level).unwrap();
        assert_eq!(caches(&gateway), [level == 0; 2]);
    }
    assert_eq!(left(place.path()), 1);
    setting.restore().unwrap();
    assert_eq!((caches(&gateway), left(place.path())), ([true, false], 0));
    // Only the journals of the restoration are kept, and the lock.
    assert_eq!(std::fs::read_dir(place.path().join("journals")).unwrap().count(), 3);
    setting.restore().unwrap();
    let refused =
        PolicySetting::new(machine, vec!["sda".to_owned()], vec![State::Protected]).set(0).unwrap_err();
    assert_eq!(refused.failure(), FailureKind::Refused, "nobody claims that it is protected: {refused}");
}

#[test]
fn a_disk_is_of_one_experiment_and_a_damaged_record_keeps_no_other_from_being_put_back() {
    let place = place();
    let (machine, gateway) = machine(place.path());
    let mut one = policies(&machine);
    one.set(1).unwrap();
    let refused = policies(&machine).set(0).unwrap_err();
    assert!(refused.failure() == FailureKind::Refused && refused.to_string().contains("another comparison"));
    // The comparison is killed, and the first of its records is damaged.
    drop(one);
    std::fs::write(place.path().join("records/0-0"), "no record\nno record\n").unwrap();
    let said = put_back_left(&machine);
    assert_eq!((caches(&gateway), left(place.path())), ([true, false], 1), "{said:?}");
    assert!(said.iter().any(|line| line.contains("records/0-0")), "{said:?}");
    policies(&machine).set(0).unwrap();
}

#[test]
fn after_a_kill_at_any_change_it_can_be_put_back() {
    let switched =
        |setting: &mut PolicySetting| [0, 1, 0].into_iter().try_for_each(|level| setting.set(level));
    let all = {
        let place = place();
        let (machine, gateway) = machine(place.path());
        switched(&mut policies(&machine)).unwrap();
        gateway.changes()
    };
    assert!(all > 4, "{all} changes");
    for kill in (0..all).flat_map(|number| [Kill::Before(number), Kill::After(number)]) {
        let place = place();
        let (machine, gateway) = machine(place.path());
        gateway.kill(kill);
        let mut setting = policies(&machine);
        let killed = catch_unwind(AssertUnwindSafe(|| switched(&mut setting)));
        assert!(killed.is_err(), "{kill:?}");
        assert_eq!(put_back_left(&machine), [""; 0], "its process lives");
        drop(setting);
        let looked = left_changes(&machine.records).unwrap().len();
        assert_eq!((looked, left(place.path())), (1, 1), "{kill:?}: looking changes nothing");
        let said = put_back_left(&machine);
        assert_eq!((caches(&gateway), left(place.path())), ([true, false], 0), "{kill:?}: {said:?}");
        assert!(said.len() == 1 && said[0].contains("the write-cache policy"), "{kill:?}: {said:?}");
    }
}

#[test]
fn what_was_there_first_is_put_back_and_only_in_the_same_boot() {
    let place = place();
    let (machine, gateway) = machine(place.path());
    let boot = gateway_boot(&machine);
    let file = |name: &str| place.path().join(name);
    for name in ["same", "other"] {
        std::fs::write(file(name), "changed").unwrap();
    }
    let mut changes = Changes::new(Arc::clone(&machine));
    for (name, text, boot) in
        [("same", "first", &*boot), ("same", "second", &*boot), ("other", "first", "another")]
    {
        let (path, text, boot) = (file(name), text.to_owned(), boot.to_owned());
        changes.promise(Undo::Attribute { path, text, boot }).unwrap();
    }
    changes.restore().unwrap();
    let held = ["same", "other"].map(|name| std::fs::read_to_string(file(name)).unwrap());
    assert_eq!(held, ["first", "changed"]);
    let ways = [vec!["sda".to_owned()], vec![]];
    gateway.put_text("/sys/class/block/sda/queue/scheduler", "[none] mq-deadline\n");
    assert!(SchedulerSetting::new(Arc::clone(&machine), &ways, vec!["mq-deadline".to_owned()]).is_ok());
    let refused = SchedulerSetting::new(machine, &ways, vec!["bfq".to_owned()]).err().unwrap().to_string();
    assert!(refused.contains("sda offers none, mq-deadline"), "{refused}");
}

fn gateway_boot(machine: &Machine) -> String {
    machine.gateway.tree().text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
