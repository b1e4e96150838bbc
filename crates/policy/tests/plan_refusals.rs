//! Tests that every disk that must not be changed is refused with a reason and a remedy, and that everything
//! else is planned: guards against refusals lost between view and plan, and against plans that depend on the
//! date.

use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_block::FailureKind;
use plumb_policy::apply::{Session, apply_in};
use plumb_policy::claims::{Claim, Claims};
use plumb_policy::mock::{MockDisk, MockGateway, MockKind, Trap};
use plumb_policy::plan::{Ask, DiskSelection, Plan, PlanRequest, load, make};
use plumb_policy::select::Selection;
use plumb_policy::state::FoundState;

fn now() -> Timestamp {
    "2026-11-22T00:00:00Z".parse().unwrap()
}

fn plan(gateway: &MockGateway, asked: PlanRequest, names: &[&str], claims: &Claims) -> Plan {
    let wanted = match names {
        [] => DiskSelection::All,
        names => DiskSelection::Named(names.iter().map(ToString::to_string).collect()),
    };
    make(gateway, &Ask::new(asked, wanted, claims, now())).unwrap()
}

fn assert_refused(plan: &Plan, name: &str, words: &str) {
    let found = plan.refused.iter().find(|refused| refused.name == name);
    let refused = found.unwrap_or_else(|| panic!("{name} was not refused: {plan:#?}"));
    assert!(refused.reason.contains(words), "{name}: {}", refused.reason);
    assert!(!refused.remedy.is_empty(), "{name}: {}", refused.reason);
    assert!(plan.changes.iter().all(|change| change.name != name), "{name} is planned too");
}

#[test]
fn what_must_not_be_changed_is_refused_with_a_reason() {
    let gateway = MockGateway::new([
        MockDisk::new(MockKind::Sata),
        MockDisk::new(MockKind::Raid),
        MockDisk::new(MockKind::Usb).with(|disk| disk.has_page = false),
        MockDisk::new(MockKind::Sas).with(|disk| disk.changeable = false),
        MockDisk::new(MockKind::Sas).with(|disk| disk.write_protected = true),
        MockDisk::new(MockKind::Sas).with(|disk| disk.serial = "TWIN".into()),
        MockDisk::new(MockKind::Sas).with(|disk| disk.serial = "TWIN".into()),
        MockDisk::new(MockKind::Sas),
        MockDisk::new(MockKind::Sas).with(|disk| disk.denied = true),
    ]);
    gateway.partition("sda", "sda1", "root");
    gateway.md("md0", "raid1", &["sdh"]);
    gateway.md_action("md0", "resync");
    let claims = Claims::default();
    let names = ["sda", "sda1", "sdb", "sdc", "sdd", "sde", "sdf", "sdg", "sdh", "sdi", "md0"];
    let plan = plan(&gateway, PlanRequest::Off, &names, &claims);
    for (name, words) in [
        ("sda1", "a part of sda"),
        ("sdb", "RAID controller"),
        ("sdc", "no caching page"),
        ("sdd", "does not let"),
        ("sde", "write-protected"),
        ("sdf", "same identity"),
        ("sdg", "same identity"),
        ("sdh", "resync"),
        ("sdi", "cannot be asked"),
        ("md0", "no write cache of its own"),
    ] {
        assert_refused(&plan, name, words);
    }
    let changed: Vec<&str> = plan.changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(changed, ["sda"]);
    assert!(plan.changes[0].canary);
    let ask =
        Ask::new(PlanRequest::Off, DiskSelection::Named(vec!["sda".into(), "sdz".into()]), &claims, now());
    let unknown = make(&gateway, &ask).unwrap_err();
    assert_eq!(unknown.failure(), FailureKind::Usage, "{unknown}: a name that stands for nothing");
    assert!(unknown.to_string().contains("sdz"), "{unknown}");
}

#[test]
fn a_loop_device_past_the_page_cache_is_not_said_to_be_cached_there() {
    for (direct, words) in [("0", "its cache is the page cache"), ("1", "its writes go past the page cache")]
    {
        let gateway = MockGateway::new([MockDisk::new(MockKind::Sas)]);
        gateway.mount("sda", "/srv", "ext4", "rw");
        gateway.loop_over("loop1", "/srv/inner.img", "sda");
        gateway.put_text("/sys/devices/virtual/block/loop1/loop/dio", direct);
        let plan = plan(&gateway, PlanRequest::Off, &["loop1"], &Claims::default());
        assert_refused(&plan, "loop1", words);
    }
}

#[test]
fn what_is_no_disk_or_one_path_of_several_is_refused_with_what_to_do() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)]);
    gateway.pseudo("loop0");
    gateway.pseudo("zram0");
    gateway.mount_elsewhere("/mnt/nfs", "nfs4", "server:/export");
    gateway.device_mapper("dm-0", "mpath-3600", &["sda", "sdb"]);
    gateway.partition("sda", "sda1", "data");
    let names = ["loop0", "zram0", "/mnt/nfs", "/mnt/nfs/a-file", "/dev/sda1", "sda", "sdb", "dm-0"];
    for asked in [PlanRequest::Off, PlanRequest::On, PlanRequest::Protected] {
        let plan = plan(&gateway, asked, &names, &Claims::default());
        assert!(plan.changes.is_empty(), "{plan:#?}");
        for (name, reason, remedy) in [
            ("loop0", "a loop device on a file", "name the disk"),
            ("zram0", "is memory", "nothing can be changed"),
            ("/mnt/nfs", "a path on nfs4", "on the machine that has them"),
            ("/mnt/nfs/a-file", "a path on nfs4", "on the machine that has them"),
            ("sda1", "a part of sda", "name the disk: sda"),
            ("dm-0", "no write cache of its own", "sda, sdb"),
        ] {
            assert_refused(&plan, name, reason);
            let refused = plan.refused.iter().find(|refused| refused.name == name).unwrap();
            assert!(refused.remedy.contains(remedy), "{name}: {}", refused.remedy);
        }
        if asked == PlanRequest::Off {
            for (name, other) in [("sda", "sdb"), ("sdb", "sda")] {
                assert_refused(&plan, name, &format!("the other paths are {other}"));
                let refused = plan.refused.iter().find(|refused| refused.name == name).unwrap();
                assert!(
                    refused.remedy.contains(&format!("/sys/block/{other}/device/rescan")),
                    "{}",
                    refused.remedy
                );
            }
        }
    }
}

#[test]
fn a_plan_of_another_machine_is_refused() {
    let here = MockGateway::new([MockDisk::new(MockKind::Sas)]);
    let there = MockGateway::new([MockDisk::new(MockKind::Sas)]);
    there.put_text("/proc/sys/kernel/random/boot_id", "5a9d\n");
    let plan = plan(&there, PlanRequest::Off, &[], &Claims::default());
    let root = tempfile::tempdir().unwrap();
    let (claims, stop) = (Claims::default(), AtomicBool::new(false));
    let session = Session { gateway: &here, claims: &claims, now: now(), stop: &stop, progress: &|_| () };
    let error = apply_in(&session, &plan, root.path()).unwrap_err();
    assert_eq!(error.failure(), FailureKind::Refused);
    assert!(
        error.to_string().contains("of another machine") && error.to_string().contains("make a new plan"),
        "{error}"
    );
    assert_eq!(here.changes(), 0);
}

#[test]
fn enabling_is_refused_where_flushes_would_be_dropped_above() {
    let gateway = MockGateway::new([
        MockDisk::new(MockKind::Sas).off(),
        MockDisk::new(MockKind::Sas).off(),
        MockDisk::new(MockKind::Sas).off(),
    ]);
    gateway.mount("sda", "/srv", "ext4", "rw,nobarrier");
    gateway.partition("sdc", "sdc1", "zfs-1234");
    let plan = plan(&gateway, PlanRequest::On, &[], &Claims::default());
    assert_refused(&plan, "sda", "flushes would be lost");
    assert_refused(&plan, "sdc", "ZFS");
    assert_eq!(plan.changes.len(), 1);
}

#[test]
fn protected_needs_a_claim_that_has_not_ended() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)]);
    let word = |name: &str, until: &str| Claim {
        identity: gateway.disk(name).unwrap().identity(),
        who: "R. Miller".into(),
        until: until.parse().unwrap(),
        reason: "data sheet".into(),
    };
    let claims =
        Claims { claims: vec![word("sda", "2027-01-01T00:00:00Z"), word("sdb", "2026-11-21T00:00:00Z")] };
    let with_words = plan(&gateway, PlanRequest::Protected, &[], &claims);
    assert_refused(&with_words, "sdb", "R. Miller that its cache survives a power cut expired at 2026-11-21");
    assert_eq!(with_words.changes[0].name, "sda");
    assert!(with_words.changes[0].protection.as_ref().unwrap().claim.contains("R. Miller"));
    let without = plan(&gateway, PlanRequest::Protected, &[], &Claims::default());
    assert_refused(&without, "sda", "nothing says");
}

#[test]
fn disks_are_chosen_by_expression_and_left_alone_where_nothing_is_to_do() {
    let gateway = MockGateway::new([
        MockDisk::new(MockKind::Sata),
        MockDisk::new(MockKind::Sas).off(),
        MockDisk::new(MockKind::Sas),
        MockDisk::new(MockKind::Nvme),
        MockDisk::new(MockKind::Sas).trapped(Trap::Queue),
    ]);
    let claims = Claims::default();
    let ask = |asked, expression: &str| {
        let filter = Some(Selection::parse(expression).unwrap());
        let ask = Ask { filter, ..Ask::new(asked, DiskSelection::All, &claims, now()) };
        make(&gateway, &ask).unwrap()
    };
    let plan = ask(PlanRequest::Off, "transport = sas and size > 1TB");
    let names =
        |plan: &Plan| -> Vec<String> { plan.changes.iter().map(|change| change.name.clone()).collect() };
    assert_eq!(names(&plan), ["sdc", "sdd"]);
    assert_eq!((plan.unchanged[0].name.as_str(), plan.unchanged[0].state), ("sdb", FoundState::Off));
    let healed = ask(PlanRequest::Heal, "transport != loop");
    assert_eq!(names(&healed), ["sdd"]);
    assert_eq!(healed.unchanged.len(), 4, "{healed:#?}");
}

#[test]
fn a_plan_is_the_same_whenever_it_is_made_and_survives_its_file() {
    let kinds = [MockKind::Sas, MockKind::Sata, MockKind::Nvme];
    let gateway = MockGateway::new((0..40).map(|index| MockDisk::new(kinds[index % 3])));
    let first = plan(&gateway, PlanRequest::Off, &[], &Claims::default());
    let mut second = plan(&gateway, PlanRequest::Off, &[], &Claims::default());
    second.made_at.clone_from(&first.made_at);
    second.hash = second.hash_now();
    assert_eq!(first, second);
    assert_eq!(gateway.changes(), 0, "planning changes nothing");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plan.json");
    std::fs::write(&path, first.to_json().unwrap()).unwrap();
    assert_eq!(load(&path).unwrap(), first);
}
