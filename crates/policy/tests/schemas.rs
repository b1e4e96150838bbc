//! Tests that the shipped JSON Schemas match the documents of a policy: all documents of a machine of mock
//! disks validate, no unknown key is written, and no promised key can be missing. Guards against a field that
//! is missing in the schema of its type.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use plumb_block::Errno;
use plumb_policy::apply::{Event, Report, Session, apply_in};
use plumb_policy::claims::{Claim, Claims};
use plumb_policy::device::Reader;
use plumb_policy::gateway::GatewayError;
use plumb_policy::journal::Journal;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind, Trap};
use plumb_policy::persist::{Certainty, KeptPolicy, Persistence};
use plumb_policy::plan::{Ask, DiskSelection, Plan, PlanRequest, make};
use plumb_policy::rollback::rollback_in;
use plumb_policy::state::State;
use plumb_policy::verify::verify;
use plumb_policy::view::PolicyDocument;
use plumb_policy::watch::Watcher;
use plumb_policy::wire::ocp_log::PowerLoss;
use plumb_policy::wire::sct::WriteCache;
use plumb_testkit::schema::Schema;
use serde::Serialize;
use serde_json::{Value, json};

fn validates(name: &str, document: &impl Serialize) -> Value {
    let document = serde_json::to_value(document).unwrap();
    Schema::closed(name).assert_holds(&document);
    document
}

/// Checks that every key of every object of `document` is required; a schema permits the absence of those in
/// `optional`.
fn nothing_is_missing_unnoticed(name: &str, document: &Value, optional: &[&str]) {
    fn objects(value: &Value, pointer: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.push(pointer.to_owned());
                for (key, value) in fields {
                    objects(value, &format!("{pointer}/{key}"), found);
                }
            }
            // One of each kind is enough.
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate().take(1) {
                    objects(item, &format!("{pointer}/{index}"), found);
                }
            }
            _ => {}
        }
    }
    let schema = Schema::open(name);
    let mut places = Vec::new();
    objects(document, "", &mut places);
    for place in places {
        schema.assert_requires_keys(document, &place, &|key| optional.contains(&key));
    }
}

fn now() -> Timestamp {
    "2026-11-22T00:00:00Z".parse().unwrap()
}

/// Returns a machine with one of everything.
fn machine() -> MockGateway {
    let namespace = |name: &str| {
        let name = name.to_owned();
        MockDisk::new(MockKind::Nvme).with(|disk| {
            disk.name = name;
            disk.controller = "nvme7".into();
        })
    };
    let gateway = MockGateway::new([
        MockDisk::new(MockKind::Sas).with(|disk| disk.saved = Some(true)),
        MockDisk::new(MockKind::Sata).with(|disk| disk.sct = Some(WriteCache::AtaControlled)),
        MockDisk::new(MockKind::Sata).with(|disk| disk.sct = Some(WriteCache::ForcedOff)).off(),
        MockDisk::new(MockKind::Nvme).with(|disk| {
            disk.ocp = Some(PowerLoss { incomplete_shutdowns: 1, capacitor_health: Some(97), starts: 4 });
            disk.unsafe_shutdowns = 5;
        }),
        MockDisk::new(MockKind::Nvme).with(|disk| disk.vwc = false),
        namespace("nvme7n1"),
        namespace("nvme7n2"),
        MockDisk::new(MockKind::Virtio),
        MockDisk::new(MockKind::Usb).with(|disk| disk.has_page = false),
        MockDisk::new(MockKind::Raid),
        MockDisk::new(MockKind::Sas).trapped(Trap::Queue),
        MockDisk::new(MockKind::Sas).trapped(Trap::Temporary),
        MockDisk::new(MockKind::Sas).with(|disk| disk.write_protected = true),
        MockDisk::new(MockKind::Sas).with(|disk| disk.denied = true),
        MockDisk::new(MockKind::Sas).off(),
    ]);
    gateway.md("md0", "raid1", &["sda", "sdb"]);
    gateway.device_mapper("dm-0", "LVM-x", &["md0"]);
    gateway.mount("dm-0", "/srv", "ext4", "rw,nobarrier");
    gateway.partition("nvme7n2", "nvme7n2p1", "zfs-1");
    gateway
}

fn claims(gateway: &MockGateway) -> Claims {
    let word = |name: &str, until: &str| Claim {
        identity: gateway.disk(name).unwrap().identity(),
        who: "R. Miller".into(),
        until: until.parse().unwrap(),
        reason: "data sheet".into(),
    };
    Claims { claims: vec![word("sda", "2027-01-01T00:00:00Z"), word("sdb", "2026-01-01T00:00:00Z")] }
}

fn planned(gateway: &MockGateway, claims: &Claims, asked: PlanRequest, wanted: DiskSelection) -> Plan {
    let ask = Ask { save: true, ..Ask::new(asked, wanted, claims, now()) };
    make(gateway, &ask).unwrap()
}

#[test]
fn what_is_shown_validates_for_every_kind_of_disk() {
    let gateway = machine();
    let claims = claims(&gateway);
    let reader = Reader::new(&gateway, &claims, now()).unwrap();
    let shown = validates("policy", &reader.all());
    assert!(shown["devices"].as_array().unwrap().len() >= 14);
    nothing_is_missing_unnoticed("policy", &shown, &[]);
    let named = ["sda", "md0", "dm-0", "/srv", "nvme7n2p1"].map(str::to_owned);
    validates("policy", &reader.named(&named).unwrap());
}

#[test]
fn plans_of_every_state_validate_and_so_do_their_files() {
    let gateway = machine();
    let claims = claims(&gateway);
    for asked in [PlanRequest::Off, PlanRequest::On, PlanRequest::Protected, PlanRequest::Heal] {
        let plan = planned(&gateway, &claims, asked, DiskSelection::All);
        assert!(!plan.refused.is_empty() && !plan.changes.is_empty(), "{asked}: {plan:#?}");
        let document = validates("policy-plan", &plan);
        nothing_is_missing_unnoticed("policy-plan", &document, &[]);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("plan.json");
        std::fs::write(&file, plan.to_json().unwrap()).unwrap();
        let written: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(written, document);
    }
    let nothing = planned(&gateway, &claims, PlanRequest::Off, DiskSelection::Named(Vec::new()));
    validates("policy-plan", &nothing);
}

/// Applies `off` to three disks, of which some have problems; checks the report and every record, and rolls
/// back.
fn applied(gateway: &MockGateway, stops: bool, root: &Path) -> Report {
    let claims = Claims::default();
    let plan = planned(gateway, &claims, PlanRequest::Off, DiskSelection::All);
    let stop = AtomicBool::new(false);
    let progress = &|event: &Event<'_>| {
        stop.fetch_or(stops && matches!(event, Event::WaveEnded { .. }), Ordering::Relaxed);
    };
    let session = Session { gateway, claims: &claims, now: now(), stop: &stop, progress };
    let report = apply_in(&session, &plan, root).unwrap();
    nothing_is_missing_unnoticed("policy-apply", &validates("policy-apply", &report), &[]);
    stop.store(false, Ordering::Relaxed);
    let verification = verify(&session, &plan).unwrap();
    nothing_is_missing_unnoticed("policy-verify", &validates("policy-verify", &verification), &[]);
    let quiet = Session { progress: &|_| (), ..session };
    validates("policy-apply", &rollback_in(&quiet, &report.journal).unwrap());
    let snapshot = std::fs::read(report.journal.join("snapshot.json")).unwrap();
    let snapshot: Value = serde_json::from_slice(&snapshot).unwrap();
    nothing_is_missing_unnoticed("policy-snapshot", &validates("policy-snapshot", &snapshot), &[]);
    for entry in Journal::open(&report.journal).unwrap().entries() {
        nothing_is_missing_unnoticed("policy-journal", &validates("policy-journal", entry), &[]);
    }
    report
}

#[test]
fn reports_of_every_end_validate_with_their_journals() {
    let three = || (0..3).map(|_| MockDisk::new(MockKind::Sas));
    let root = tempfile::tempdir().unwrap();
    let mut results = Vec::new();
    let mut note = |report: &Report| {
        for disk in serde_json::to_value(report).unwrap()["disks"].as_array().unwrap() {
            results.push(disk["result"].as_str().unwrap().to_owned());
        }
    };
    note(&applied(&MockGateway::new(three()), false, root.path()));
    note(&applied(&MockGateway::new(three()), true, root.path()));
    let ignoring = MockGateway::new(three());
    ignoring.meddle("sdb", |disk| disk.ignores_set = true);
    note(&applied(&ignoring, false, root.path()));
    let failing = MockGateway::new(three());
    failing.fail_at(4, GatewayError::Os { step: "fsync".into(), errno: Errno::EIO });
    note(&applied(&failing, false, root.path()));
    let drifting = Arc::new(MockGateway::new(three()));
    let weak = Arc::downgrade(&drifting);
    drifting.before_change(move |number, _, _| {
        if let (0, Some(gateway)) = (number, weak.upgrade()) {
            gateway.meddle("sdb", |disk| disk.write_protected = true);
        }
    });
    note(&applied(&drifting, false, root.path()));
    for result in ["verified", "untouched", "mismatch", "failed", "refused"] {
        assert!(results.iter().any(|found| found == result), "{result} was never seen: {results:?}");
    }
}

#[test]
fn snapshots_of_every_kind_of_disk_validate() {
    let gateway = machine();
    let claims = claims(&gateway);
    let plan = planned(&gateway, &claims, PlanRequest::Off, DiskSelection::All);
    let (root, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let session = Session { gateway: &gateway, claims: &claims, now: now(), stop: &stop, progress: &|_| () };
    let report = apply_in(&session, &plan, root.path()).unwrap();
    let journal = Journal::open(&report.journal).unwrap();
    let kinds: HashSet<String> = journal
        .snapshot()
        .disks
        .iter()
        .map(|disk| serde_json::to_value(disk.material.kind).unwrap().to_string())
        .collect();
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    nothing_is_missing_unnoticed("policy-snapshot", &validates("policy-snapshot", journal.snapshot()), &[]);
}

#[test]
fn what_is_kept_validates_in_every_standing() {
    let (at, evidence) = ("2026-11-22T00:00:00Z".to_owned(), "write cache off".to_owned());
    let standings = [
        Certainty::Requested,
        Certainty::HeldOverReboot { at: at.clone(), evidence: evidence.clone() },
        Certainty::Proven { at: at.clone(), evidence: evidence.clone() },
        Certainty::Lost { at: at.clone(), evidence },
    ];
    for standing in standings {
        let kept = KeptPolicy {
            identity: "naa.5".to_owned(),
            state: State::Off,
            means: Persistence::AtEveryStart,
            requested_at: at.clone(),
            boot_id: "one".to_owned(),
            power_cycles: Some(9),
            standing,
        };
        let document =
            json!({ "schema": "plumb/policy-persist/1", "kept": [kept], "files": ["/x"], "then_run": [] });
        nothing_is_missing_unnoticed("policy-persist", &validates("policy-persist", &document), &[]);
    }
}

#[test]
fn changes_that_a_watch_sees_validate() {
    let gateway = machine();
    let claims = Claims::default();
    let mut watcher = Watcher::new();
    let read = || -> PolicyDocument { Reader::new(&gateway, &claims, now()).unwrap().all() };
    assert!(watcher.look(read()).is_empty());
    gateway.meddle("sda", |disk| disk.wce = false);
    gateway.vanish("sdb");
    let seen = watcher.look(read());
    assert!(seen.len() >= 2, "{seen:#?}");
    for change in &seen {
        let mut line = serde_json::to_value(change).unwrap();
        line["schema"] = json!("plumb/policy-change/1");
        nothing_is_missing_unnoticed("policy-change", &validates("policy-change", &line), &[]);
    }
}
