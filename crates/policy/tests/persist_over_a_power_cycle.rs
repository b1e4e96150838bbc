//! Tests that a persisted state is requested, held over a reboot, proven by a power cycle that the drive
//! counted, or lost; and that the files are installed, replaced and removed below a separate root. Guards
//! against a proof without a loss of power.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_policy::apply::{ApplyEnd, Session, apply_in};
use plumb_policy::claims::Claims;
use plumb_policy::device::Reader;
use plumb_policy::mock::udev::check_rules;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind};
use plumb_policy::persist::{
    BOOT_UNIT, Certainty, DesiredState, InstallPaths, Ledger, Persistence, RESUME_UNIT, Reading, install,
    load_desired, persistence, remove,
};
use plumb_policy::plan::{Ask, DiskSelection, PlanRequest, make};
use plumb_policy::state::State;
use plumb_policy::wire::sct::WriteCache;

use crate::mock_mechanisms::view;

fn set(gateway: &MockGateway, asked: PlanRequest, wanted: DiskSelection) {
    let claims = Claims::default();
    let now = Timestamp::UNIX_EPOCH;
    let ask = Ask { save: true, ..Ask::new(asked, wanted, &claims, now) };
    let plan = make(gateway, &ask).unwrap();
    let root = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let session = Session { gateway, claims: &claims, now, stop: &stop, progress: &|_| () };
    let report = apply_in(&session, &plan, root.path()).unwrap();
    assert_eq!(report.ended, ApplyEnd::Complete, "{report:#?}");
}

/// Returns a ledger in which `off` is requested for all of these, in the boot `one`.
fn requested(gateway: &MockGateway, names: &[&str]) -> Ledger {
    set(gateway, PlanRequest::Off, DiskSelection::All);
    let claims = Claims::default();
    let reader = Reader::new(gateway, &claims, Timestamp::UNIX_EPOCH).unwrap();
    let mut ledger = Ledger::default();
    for name in names {
        let view = view(gateway, name);
        let means = persistence(&view, State::Off);
        ledger.request(Reading::new(&reader, &view, "one"), State::Off, means).unwrap();
    }
    assert!(ledger.kept.iter().all(|kept| kept.standing == Certainty::Requested));
    ledger
}

/// Reads the disk in this boot. Returns the confidence and the reading.
fn look(gateway: &MockGateway, ledger: &mut Ledger, name: &str, boot_id: &str) -> (String, String) {
    let claims = Claims::default();
    let reader = Reader::new(gateway, &claims, Timestamp::UNIX_EPOCH).unwrap();
    let view = view(gateway, name);
    ledger.update(Reading::new(&reader, &view, boot_id));
    let kept = ledger.kept.iter().find(|kept| Some(&kept.identity) == view.identity.as_ref()).unwrap();
    let said = serde_json::to_value(kept).unwrap();
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    (text("standing"), text("evidence"))
}

/// Returns disks that count power-ons or not, and save their state or not.
fn machine() -> MockGateway {
    MockGateway::new([
        MockDisk::new(MockKind::Sas).with(|disk| disk.saved = Some(true)),
        MockDisk::new(MockKind::Nvme).with(|disk| disk.saved = Some(true)),
        MockDisk::new(MockKind::Sata).with(|disk| disk.sct = Some(WriteCache::AtaControlled)),
        MockDisk::new(MockKind::Sata).with(|disk| disk.power_cycles = None),
    ])
}

const NAMES: [&str; 4] = ["sda", "nvme0n1", "sdb", "sdc"];

#[test]
fn a_reboot_proves_nothing_and_a_power_cycle_that_was_counted_does() {
    let gateway = machine();
    let mut ledger = requested(&gateway, &NAMES);
    for name in NAMES {
        assert_eq!(look(&gateway, &mut ledger, name, "one").0, "requested", "the same boot proves nothing");
    }
    gateway.reboot();
    for (name, words) in
        [("sda", "does not say whether its power was off"), ("nvme0n1", "counts no power cycle")]
    {
        let (standing, evidence) = look(&gateway, &mut ledger, name, "two");
        assert_eq!(standing, "held-over-reboot", "{name}");
        assert!(evidence.contains(words), "{name}: {evidence}");
    }
    assert_eq!(look(&gateway, &mut ledger, "sdb", "two").0, "held-over-reboot");

    gateway.power_cycle();
    let expected = ["held-over-reboot", "proven", "proven", "lost"];
    for (name, expected) in NAMES.into_iter().zip(expected) {
        let (standing, evidence) = look(&gateway, &mut ledger, name, "three");
        assert_eq!(standing, expected, "{name}: {evidence}");
    }
    let (_, evidence) = look(&gateway, &mut ledger, "nvme0n1", "three");
    assert!(evidence.contains("one power cycle") && evidence.contains("saved value off"), "{evidence}");
    gateway.reboot();
    assert_eq!(look(&gateway, &mut ledger, "sdb", "four").0, "proven", "a reboot takes no proof away");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib/persistence.json");
    ledger.save(&path).unwrap();
    assert_eq!(Ledger::load(&path).unwrap(), ledger);
}

#[test]
fn what_was_lost_is_not_found_again_because_somebody_set_it() {
    let gateway = machine();
    let mut ledger = requested(&gateway, &["sdc", "nvme0n1"]);
    gateway.meddle("nvme0n1", |disk| disk.saved = Some(true));
    gateway.power_cycle();
    for name in ["sdc", "nvme0n1"] {
        assert_eq!(look(&gateway, &mut ledger, name, "two").0, "lost", "{name}");
    }
    set(&gateway, PlanRequest::Off, DiskSelection::All);
    for name in ["sdc", "nvme0n1"] {
        assert_eq!(look(&gateway, &mut ledger, name, "two").0, "lost", "{name} was set by hand");
    }
    gateway.reboot();
    for name in ["sdc", "nvme0n1"] {
        assert_eq!(look(&gateway, &mut ledger, name, "three").0, "held-over-reboot", "{name}");
    }
    // Lost again, then mended in that boot: still lost.
    gateway.power_cycle();
    assert_eq!(look(&gateway, &mut ledger, "sdc", "four").0, "lost");
    set(&gateway, PlanRequest::Off, DiskSelection::Named(vec!["sdc".into()]));
    assert_eq!(look(&gateway, &mut ledger, "sdc", "four").0, "lost");
    assert_eq!(look(&gateway, &mut ledger, "nvme0n1", "four").0, "proven");
}

#[test]
fn what_is_set_at_every_start_is_proven_by_the_same_count() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sata)]);
    let mut ledger = requested(&gateway, &["sda"]);
    assert_eq!(ledger.kept[0].means, Persistence::AtEveryStart);
    gateway.power_cycle();
    set(&gateway, PlanRequest::Off, DiskSelection::All);
    assert_eq!(look(&gateway, &mut ledger, "sda", "two").0, "proven");
}

#[test]
fn files_are_installed_for_every_name_and_removed_without_a_rest() {
    let gateway = MockGateway::new((0..30).map(|_| MockDisk::new(MockKind::Sas)));
    set(&gateway, PlanRequest::Off, DiskSelection::All);
    let root = tempfile::tempdir().unwrap();
    let places = InstallPaths { root: root.path().to_owned(), program: "/usr/bin/plumb".into() };
    let desired = |name: &str| {
        DesiredState::from_view(&view(&gateway, name), State::Off, Persistence::AtEveryStart).unwrap()
    };
    let (first, later) = (desired("sda"), desired("sdad"));
    install(&places, &[first.clone(), later.clone()]).unwrap();
    install(&places, std::slice::from_ref(&first)).unwrap();
    let rules = std::fs::read_to_string(places.rules()).unwrap();
    check_rules(&rules).unwrap();
    for desired in [&first, &later] {
        let line = format!("ATTRS{{wwid}}==\"{}\", ENV{{PLUMB_POLICY}}=\"scsi-off\"", desired.identity);
        assert_eq!(rules.lines().filter(|found| *found == line).count(), 1, "{rules}");
    }
    udev_takes(&places.rules());
    let boot = std::fs::read_to_string(places.unit(BOOT_UNIT)).unwrap();
    assert!(boot.contains("ExecStart=/usr/bin/plumb policy enforce --from /etc/plumb/policy.d\n"), "{boot}");
    let resume = std::fs::read_to_string(places.unit(RESUME_UNIT)).unwrap();
    assert!(resume.contains("After=suspend.target hibernate.target"), "{resume}");
    assert_eq!(load_desired(&places.desired_states()).unwrap().len(), 2);

    remove(&places, &first.identity).unwrap();
    let rules = std::fs::read_to_string(places.rules()).unwrap();
    assert!(!rules.contains(&first.identity) && rules.contains(&later.identity), "{rules}");
    remove(&places, &later.identity).unwrap();
    assert_eq!(files_below(root.path()), Vec::<String>::new());
    assert!(remove(&places, &later.identity).unwrap().files.is_empty(), "twice does no more");
}

/// Checks the rules with udev itself, if possible (systemd 254 and later).
fn udev_takes(rules: &Path) {
    match Command::new("udevadm").args(["verify", "--no-style"]).arg(rules).output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("Unknown command") => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        _ => plumb_testkit::skip("udevadm verify is not here"),
    }
}

fn files_below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_below(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_malformed_state_stops_all_and_a_stranger_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)]);
    let desired =
        DesiredState::from_view(&view(&gateway, "sdb"), State::Off, Persistence::AtEveryStart).unwrap();
    let places = InstallPaths { root: root.path().to_owned(), program: "/usr/bin/plumb".into() };
    install(&places, std::slice::from_ref(&desired)).unwrap();
    let desired_states = load_desired(&places.desired_states()).unwrap();
    assert_eq!(desired_states, [desired]);
    std::fs::write(places.desired_states().join("x.toml"), "state = \"of\"").unwrap();
    let error = load_desired(&places.desired_states()).unwrap_err().to_string();
    assert!(error.contains("x.toml"), "{error}");
}
