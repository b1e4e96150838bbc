//! Tests of synthetic device-mapper stacks: guards against a misjudged target, or a table that no longer fits
//! the devices below.

use crate::machine::{WB, WT, has, layer, stacked};
use plumb_linux::probe::wire::dm;
use plumb_linux::probe::{Refusal, Request};
use plumb_path::{Cache, Flush, LayerKind, Severity};

#[test]
fn dm_targets_have_their_kinds() {
    for (target, kind) in [
        ("linear", LayerKind::DmLinear),
        ("striped", LayerKind::DmStriped),
        ("crypt", LayerKind::DmCrypt),
        ("thin", LayerKind::DmThin),
        ("thin-pool", LayerKind::DmThinPool),
        ("cache", LayerKind::DmCache),
        ("writecache", LayerKind::DmWritecache),
        ("multipath", LayerKind::DmMultipath),
        ("mirror", LayerKind::DmMirror),
        ("raid", LayerKind::DmRaid),
        ("integrity", LayerKind::DmIntegrity),
        ("verity", LayerKind::DmVerity),
        ("snapshot-origin", LayerKind::DmSnapshot),
    ] {
        let mut machine = stacked("dm-0", "dm", WB);
        machine.probe.put("dm-0", Request::DmTable, Ok(dm::encode(&[(0, 8, target, "raid5_ls 8:1 0")])));
        machine.probe.put(
            "dm-0",
            Request::DmStatus,
            Ok(dm::encode(&[(0, 8, target, "0 8 3 0 5 6 7 8 9 10 11 1")])),
        );
        let path = machine.survey("dm-0");
        layer(&path, "dm-0", kind, Cache::None, Flush::Forwarded);
        assert_eq!(path.durable_at.fsync.as_deref(), Some("sda"), "{target}");
        let cached = matches!(kind, LayerKind::DmCache | LayerKind::DmWritecache);
        assert_eq!(has(&path, "cache-dirty").is_some(), cached, "{target}");
        assert_eq!(has(&path, "write-hole").is_some(), kind == LayerKind::DmRaid, "{target}");
    }
}

#[test]
fn a_dm_target_that_is_not_known_may_do_anything_with_a_flush() {
    for target in ["flakey", "zero", "dust", "error"] {
        let mut machine = stacked("dm-0", "dm", WB);
        // Behind others in the table, where it could be overlooked.
        let table = dm::encode(&[
            (0, 8, "linear", "8:1 0"),
            (8, 8, "crypt", "aes 00 0 8:1 0"),
            (16, 8, target, "8:1 0 1 1"),
        ]);
        machine.probe.put("dm-0", Request::DmTable, Ok(table));
        let path = machine.survey("dm-0");
        layer(&path, "dm-0", LayerKind::DmOther, Cache::None, Flush::Unknown);
        assert_eq!(path.durable_at.fsync, None, "{target}");
        let reason = path.unknown_below.unwrap();
        assert!(
            reason.contains(&format!("what the dm target {target} of dm-0 does with a flush")),
            "{reason}"
        );
    }
    let mut machine = stacked("dm-0", "dm", WB);
    machine.probe.put("dm-0", Request::DmTable, Ok(Vec::new()));
    layer(&machine.survey("dm-0"), "dm-0", LayerKind::DmOther, Cache::None, Flush::Unknown);
}

#[test]
fn targets_without_a_kind_of_their_own_send_a_flush_on() {
    for target in ["era", "clone", "delay", "vdo", "pcache", "zoned", "log-writes"] {
        let mut machine = stacked("dm-0", "dm", WB);
        machine.probe.put("dm-0", Request::DmTable, Ok(dm::encode(&[(0, 8, target, "8:1 0")])));
        let path = machine.survey("dm-0");
        layer(&path, "dm-0", LayerKind::DmOther, Cache::None, Flush::Forwarded);
        assert_eq!(path.durable_at.fsync.as_deref(), Some("sda"), "{target}");
    }
}

#[test]
fn switch_and_unstriped_lose_flushes_whatever_their_queue_says() {
    for (target, queue) in [("switch", WB), ("unstriped", WB), ("switch", WT), ("unstriped", WT)] {
        let mut machine = stacked("dm-0", "dm", queue);
        let table = dm::encode(&[(0, 8, "linear", "8:1 0"), (8, 8, target, "2 128 0 8:1 0")]);
        machine.probe.put("dm-0", Request::DmTable, Ok(table));
        let path = machine.survey("dm-0");
        layer(&path, "dm-0", LayerKind::DmOther, Cache::None, Flush::Dropped);
        assert_eq!(has(&path, "flush-dropped"), Some(Severity::Danger), "{target}");
        assert_eq!(has(&path, "h4-stale-dm-table"), None, "loading the table again would change nothing");
        assert_eq!(path.durable_at.fsync, None, "{target}");
    }
}

#[test]
fn a_transient_snapshot_is_lost_at_a_reboot() {
    for (store, transient) in [("N", true), ("P", false), ("PO", false)] {
        let mut machine = stacked("dm-0", "dm", WB);
        // Behind a target of another kind, where it could be overlooked.
        let snapshot = format!("8:1 8:2 {store} 8");
        let table = dm::encode(&[(0, 8, "linear", "8:1 0"), (8, 8, "snapshot", &snapshot)]);
        machine.probe.put("dm-0", Request::DmTable, Ok(table));
        let path = machine.survey("dm-0");
        let (cache, flush) =
            if transient { (Cache::Volatile, Flush::Dropped) } else { (Cache::None, Flush::Forwarded) };
        layer(&path, "dm-0", LayerKind::DmSnapshot, cache, flush);
        assert_eq!(has(&path, "memory"), transient.then_some(Severity::Danger), "{store}");
        assert_eq!(path.durable_at.fsync.is_none(), transient, "{store}");
    }
}

#[test]
fn dm_is_known_by_its_uuid_where_the_table_is_for_root() {
    for (uuid, kind) in [
        ("CRYPT-LUKS2-00", LayerKind::DmCrypt),
        ("mpath-3500", LayerKind::DmMultipath),
        ("CRYPT-VERITY-0", LayerKind::DmVerity),
        ("LVM-abc", LayerKind::DmOther),
    ] {
        let mut machine = stacked("dm-0", "dm", WB);
        machine.tree.put_text("/sys/devices/virtual/block/dm-0/dm/uuid", uuid);
        machine.probe.put("dm-0", Request::DmTable, Err(Refusal::Denied));
        let path = machine.survey("dm-0");
        layer(&path, "dm-0", kind, Cache::None, Flush::Forwarded);
        assert_eq!(path.layer("dm-0").unwrap().identity.as_deref(), Some(uuid));
        assert_eq!(has(&path, "needs-root"), Some(Severity::Info));
    }
}

#[test]
fn a_stale_dm_table_drops() {
    let machine = stacked("dm-0", "dm", WT);
    let path = machine.survey("dm-0");
    assert_eq!(has(&path, "h4-stale-dm-table"), Some(Severity::Danger));
    assert_eq!(has(&path, "flush-dropped"), Some(Severity::Danger));
}

#[test]
fn dm_over_a_disabled_queue_is_named() {
    let mut machine = stacked("dm-0", "dm", WB);
    let queue =
        "/sys/devices/pci0000:00/0000:00:03.0/host0/target0:0:sda/0:2:0:0/block/sda/queue/write_cache";
    machine.tree.put_text(queue, WT);
    let path = machine.survey("dm-0");
    assert_eq!(has(&path, "h5-dm-over-disabled-queue"), Some(Severity::Danger));
    assert_eq!(has(&path, "h2-queue-write-through"), Some(Severity::Danger));
    assert_eq!(has(&path, "h4-stale-dm-table"), None);
}
