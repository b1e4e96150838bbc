//! Tests of every state on every kind of disk: set, read back, rolled back; healed if there was a trap.
//! Guards against a state that a kind of disk only seems to reach.

use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_block::FailureKind;
use plumb_policy::apply::{ApplyEnd, Report, Session, apply_in};
use plumb_policy::claims::{Claim, Claims};
use plumb_policy::error::PolicyError;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind, Trap};
use plumb_policy::plan::{Ask, DiskSelection, Plan, PlanRequest, make};
use plumb_policy::rollback::rollback_in;
use plumb_policy::verify::verify;
use plumb_policy::wire::sct::WriteCache;

const KINDS: [MockKind; 5] = [MockKind::Sas, MockKind::Sata, MockKind::Nvme, MockKind::Virtio, MockKind::Usb];

struct Bench {
    gateway: MockGateway,
    claims: Claims,
    root: tempfile::TempDir,
}

impl Bench {
    fn new(disks: impl IntoIterator<Item = MockDisk>) -> Self {
        let gateway = MockGateway::new(disks);
        Self { gateway, claims: Claims::default(), root: tempfile::tempdir().unwrap() }
    }

    fn plan(&self, asked: PlanRequest, save: bool) -> Plan {
        let now = Timestamp::UNIX_EPOCH;
        let claims = &self.claims;
        let ask = Ask { save, ..Ask::new(asked, DiskSelection::All, claims, now) };
        make(&self.gateway, &ask).unwrap()
    }

    fn session<T>(&self, body: impl FnOnce(&Session<'_>) -> T) -> T {
        let stop = AtomicBool::new(false);
        let now = Timestamp::UNIX_EPOCH;
        body(&Session { gateway: &self.gateway, claims: &self.claims, now, stop: &stop, progress: &|_| () })
    }

    fn apply(&self, plan: &Plan) -> Report {
        let report = self.session(|session| apply_in(session, plan, self.root.path())).unwrap();
        assert_eq!(report.ended, ApplyEnd::Complete, "{report:#?}");
        report
    }

    fn roll_back(&self, report: &Report) -> Result<Report, PolicyError> {
        self.session(|session| rollback_in(session, &report.journal))
    }
}

#[test]
fn every_state_is_reached_and_left_again_on_every_kind_of_disk() {
    for kind in KINDS {
        for asked in [PlanRequest::Off, PlanRequest::On, PlanRequest::Protected] {
            let disk = MockDisk::new(kind).with(|disk| {
                disk.wce = asked == PlanRequest::Off;
                disk.serial = "S1".into();
            });
            let mut bench = Bench::new([disk]);
            let name = bench.plan(asked, false).refused.first().map(|disk| disk.name.clone());
            let name = name.unwrap_or_else(|| bench.plan(asked, false).changes[0].name.clone());
            let before = bench.gateway.disk(&name).unwrap();
            bench.claims.claims.push(Claim {
                identity: before.identity(),
                who: "R".into(),
                until: Timestamp::MAX,
                reason: "r".into(),
            });
            let plan = bench.plan(asked, false);
            assert_eq!(plan.changes.len(), 1, "{kind:?} {asked}: {plan:#?}");
            let report = bench.apply(&plan);
            let after = bench.gateway.disk(&name).unwrap();
            assert_eq!(after.wce, asked != PlanRequest::Off, "{kind:?} {asked}");
            assert_eq!(after.kernel.disabled, asked == PlanRequest::Protected, "{kind:?} {asked}");
            assert_eq!(
                bench.gateway.flush_arrives(&name),
                asked != PlanRequest::Protected,
                "{kind:?} {asked}"
            );
            assert!(bench.plan(asked, false).changes.is_empty(), "{kind:?} {asked}: it is there");
            assert!(!bench.session(|session| verify(session, &plan)).unwrap().has_drift());

            let back = bench.roll_back(&report).unwrap();
            assert_eq!(back.ended, ApplyEnd::Complete, "{kind:?} {asked}: {back:#?}");
            let restored = bench.gateway.disk(&name).unwrap();
            assert_eq!((restored.wce, restored.kernel), (before.wce, before.kernel), "{kind:?} {asked}");
            assert!(bench.session(|session| verify(session, &plan)).unwrap().has_drift(), "{kind:?} {asked}");
        }
    }
}

#[test]
fn what_a_drive_saves_is_saved_on_request_alone_and_restored() {
    for (kind, sct) in
        [(MockKind::Sas, None), (MockKind::Nvme, None), (MockKind::Sata, Some(WriteCache::AtaControlled))]
    {
        let disk = MockDisk::new(kind).with(|disk| {
            disk.sct = sct;
            disk.saved = sct.is_none().then_some(true);
        });
        let bench = Bench::new([disk]);
        let plan = bench.plan(PlanRequest::Off, false);
        let name = plan.changes[0].name.clone();
        let before = bench.gateway.disk(&name).unwrap();
        let unsaved = bench.apply(&plan);
        assert_eq!(
            bench.gateway.disk(&name).unwrap().saved,
            before.saved,
            "{kind:?}: saving was not asked for"
        );
        bench.roll_back(&unsaved).unwrap();

        let saved = bench.apply(&bench.plan(PlanRequest::Off, true));
        let kept = bench.gateway.disk(&name).unwrap();
        let forced = kept.sct == Some(WriteCache::ForcedOff) && kept.sct_kept;
        assert!(kept.saved == Some(false) || forced, "{kind:?}: {kept:?}");
        let back = bench.roll_back(&saved).unwrap();
        assert_eq!(back.ended, ApplyEnd::Complete, "{kind:?}: {back:#?}");
        let restored = bench.gateway.disk(&name).unwrap();
        assert_eq!(
            (restored.wce, restored.saved, restored.sct),
            (before.wce, before.saved, before.sct),
            "{kind:?}"
        );
    }
}

#[test]
fn traps_are_healed_and_not_set_again() {
    for trap in [Trap::Temporary, Trap::Queue, Trap::Stale] {
        for kind in [MockKind::Sas, MockKind::Sata] {
            let bench = Bench::new([MockDisk::new(kind).trapped(trap)]);
            assert!(!bench.gateway.flush_arrives("sda"), "{trap:?}: the trap is set");
            let report = bench.apply(&bench.plan(PlanRequest::Heal, false));
            assert!(bench.gateway.flush_arrives("sda"), "{trap:?} {kind:?}");
            assert!(bench.gateway.disk("sda").unwrap().wce, "the drive stays as it is");
            assert!(bench.plan(PlanRequest::Heal, false).changes.is_empty());
            let refused = bench.roll_back(&report).unwrap_err();
            assert_eq!(refused.failure(), FailureKind::Refused, "{refused}");
        }
    }
}

#[test]
fn a_stale_dm_table_is_loaded_again() {
    let bench = Bench::new([MockDisk::new(MockKind::Sas).off()]);
    bench.gateway.device_mapper("dm-0", "LVM-1", &["sda"]);
    bench.gateway.device_mapper("dm-1", "CRYPT-1", &["dm-0"]);
    bench.gateway.meddle("sda", |disk| {
        disk.wce = true;
        disk.kernel.cache = true;
    });
    assert!(!bench.gateway.flush_arrives("dm-1"), "H4 is set");
    let plan = bench.plan(PlanRequest::Heal, false);
    bench.apply(&plan);
    assert!(bench.gateway.flush_arrives("dm-1") && bench.gateway.flush_arrives("dm-0"));
    assert!(!bench.session(|session| verify(session, &plan)).unwrap().has_drift());
}

#[test]
fn a_protected_disk_with_a_claim_is_in_no_trap() {
    let mut bench = Bench::new([MockDisk::new(MockKind::Sas)]);
    bench.claims.claims.push(Claim {
        identity: bench.gateway.disk("sda").unwrap().identity(),
        who: "R".into(),
        until: Timestamp::MAX,
        reason: "r".into(),
    });
    bench.apply(&bench.plan(PlanRequest::Protected, false));
    assert!(bench.plan(PlanRequest::Heal, false).changes.is_empty());
    bench.claims.claims.clear();
    assert_eq!(bench.plan(PlanRequest::Heal, false).changes.len(), 1, "without the claim it is");
}
