//! Tests of the views of disks without an emulator, of the refusals of each kind of disk, and of the claim of
//! protection that counts.
use jiff::Timestamp;
use plumb_policy::device::{Claim, Claims, Reader, refusal_for};
use plumb_policy::mock::{MockDisk, MockGateway, MockKind};
use plumb_policy::state::{FoundState, State};
use plumb_policy::view::{DeviceView, ProtectionRank};
use plumb_policy::wire::ocp_log::PowerLoss;
use plumb_policy::wire::sct::WriteCache;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn view(gateway: &MockGateway, name: &str) -> DeviceView {
    Reader::new(gateway, &Claims::default(), now()).unwrap().one(name).unwrap()
}

fn one(disk: MockDisk) -> DeviceView {
    let gateway = MockGateway::new([disk]);
    let claims = Claims::default();
    Reader::new(&gateway, &claims, now()).unwrap().all().devices.remove(0)
}

fn reason(view: &DeviceView) -> &str {
    view.refusal.as_ref().map_or("", |refusal| refusal.reason.as_str())
}

#[test]
fn honest_disks_are_read_in_full() {
    for (kind, transport, mechanism, port) in [
        (MockKind::Sas, "sas", "mode-page", "host0/port-0:0"),
        (MockKind::Sata, "ata", "ata-identify", "ata1000"),
        (MockKind::Nvme, "nvme", "nvme-feature", "nvme0"),
        (MockKind::Virtio, "virtio", "virtio-config", "virtio0"),
        (MockKind::Usb, "usb", "mode-page", "usb 1-1000"),
    ] {
        let view = one(MockDisk::new(kind));
        assert_eq!((view.transport.as_str(), view.device.mechanism.as_str()), (transport, mechanism));
        assert_eq!(view.port, port);
        assert_eq!(
            (view.state, view.device.wce, view.device.changeable),
            (FoundState::On, Some(true), Some(true))
        );
        assert_eq!(view.kernel.write_cache.as_deref(), Some("write back"));
        assert_eq!(view.refusal, None, "{kind:?}");
        assert_eq!(view.changeable_by, "plumb as root");
        assert!(view.identity.is_some() && view.size == Some(1 << 40), "{view:?}");
        assert_eq!(one(MockDisk::new(kind).off()).state, FoundState::Off);
    }
}

#[test]
fn drives_that_no_emulator_has_are_read() {
    let saving = one(MockDisk::new(MockKind::Sas).with(|disk| disk.saved = Some(false)));
    assert_eq!((saving.device.saveable, saving.device.saved), (Some(true), Some(false)));
    let without = one(MockDisk::new(MockKind::Nvme).with(|disk| disk.vwc = false));
    assert_eq!((without.state, without.device.changeable), (FoundState::Off, Some(false)));
    assert!(without.device.is_absent && !one(MockDisk::new(MockKind::Nvme).off()).device.is_absent);
    assert_eq!(without.protection.as_ref().map(|claim| claim.rank), Some(ProtectionRank::Declared));
    assert!(reason(&without).contains("no volatile write cache"), "{}", reason(&without));
    let declared = one(MockDisk::new(MockKind::Sas).with(|disk| disk.nonvolatile = true));
    assert_eq!(declared.protection.map(|claim| claim.rank), Some(ProtectionRank::Declared));
    let page = PowerLoss { incomplete_shutdowns: 2, capacitor_health: Some(97), starts: 40 };
    let ocp = one(MockDisk::new(MockKind::Nvme).with(|disk| {
        disk.ocp = Some(page);
        disk.unsafe_shutdowns = 5;
    }));
    assert_eq!(ocp.protection.map(|claim| claim.rank), Some(ProtectionRank::HealthConfirmed));
    let counter = |name: &str| ocp.health.iter().find(|counter| counter.name == name).unwrap().value;
    assert_eq!((counter("unsafe_shutdowns"), counter("incomplete_shutdowns")), (5, 2));
    assert_eq!(counter("capacitor_health_percent"), 97);
}

#[test]
fn a_failed_protection_outweighs_all_claims() {
    let view = one(MockDisk::new(MockKind::Nvme).with(|disk| {
        disk.ocp = Some(PowerLoss { incomplete_shutdowns: 0, capacitor_health: Some(100), starts: 0 });
        disk.backup_failed = true;
    }));
    assert_eq!(view.protection, None);
    assert!(view.findings.iter().any(|finding| finding.id == "protection-failed"));
    assert!(refusal_for(&view, State::Protected).is_some());
}

#[test]
fn each_refusal_says_why_and_what_to_do() {
    let sas = |change: fn(&mut MockDisk)| one(MockDisk::new(MockKind::Sas).with(change));
    let sata = |change: fn(&mut MockDisk)| one(MockDisk::new(MockKind::Sata).with(change));
    let usb = one(MockDisk::new(MockKind::Usb).with(|disk| disk.has_page = false));
    let raid = one(MockDisk::new(MockKind::Raid));
    let is_root = rustix::process::geteuid().is_root();
    for (view, why, what) in [
        (sas(|disk| disk.has_page = false), "no caching page", "temporary write back"),
        (sas(|disk| disk.write_protected = true), "H8", "rescan"),
        (sas(|disk| disk.changeable = false), "does not let", "firmware"),
        (sas(|disk| disk.registrations = 4), "shared", "storage system"),
        (
            sas(|disk| disk.denied = true),
            "cannot be asked",
            if is_root { "CAP_SYS_RAWIO" } else { "as root" },
        ),
        (sata(|disk| disk.sct = Some(WriteCache::ForcedOn)), "forced-on", "smartctl"),
        (usb, "no caching page", "another bridge"),
        (
            one(MockDisk::new(MockKind::Virtio).with(|disk| disk.changeable = false)),
            "hypervisor",
            "config-wce",
        ),
        (raid, "RAID", "storcli"),
    ] {
        let refusal = view.refusal.as_ref().unwrap();
        assert!(refusal.reason.contains(why), "{why}: {refusal:?}");
        assert!(refusal.remedy.contains(what), "{what}: {refusal:?}");
        assert!(refusal_for(&view, State::Off).is_some() && view.changeable_by != "plumb as root");
    }
}

#[test]
fn what_is_no_disk_has_no_state() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas)]);
    gateway.partition("sda", "sda1", "data");
    gateway.device_mapper("dm-0", "LVM-x", &["sda1"]);
    gateway.mount("dm-0", "/srv", "ext4", "rw");
    for (name, remedy) in [("sda1", "sda"), ("dm-0", "sda1"), ("/srv", "name what it is on: sda;")] {
        let view = view(&gateway, name);
        assert_eq!(view.state, FoundState::None, "{name}");
        assert!(view.refusal.as_ref().unwrap().remedy.contains(remedy), "{:?}", view.refusal);
    }
    let claims = Claims::default();
    let reader = Reader::new(&gateway, &claims, now()).unwrap();
    assert_eq!(reader.one("/dev/none").unwrap_err().target, "/dev/none");
    assert_eq!(reader.all().devices.len(), 1, "only disks are listed");
}

#[test]
fn company_is_told_and_refused_where_it_must_be() {
    let disks = (0..4).map(|_| MockDisk::new(MockKind::Sas));
    let gateway = MockGateway::new(disks);
    gateway.md("md0", "raid1", &["sda", "sdb"]);
    gateway.mount("md0", "/srv", "ext4", "rw");
    gateway.device_mapper("dm-0", "mpath-3600", &["sdc"]);
    gateway.partition("sdd", "sdd1", "zfs-0123");
    let first = view(&gateway, "sda");
    assert_eq!((first.redundancy_groups.as_slice(), &first.refusal), (&["md0".to_owned()][..], &None));
    let holders: Vec<&str> = first.holders.iter().map(|holder| holder.name.as_str()).collect();
    assert_eq!(holders, ["md0", "/srv"]);
    gateway.md_action("md0", "resync");
    assert!(reason(&view(&gateway, "sda")).contains("resync"));
    assert!(reason(&view(&gateway, "sdc")).contains("multipath device dm-0"));
    let pool = view(&gateway, "sdd");
    assert_eq!(pool.redundancy_groups, ["zfs"]);
    assert!(pool.findings.iter().any(|finding| finding.id == "h10-zfs-remembers"));
}

#[test]
fn two_paths_to_one_disk_are_seen_by_their_identity() {
    let twin = || MockDisk::new(MockKind::Sas).with(|disk| disk.serial = "SAME".to_owned());
    let gateway = MockGateway::new([twin(), twin(), MockDisk::new(MockKind::Sas)]);
    assert!(reason(&view(&gateway, "sda")).contains("sdb"));
    assert!(reason(&view(&gateway, "sdb")).contains("sda"));
    assert_eq!(view(&gateway, "sdc").refusal, None);
}

#[test]
fn enabling_below_a_layer_that_drops_flushes_is_refused() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas).off()]);
    gateway.mount("sda", "/srv", "ext4", "rw,nobarrier");
    let view = view(&gateway, "sda");
    assert!(refusal_for(&view, State::On).unwrap().reason.contains("lost on the way"), "{:?}", view.findings);
    assert_eq!(refusal_for(&view, State::Off), None);
}

#[test]
fn a_disk_is_seen_alike_alone_and_among_all() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)]);
    gateway.mount("sda", "/srv", "ext4", "rw");
    gateway.loop_over("loop1", "/srv/inner.img", "sda");
    gateway.mount("loop1", "/inner", "ext4", "rw,nobarrier");
    let claims = Claims::default();
    let reader = Reader::new(&gateway, &claims, now()).unwrap();
    let all = reader.all().devices;
    for (name, expected) in [("sda", vec!["barriers-off", "flush-dropped"]), ("sdb", Vec::new())] {
        let alone = reader.one(name).unwrap();
        let among_all = all.iter().find(|view| view.name == name).unwrap();
        for view in [&alone, among_all] {
            let found: Vec<&str> = view.findings.iter().map(|finding| finding.id.as_str()).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn a_word_counts_until_its_end_and_for_its_disk_alone() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)]);
    let identity = view(&gateway, "sda").identity.unwrap();
    let claim = |until: &str| Claims {
        claims: vec![Claim {
            identity: identity.clone(),
            who: "J. Doe".to_owned(),
            until: until.parse().unwrap(),
            reason: "UPS".to_owned(),
        }],
    };
    let read = |claims: &Claims, name: &str| Reader::new(&gateway, claims, now()).unwrap().one(name).unwrap();
    let valid = claim("2026-06-01T00:00:00Z");
    let first = read(&valid, "sda");
    let protection = first.protection.as_ref().unwrap();
    assert_eq!(protection.rank, ProtectionRank::AdministratorsWord);
    assert!(protection.claim.contains("J. Doe") && protection.until.is_some());
    assert_eq!(refusal_for(&first, State::Protected), None);
    assert!(refusal_for(&read(&valid, "sdb"), State::Protected).unwrap().reason.contains("no claim says"));
    let expired = read(&claim("2025-06-01T00:00:00Z"), "sda");
    assert_eq!(expired.protection, None);
    assert!(expired.findings.iter().any(|finding| finding.id == "claim-expired"));
}

#[test]
fn a_known_model_counts() {
    let view = one(MockDisk::new(MockKind::Sata).with(|disk| disk.model = "INTEL SSDSC2KB480G7".to_owned()));
    assert_eq!(view.protection.map(|claim| claim.rank), Some(ProtectionRank::ModelList));
}

#[test]
fn a_thousand_disks_are_read_at_once() {
    let gateway = MockGateway::new((0..1000).map(|_| MockDisk::new(MockKind::Sas)));
    let claims = Claims::default();
    let document = Reader::new(&gateway, &claims, now()).unwrap().all();
    assert_eq!(document.devices.len(), 1000);
    assert!(document.devices.iter().all(|view| view.refusal.is_none() && view.state == FoundState::On));
    assert_eq!(document.kernel.as_deref(), Some("6.12.0-mock"));
    assert!(document.devices.iter().any(|view| view.name == "sdall"), "names go on after sdzz");
}

/// Tests that an attached cache is not treated as a file behind the page cache: its mode is changed, or the
/// disks below it.
#[test]
fn an_attached_cache_is_named_with_its_mode_and_what_is_changed_instead() {
    for (mode, wce, state, words) in [
        ("write-back", true, FoundState::On, "its log is volatile until a flush"),
        ("write-back", false, FoundState::Off, "its log keeps what it acknowledges"),
        ("protected", true, FoundState::Protected, "its log is not flushed and is volatile"),
        ("protected", false, FoundState::Protected, "nothing says that it is volatile"),
    ] {
        let log = MockDisk::new(MockKind::Sas);
        let gateway = MockGateway::new([
            if wce { log } else { log.off() },
            MockDisk::new(MockKind::Sas),
            MockDisk::new(MockKind::Sas).with(|disk| disk.changeable = false),
        ]);
        gateway.cache("loop0", "tank", mode, ["sda", "sdb"]);
        let claims = Claims::default();
        let reader = Reader::new(&gateway, &claims, now()).unwrap();
        let view = reader.one("/dev/loop0").unwrap();
        assert_eq!((view.state, view.transport.as_str()), (state, "cache"), "{mode}, {wce}");
        let model = view.model.as_deref().unwrap();
        let named = format!("write-back cache tank of plumb, in the mode {mode}: ");
        assert!(model.starts_with(&named) && model.contains(words), "{model}");
        let rank = view.protection.as_ref().map(|protection| protection.rank);
        assert_eq!(rank, (mode == "protected").then_some(ProtectionRank::AdministratorsWord));
        assert!(view.changeable_by.contains("`plumb cache mode`"), "{}", view.changeable_by);
        let is_dropped = view.findings.iter().any(|finding| finding.id == "flush-dropped");
        assert_eq!(is_dropped, mode == "protected" && wce, "{:?}", view.findings);
        let refusal = view.refusal.unwrap();
        assert!(
            !refusal.reason.contains("page cache") && refusal.reason.contains("cache tank"),
            "{refusal:?}"
        );
        assert!(refusal.remedy.contains("`plumb cache mode tank MODE`"), "{refusal:?}");
        assert!(refusal.remedy.ends_with("of the disks below it: sda, sdb"), "{refusal:?}");
        gateway.cache("loop1", "pool", mode, ["sda", "sdc"]);
        let view = Reader::new(&gateway, &claims, now()).unwrap().one("loop1").unwrap();
        let remedy = view.refusal.unwrap().remedy;
        assert!(remedy.contains("below it: sda (not those of sdc"), "{remedy}");
    }
}
