//! Tests that changes between plan and apply are found before anything is done, and that a disk that does not
//! follow a command is a mismatch, never a success.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_block::Errno;
use plumb_block::FailureKind;
use plumb_policy::apply::{ApplyEnd, DiskResult, Report, Session, apply_in, resume_in};
use plumb_policy::claims::Claims;
use plumb_policy::error::PolicyError;
use plumb_policy::gateway::{Gateway as _, GatewayError};
use plumb_policy::journal::{Lock, list};
use plumb_policy::mock::{MockDisk, MockGateway, MockKind};
use plumb_policy::plan::{Ask, DiskSelection, Plan, PlanRequest, PlannedStep, make};
use plumb_policy::rollback::rollback_in;

fn plan(gateway: &MockGateway, asked: PlanRequest) -> Plan {
    let claims = Claims::default();
    make(gateway, &Ask::new(asked, DiskSelection::All, &claims, Timestamp::UNIX_EPOCH)).unwrap()
}

fn with_session<T>(gateway: &MockGateway, body: impl FnOnce(&Session<'_>) -> T) -> T {
    let claims = Claims::default();
    let stop = AtomicBool::new(false);
    body(&Session { gateway, claims: &claims, now: Timestamp::UNIX_EPOCH, stop: &stop, progress: &|_| () })
}

fn apply(gateway: &MockGateway, plan: &Plan, root: &Path) -> Result<Report, PolicyError> {
    with_session(gateway, |session| apply_in(session, plan, root))
}

fn two_disks() -> MockGateway {
    MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)])
}

/// Changes the machine after the plan was made, and checks that the apply fails with these words.
fn drifted(meddle: impl FnOnce(&MockGateway), words: &str) {
    let root = tempfile::tempdir().unwrap();
    let gateway = two_disks();
    let plan = plan(&gateway, PlanRequest::Off);
    meddle(&gateway);
    let error = apply(&gateway, &plan, root.path()).unwrap_err();
    assert_eq!(error.failure(), FailureKind::Refused, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    let PolicyError::Refused { remedy, .. } = &error else { panic!("{error}") };
    assert!(!remedy.is_empty());
    assert_eq!(gateway.changes(), 0, "{error}");
    assert!(list(root.path()).unwrap().is_empty(), "nothing was begun, so nothing is left");
}

#[test]
fn what_has_changed_since_the_plan_is_refused_before_anything_is_done() {
    drifted(|gateway| gateway.meddle("sdb", |disk| disk.serial = "ANOTHER".into()), "but naa.");
    drifted(|gateway| gateway.vanish("sdb"), "sdb no longer exists");
    drifted(|gateway| gateway.meddle("sdb", |disk| disk.wce = false), "settings have changed");
    drifted(|gateway| gateway.meddle("sdb", |disk| disk.kernel.disabled = true), "the kernel's view");
    drifted(|gateway| gateway.mount("sdb", "/srv", "ext4", "rw"), "what uses it");
    drifted(|gateway| gateway.meddle("sdb", |disk| disk.registrations = 2), "may be shared");
    drifted(|gateway| gateway.meddle("sdb", |disk| disk.write_protected = true), "write-protected");
    drifted(
        |gateway| gateway.device_mapper("dm-0", "mpath-3600", &["sda", "sdb"]),
        "what uses it has changed",
    );
    drifted(
        |gateway| {
            let serial = gateway.disk("sdb").unwrap().serial;
            gateway.appear(MockDisk::new(MockKind::Sas).with(|disk| disk.serial = serial));
        },
        "sdb and sdc have the same identity",
    );
}

#[test]
fn only_the_steps_that_were_agreed_to_are_done() {
    // The drive has an unchanged state, but the page that would be sent back to it differs.
    drifted(
        |gateway| gateway.meddle("sdb", |disk| disk.read_cache_disabled = true),
        "step 3 of the plan is `SG_IO, MODE SELECT(10) page 08h, WCE=0",
    );
    // A plan with fewer or other steps than would be executed, with a matching hash.
    let gateway = two_disks();
    let plan = plan(&gateway, PlanRequest::Off);
    for (alter, accepted) in [
        (
            Box::new(|step: &mut Vec<PlannedStep>| drop(step.pop())) as Box<dyn Fn(&mut Vec<PlannedStep>)>,
            false,
        ),
        (Box::new(|steps| steps.push(steps[0].clone())), false),
        (Box::new(|steps| steps[0].on = "sdz".into()), false),
        (Box::new(|steps| steps[0].waits_for = Some("x".into())), false),
        (Box::new(|steps| steps[0].words = "as another version says it".into()), true),
    ] {
        let root = tempfile::tempdir().unwrap();
        let mut other = plan.clone();
        alter(&mut other.changes[1].steps);
        other.hash = other.hash_now();
        let ended = apply(&gateway, &other, root.path());
        assert_eq!(ended.is_ok(), accepted, "{ended:?}");
        assert!(accepted || gateway.changes() == 0, "nothing was done");
        assert!(accepted || ended.unwrap_err().to_string().contains("of the plan is"));
    }
}

#[test]
fn where_uses_cannot_be_seen_nothing_is_planned_or_done() {
    for source in ["/proc/self/mountinfo", "/proc/swaps", "SDB/holders"] {
        let gateway = two_disks();
        let made = plan(&gateway, PlanRequest::Off);
        let disk = gateway.tree().canonical("/sys/class/block/sdb").unwrap();
        gateway.deny(&source.replace("SDB", &disk));
        let claims = Claims::default();
        let ask = Ask::new(PlanRequest::Off, DiskSelection::All, &claims, Timestamp::UNIX_EPOCH);
        assert!(make(&gateway, &ask).unwrap_err().to_string().contains("permission denied"), "{source}");
        let root = tempfile::tempdir().unwrap();
        let error = apply(&gateway, &made, root.path()).unwrap_err();
        assert_eq!((error.failure(), gateway.changes()), (FailureKind::Refused, 0), "{error}");
        assert!(error.to_string().contains("permission denied"), "{error}");
        assert!(list(root.path()).unwrap().is_empty());
    }
}

#[test]
fn an_altered_plan_and_one_of_another_boot_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let gateway = two_disks();
    let plan = plan(&gateway, PlanRequest::Off);
    let mut altered = plan.clone();
    altered.changes.truncate(1);
    let error = apply(&gateway, &altered, root.path()).unwrap_err();
    assert!(error.failure() == FailureKind::Refused && error.to_string().contains("altered"), "{error}");
    let mut other = plan;
    other.boot_id = "another".into();
    other.hash = other.hash_now();
    let error = apply(&gateway, &other, root.path()).unwrap_err();
    assert!(error.failure() == FailureKind::Refused && error.to_string().contains("another boot"), "{error}");
    assert_eq!(gateway.changes(), 0);
}

#[test]
fn two_applies_do_not_run_at_once() {
    let root = tempfile::tempdir().unwrap();
    let gateway = two_disks();
    let plan = plan(&gateway, PlanRequest::Off);
    let lock = Lock::take(root.path()).unwrap();
    let error = apply(&gateway, &plan, root.path()).unwrap_err();
    assert_eq!(error.failure(), FailureKind::Refused, "{error}");
    drop(lock);
    assert_eq!(apply(&gateway, &plan, root.path()).unwrap().ended, ApplyEnd::Complete);
}

#[test]
fn a_drive_that_ignores_the_command_is_a_mismatch_and_stops_everything() {
    let root = tempfile::tempdir().unwrap();
    let disks = (0..6).map(|index| MockDisk::new(MockKind::Sata).with(|disk| disk.ignores_set = index == 1));
    let gateway = MockGateway::new(disks);
    let report = apply(&gateway, &plan(&gateway, PlanRequest::Off), root.path()).unwrap();
    assert_eq!(report.ended, ApplyEnd::Failed);
    assert_eq!(report.failure(), Some(FailureKind::Failed));
    assert_eq!(report.disk("sda"), Some(&DiskResult::Verified));
    let Some(DiskResult::Mismatch { found }) = report.disk("sdb") else { panic!("{report:#?}") };
    assert!(found.contains("the write cache of the device is on, expected off"), "{found}");
    for name in ["sdc", "sdd", "sde", "sdf"] {
        assert_eq!(report.disk(name), Some(&DiskResult::Untouched));
        assert!(gateway.disk(name).unwrap().wce);
    }
    assert!(report.go_on.as_ref().unwrap().contains("rollback"), "{report:#?}");
    let back = with_session(&gateway, |session| rollback_in(session, &report.journal)).unwrap();
    assert_eq!(back.ended, ApplyEnd::Complete, "{back:#?}");
    assert_eq!(back.disks.len(), 2, "only what was begun");
    assert!(gateway.disk("sda").unwrap().wce);
}

#[test]
fn slow_drives_unit_attentions_and_controllers_that_refuse_the_same_value_are_no_failures() {
    let root = tempfile::tempdir().unwrap();
    let gateway = MockGateway::new([
        MockDisk::new(MockKind::Sas).with(|disk| disk.attention_after_change = true),
        MockDisk::new(MockKind::Sas).with(|disk| disk.refuses_same_value = true),
        MockDisk::new(MockKind::Sata).with(|disk| disk.revalidate_delay = plumb_block::Nanos::millis(1500)),
        MockDisk::new(MockKind::Nvme),
    ]);
    for asked in [PlanRequest::Off, PlanRequest::On] {
        let report = apply(&gateway, &plan(&gateway, asked), root.path()).unwrap();
        assert_eq!(report.ended, ApplyEnd::Complete, "{asked}: {report:#?}");
    }
}

#[test]
fn a_step_that_fails_stops_and_says_what_is_now() {
    let root = tempfile::tempdir().unwrap();
    let gateway = two_disks();
    let plan = plan(&gateway, PlanRequest::Off);
    gateway.fail_at(0, GatewayError::Os { step: "fsync".into(), errno: Errno::EIO });
    let report = apply(&gateway, &plan, root.path()).unwrap();
    let Some(DiskResult::Failed { error }) = report.disk("sda") else { panic!("{report:#?}") };
    assert!(error.contains("fsync") && error.contains("write cache is on"), "{error}");
    assert_eq!(gateway.changes(), 0, "a flush that failed is followed by nothing");
    let report = with_session(&gateway, |session| resume_in(session, &report.journal)).unwrap();
    assert_eq!(report.ended, ApplyEnd::Complete, "{report:#?}");
}

#[test]
fn a_disk_that_vanishes_in_the_middle_is_no_success() {
    let root = tempfile::tempdir().unwrap();
    let gateway = std::sync::Arc::new(two_disks());
    let plan = plan(&gateway, PlanRequest::Off);
    let weak = std::sync::Arc::downgrade(&gateway);
    gateway.before_change(move |number, disk, _| {
        if number == 1
            && let Some(gateway) = weak.upgrade()
        {
            gateway.vanish(&disk.name);
        }
    });
    let report = apply(&gateway, &plan, root.path()).unwrap();
    assert_eq!(report.ended, ApplyEnd::Failed, "{report:#?}");
    assert!(matches!(report.disk("sda"), Some(DiskResult::Failed { .. })), "{report:#?}");
    assert_eq!(report.disk("sdb"), Some(&DiskResult::Untouched));
    let back = with_session(&gateway, |session| rollback_in(session, &report.journal)).unwrap();
    assert!(matches!(back.disk("sda"), Some(DiskResult::Refused { .. })), "{back:#?}");
    assert_eq!(back.failure(), Some(FailureKind::Refused));
}
