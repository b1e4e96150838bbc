//! Tests of namespaces of one NVMe controller, which share a write cache: a plan shows all of them, changes
//! them once, and is refused if one of them must not be changed or was left out. Guards against switching an
//! unselected cache, and against an apply that stops half-way because a change of one namespace was already a
//! change of the other.

use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_block::FailureKind;
use plumb_policy::apply::{ApplyEnd, Session, apply_in};
use plumb_policy::claims::{Claim, Claims};
use plumb_policy::error::PolicyError;
use plumb_policy::gateway::Change;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind};
use plumb_policy::plan::{Ask, DiskSelection, Plan, PlanRequest, make};
use plumb_policy::rollback::rollback_in;
use plumb_policy::select::Selection;

fn now() -> Timestamp {
    "2026-11-22T00:00:00Z".parse().unwrap()
}

/// Returns two namespaces of nvme0, one of nvme1.
fn machine() -> MockGateway {
    let namespace = |controller: &str, name: &str| {
        let (controller, name) = (controller.to_owned(), name.to_owned());
        MockDisk::new(MockKind::Nvme).with(|disk| (disk.controller, disk.name) = (controller, name))
    };
    MockGateway::new([
        namespace("nvme0", "nvme0n1"),
        namespace("nvme0", "nvme0n2"),
        namespace("nvme1", "nvme1n1"),
    ])
}

fn plan(
    gateway: &MockGateway,
    asked: PlanRequest,
    names: &[&str],
    expression: Option<&str>,
    claims: &Claims,
) -> Plan {
    let wanted = match names {
        [] => DiskSelection::All,
        names => DiskSelection::Named(names.iter().map(ToString::to_string).collect()),
    };
    let filter = expression.map(|expression| Selection::parse(expression).unwrap());
    make(gateway, &Ask { filter, ..Ask::new(asked, wanted, claims, now()) }).unwrap()
}

fn off(gateway: &MockGateway, names: &[&str], expression: Option<&str>) -> Plan {
    plan(gateway, PlanRequest::Off, names, expression, &Claims::default())
}

fn changed(plan: &Plan) -> Vec<&str> {
    plan.changes.iter().map(|change| change.name.as_str()).collect()
}

fn refusal<'a>(plan: &'a Plan, name: &str) -> &'a str {
    let found = plan.refused.iter().find(|refused| refused.name == name);
    let refused = found.unwrap_or_else(|| panic!("{name} was not refused: {plan:#?}"));
    assert!(!refused.remedy.is_empty());
    &refused.reason
}

#[test]
fn all_namespaces_are_one_change_that_flushes_each() {
    let gateway = machine();
    gateway.mount("nvme0n2", "/", "ext4", "rw");
    for names in [&[][..], &["nvme0n2", "nvme1n1"], &["nvme0n1", "nvme1n1"]] {
        let plan = off(&gateway, names, None);
        assert_eq!(plan.changes.len(), 2, "{plan:#?}");
        // The root file system on one namespace makes both critical.
        assert_eq!(plan.changes[0].name, "nvme1n1", "{:?}", changed(&plan));
        let both = &plan.changes[1];
        assert_eq!(both.shares_cache_with.len(), 1);
        let on: Vec<&str> = both.steps.iter().map(|step| step.on.as_str()).collect();
        assert!(on.first() == on.last() && on.contains(&"nvme0n1") && on.contains(&"nvme0n2"), "{on:?}");
        assert!(plan.unchanged.is_empty() && plan.refused.is_empty(), "{plan:#?}");
    }
}

#[test]
fn one_change_switches_all_and_comes_back() {
    let gateway = machine();
    let plan = off(&gateway, &[], None);
    let root = tempfile::tempdir().unwrap();
    let (claims, stop) = (Claims::default(), AtomicBool::new(false));
    let session = Session { gateway: &gateway, claims: &claims, now: now(), stop: &stop, progress: &|_| () };
    let report = apply_in(&session, &plan, root.path()).unwrap();
    assert_eq!(report.ended, ApplyEnd::Complete, "{report:#?}");
    let caches = || ["nvme0n1", "nvme0n2", "nvme1n1"].map(|name| gateway.disk(name).unwrap().wce);
    assert_eq!(caches(), [false; 3]);
    // The namespace without a change of its own was flushed before the cache was switched off.
    let log = gateway.log();
    let switched = log
        .iter()
        .position(|(disk, change)| disk.name == "nvme0n1" && matches!(change, Change::NvmeAdmin(_)));
    let flushed = log.iter().position(|(disk, change)| disk.name == "nvme0n2" && *change == Change::Flush);
    assert!(flushed.unwrap() < switched.unwrap(), "{log:#?}");
    assert_eq!(rollback_in(&session, &report.journal).unwrap().ended, ApplyEnd::Complete);
    assert_eq!(caches(), [true; 3]);
}

#[test]
fn a_namespace_that_is_left_out_or_must_not_be_changed_forbids_all() {
    let gateway = machine();
    let plan = off(&gateway, &[], Some("name != nvme0n2"));
    assert_eq!(changed(&plan), ["nvme1n1"]);
    assert!(refusal(&plan, "nvme0n1").contains("leaves nvme0n2 out"));

    gateway.md("md0", "raid1", &["nvme0n2"]);
    gateway.md_action("md0", "resync");
    let plan = off(&gateway, &["nvme0n1", "nvme1n1"], None);
    assert_eq!(changed(&plan), ["nvme1n1"]);
    assert!(refusal(&plan, "nvme0n1").contains("nvme0n2 must not be changed: the array md0"), "{plan:#?}");

    // Between the plan and its turn.
    gateway.md_action("md0", "idle");
    let plan = off(&gateway, &["nvme0n1"], None);
    gateway.md_action("md0", "resync");
    let root = tempfile::tempdir().unwrap();
    let (claims, stop) = (Claims::default(), AtomicBool::new(false));
    let session = Session { gateway: &gateway, claims: &claims, now: now(), stop: &stop, progress: &|_| () };
    let error = apply_in(&session, &plan, root.path()).unwrap_err();
    assert!(matches!(&error, PolicyError::Refused { disk, .. } if disk == "nvme0n1"), "{error}");
    assert_eq!(gateway.changes(), 0);
}

/// Checks that the plan is refused before anything is done. Returns the words of the refusal.
fn refused_now(gateway: &MockGateway, plan: &Plan) -> String {
    let root = tempfile::tempdir().unwrap();
    let (claims, stop) = (Claims::default(), AtomicBool::new(false));
    let session = Session { gateway, claims: &claims, now: now(), stop: &stop, progress: &|_| () };
    let error = apply_in(&session, plan, root.path()).unwrap_err();
    assert_eq!(error.failure(), FailureKind::Refused, "{error}");
    assert_eq!(gateway.changes(), 0, "{error}");
    error.to_string()
}

#[test]
fn another_set_of_namespaces_than_was_planned_is_refused() {
    let gateway = machine();
    let alone = off(&gateway, &["nvme1n1"], None);
    let both = off(&gateway, &["nvme0n1"], None);
    gateway.appear(
        MockDisk::new(MockKind::Nvme)
            .with(|disk| (disk.controller, disk.name) = ("nvme1".into(), "nvme1n2".into())),
    );
    let words = refused_now(&gateway, &alone);
    assert!(
        words.contains("share a write cache with nvme1n1 changed")
            && words.contains("nothing then, nvme1n2 now"),
        "{words}"
    );

    gateway.mount("nvme0n2", "/srv", "ext4", "rw");
    let words = refused_now(&gateway, &both);
    assert!(words.contains("what uses nvme0n2") && words.contains("nothing before, /srv now"), "{words}");
    let both = off(&gateway, &["nvme0n1"], None);
    gateway.meddle("nvme0n2", |disk| disk.serial = "ANOTHER".into());
    let words = refused_now(&gateway, &both);
    assert!(words.contains("nvme0n2, which has the same write cache as nvme0n1, was"), "{words}");
    let both = off(&gateway, &["nvme0n1"], None);
    gateway.vanish("nvme0n2");
    let words = refused_now(&gateway, &both);
    assert!(words.contains("nvme0n2 then, nothing now"), "{words}");
}

#[test]
fn a_namespace_behind_several_controllers_is_refused() {
    let shared = |name: &str| {
        let name = name.to_owned();
        MockDisk::new(MockKind::Nvme).with(|disk| (disk.name, disk.in_subsystem) = (name, true))
    };
    let gateway = MockGateway::new([shared("nvme0n1"), shared("nvme3n1")]);
    let plan = off(&gateway, &[], None);
    assert_eq!(changed(&plan), ["nvme0n1", "nvme3n1"], "one controller leads to each: {plan:#?}");
    gateway.nvme_path("nvme0n1", "nvme1");
    let words = refused_now(&gateway, &plan);
    assert!(words.contains("reached over several controllers (nvme0, nvme1)"), "{words}");

    let plan = off(&gateway, &[], None);
    assert_eq!(changed(&plan), ["nvme3n1"]);
    assert!(refusal(&plan, "nvme0n1").contains("several controllers (nvme0, nvme1)"));
    let refused = plan.refused.iter().find(|refused| refused.name == "nvme0n1").unwrap();
    assert!(refused.remedy.contains("`nvme set-feature /dev/nvme1 -f 6 -V 0`"), "{}", refused.remedy);
}

#[test]
fn enabling_never_leaves_a_sibling_without_flushes() {
    let gateway = machine();
    for name in ["nvme0n1", "nvme0n2"] {
        gateway.meddle(name, |disk| disk.wce = false);
    }
    gateway.meddle("nvme0n2", |disk| disk.kernel.disabled = true);
    let on = plan(&gateway, PlanRequest::On, &["nvme0n1"], None, &Claims::default());
    assert!(refusal(&on, "nvme0n1").contains("would send nvme0n2 no flushes"));
    gateway.meddle("nvme0n2", |disk| disk.kernel.disabled = false);

    let word = |name: &str| Claim {
        identity: gateway.disk(name).unwrap().identity(),
        who: "R. Miller".into(),
        until: "2027-01-01T00:00:00Z".parse().unwrap(),
        reason: "data sheet".into(),
    };
    let claims = Claims { claims: vec![word("nvme0n1")] };
    let protected = plan(&gateway, PlanRequest::Protected, &["nvme0n1"], None, &claims);
    assert!(refusal(&protected, "nvme0n1").contains("before its flushes are suppressed"), "{protected:#?}");
    // With the cache on, the kernel's view is separate for each namespace.
    for name in ["nvme0n1", "nvme0n2"] {
        gateway.meddle(name, |disk| disk.wce = true);
    }
    let protected = plan(&gateway, PlanRequest::Protected, &["nvme0n1"], None, &claims);
    assert_eq!(changed(&protected), ["nvme0n1"], "{protected:#?}");
    assert!(protected.changes[0].shares_cache_with.is_empty());
}
