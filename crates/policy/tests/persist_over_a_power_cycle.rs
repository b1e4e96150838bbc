//! What is to last is requested until a later boot has found it, and lost if it has not; the files are installed whole,
//! replaced and removed below a root of their own.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_policy::apply::{Ended, Session, Silent, apply_in};
use plumb_policy::claims::Claims;
use plumb_policy::device::Reader;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind};
use plumb_policy::persist::{
    BOOT_UNIT, Ledger, Means, Places, RESUME_UNIT, Standing, Wish, Witness, check_rules, enforcement,
    install, load_wishes, means, remove,
};
use plumb_policy::plan::{Ask, Asked, Wanted, make};
use plumb_policy::state::State;
use plumb_policy::view::DeviceView;
use plumb_policy::waves::WAVE_SIZE;

fn set(gateway: &MockGateway, asked: Asked, wanted: Wanted) {
    let claims = Claims::default();
    let now = Timestamp::UNIX_EPOCH;
    let ask = Ask { asked, save: true, wanted, filter: None, wave_size: WAVE_SIZE, claims: &claims, now };
    let plan = make(gateway, &ask).unwrap();
    let root = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let session = Session { gateway, claims: &claims, now, stop: &stop, progress: &Silent };
    let report = apply_in(&session, &plan, root.path()).unwrap();
    assert_eq!(report.ended, Ended::Complete, "{report:#?}");
}

fn view(gateway: &MockGateway, name: &str) -> DeviceView {
    let claims = Claims::default();
    Reader::new(gateway, &claims, Timestamp::UNIX_EPOCH).one(name).unwrap()
}

#[test]
fn a_policy_is_proven_by_a_later_boot_and_not_before() {
    let gateway = MockGateway::new([
        MockDisk::new(MockKind::Sas).with(|disk| disk.saved = Some(true)),
        MockDisk::new(MockKind::Sas),
    ]);
    set(&gateway, Asked::Off, Wanted::All);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib/persistence.json");
    let mut ledger = Ledger::load(&path).unwrap();
    for (name, expected) in [("sda", Means::InTheDrive), ("sdb", Means::AtEveryStart)] {
        let view = view(&gateway, name);
        assert_eq!(means(&view, State::Off), expected, "{name}");
        ledger.request(Witness { view: &view, boot_id: "one" }, State::Off, expected).unwrap();
        assert!(!ledger.witness(Witness { view: &view, boot_id: "one" }), "the same boot proves nothing");
    }
    ledger.save(&path).unwrap();
    assert!(ledger.kept.iter().all(|kept| kept.standing == Standing::Requested));

    gateway.power_cycle();
    let mut ledger = Ledger::load(&path).unwrap();
    let standing = |ledger: &mut Ledger, name: &str, boot_id: &str| {
        let view = view(&gateway, name);
        ledger.witness(Witness { view: &view, boot_id });
        let identity = view.identity.unwrap();
        ledger.kept.iter().find(|kept| kept.identity == identity).unwrap().standing.clone()
    };
    let proven = standing(&mut ledger, "sda", "two");
    assert!(
        matches!(&proven, Standing::Proven { evidence, .. } if evidence.contains("saved value off")),
        "{proven:?}"
    );
    assert!(matches!(standing(&mut ledger, "sdb", "two"), Standing::Lost { .. }), "nothing set it again");
    set(&gateway, Asked::Off, Wanted::Named(vec!["sdb".into()]));
    assert!(matches!(standing(&mut ledger, "sdb", "three"), Standing::Proven { .. }));
    ledger.save(&path).unwrap();
    assert_eq!(Ledger::load(&path).unwrap(), ledger);
}

#[test]
fn files_are_installed_for_every_name_and_removed_without_a_rest() {
    let gateway = MockGateway::new((0..30).map(|_| MockDisk::new(MockKind::Sas)));
    set(&gateway, Asked::Off, Wanted::All);
    let root = tempfile::tempdir().unwrap();
    let places = Places { root: root.path().to_owned(), program: "/usr/bin/plumb".into() };
    let wish = |name: &str| Wish::of(&view(&gateway, name), State::Off, Means::AtEveryStart).unwrap();
    let (first, later) = (wish("sda"), wish("sdad"));
    install(&places, &[first.clone(), later.clone()]).unwrap();
    install(&places, std::slice::from_ref(&first)).unwrap();
    let rules = std::fs::read_to_string(places.rules()).unwrap();
    check_rules(&rules).unwrap();
    for wish in [&first, &later] {
        let line = format!("ATTRS{{wwid}}==\"{}\", ENV{{PLUMB_POLICY}}=\"scsi-off\"", wish.identity);
        assert_eq!(rules.lines().filter(|found| *found == line).count(), 1, "{rules}");
    }
    udev_takes(&places.rules());
    let boot = std::fs::read_to_string(places.unit(BOOT_UNIT)).unwrap();
    assert!(boot.contains("ExecStart=/usr/bin/plumb policy enforce --from /etc/plumb/policy.d\n"), "{boot}");
    let resume = std::fs::read_to_string(places.unit(RESUME_UNIT)).unwrap();
    assert!(resume.contains("After=suspend.target hibernate.target"), "{resume}");
    assert_eq!(load_wishes(&places.wishes()).unwrap().len(), 2);

    remove(&places, &first.identity).unwrap();
    let rules = std::fs::read_to_string(places.rules()).unwrap();
    assert!(!rules.contains(&first.identity) && rules.contains(&later.identity), "{rules}");
    remove(&places, &later.identity).unwrap();
    assert_eq!(files_below(root.path()), Vec::<String>::new());
    assert!(remove(&places, &later.identity).unwrap().files.is_empty(), "twice does no more");
}

/// What udev itself says, where it can be asked (systemd 254 and later).
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
fn a_malformed_wish_stops_all_and_a_stranger_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)]);
    let wish = Wish::of(&view(&gateway, "sdb"), State::Off, Means::AtEveryStart).unwrap();
    let places = Places { root: root.path().to_owned(), program: "/usr/bin/plumb".into() };
    install(&places, std::slice::from_ref(&wish)).unwrap();
    let wishes = load_wishes(&places.wishes()).unwrap();
    let claims = Claims::default();
    let reader = Reader::new(&gateway, &claims, Timestamp::UNIX_EPOCH);
    let found = enforcement(&reader, &wishes, None);
    assert_eq!(found.wanted[&State::Off], ["sdb"]);
    assert!(enforcement(&reader, &wishes, Some("sda")).wanted.is_empty());
    assert_eq!(enforcement(&reader, &wishes, Some("sdb")).wanted[&State::Off], ["sdb"]);
    gateway.vanish("sdb");
    let reader = Reader::new(&gateway, &claims, Timestamp::UNIX_EPOCH);
    assert_eq!(enforcement(&reader, &wishes, None).absent, [wish.identity]);
    std::fs::write(places.wishes().join("x.toml"), "state = \"of\"").unwrap();
    let error = load_wishes(&places.wishes()).unwrap_err().to_string();
    assert!(error.contains("x.toml"), "{error}");
}
