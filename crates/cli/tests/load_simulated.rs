//! Tests of simulated drives and NBD exports as targets of every command that runs a load.

use crate::common::{exited, said};
use crate::load_support::{Place, stderr};
use serde_json::Value;

/// Returns the document of a load, which must succeed.
fn document(typed: &str) -> Value {
    Place::new().json(typed, 0)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let typed = "load sim:ata-40gb?seed=7 --random --write 30 --depth 8 --duration 20s --seed 5";
    let (one, other) = (document(typed), document(typed));
    for pointer in ["/total/read/latency", "/total/write/latency", "/total/read/ios", "/targets/0/storage"] {
        assert!(one.pointer(pointer).is_some(), "{pointer}");
        assert_eq!(one.pointer(pointer), other.pointer(pointer), "{pointer}");
    }
}

#[test]
fn virtual_time_is_not_real_time() {
    let began = std::time::Instant::now();
    let run = document("load sim:sas-15k --random --duration 600s");
    assert!(began.elapsed().as_secs() < 300, "ten minutes of a disk took as long");
    let iops = run.pointer("/total/read/iops").unwrap().as_f64().unwrap();
    assert!((100.0..250.0).contains(&iops), "a 15k disk reads about 180 blocks a second at depth 1: {iops}");
}

#[test]
fn what_was_written_is_read_back_and_flushes_are_counted_at_the_drive() {
    let typed =
        "load sim:consumer-nvme-ssd?size=64MiB --random --write 100 --sync-every 4 --count 400 --verify";
    let run = document(typed);
    assert_eq!(run.pointer("/total/verified/lost"), Some(&Value::from(0)));
    assert!(run.pointer("/total/verified/blocks").unwrap().as_u64().unwrap() > 0);
    assert_eq!(run.pointer("/targets/0/storage/flushes"), run.pointer("/total/sync/ios"));
}

#[test]
fn blocks_beyond_the_largest_transfer_are_written_and_read_back_in_pieces() {
    let run =
        document("load sim:ata-40gb?size=64MiB --write 50 --block-size 1M --depth 4 --count 60 --verify");
    assert_eq!(run.pointer("/total/verified/lost"), Some(&Value::from(0)));
    assert!(run.pointer("/total/verified/blocks").unwrap().as_u64().unwrap() > 0);
    // The drive sees pieces, the application whole operations.
    assert_eq!(run.pointer("/total/write/latency/count"), run.pointer("/total/write/ios"));
}

#[test]
fn the_seed_of_the_drive_is_that_of_the_run_and_a_short_run_says_how_short() {
    let place = Place::new();
    let (one, other) =
        (document("load sim:memory?seed=7 --count 9"), document("load sim:memory?seed=7 --count 9"));
    assert_eq!(one["seed"], other["seed"]);
    let output = place.run("load sim:memory --duration 200ms");
    assert!(stderr(&output).contains("measuring (200 ms left)"), "{}", said(&output));
}

#[test]
fn a_driver_that_drops_flushes_shows_at_the_storage() {
    let place = Place::new();
    std::fs::write(
        place.path("vendor.toml"),
        include_str!("../../sim/models/ata-40gb.toml")
            .replace("[behaviour]", "[behaviour]\ndriver_drops_flush = true"),
    )
    .unwrap();
    let run = place.json("load sim:./vendor.toml --write 100 --sync-every 1 --count 50", 1);
    let ids: Vec<_> =
        run["verdicts"].as_array().unwrap().iter().map(|verdict| verdict["id"].clone()).collect();
    assert!(ids.contains(&Value::from("flush-dropped")), "{ids:?}");
    assert_eq!(run.pointer("/total/sync/ios"), Some(&Value::from(50)));
    assert_eq!(run.pointer("/targets/0/storage/flushes"), Some(&Value::from(0)));
}

#[test]
fn jobs_of_one_run_on_a_simulated_drive_are_no_others() {
    let place = Place::new();
    let workload = "targets = [\"sim:enterprise-sata-ssd\"]\ncount = 200\nwrite = 100\nrandom = true\n\n\
                    [[job]]\nblock-size = \"64k\"\n\n[[job]]\nblock-size = \"4k\"\n";
    std::fs::write(place.path("two.toml"), workload).unwrap();
    let run = place.json("load two.toml", 0);
    assert_eq!(run["targets"].as_array().map(Vec::len), Some(2), "{run:#}");
    let shared = |verdict: &Value| verdict["id"] == "device-shared-with-others";
    assert!(!run["verdicts"].as_array().unwrap().iter().any(shared), "{}", run["verdicts"]);
    for target in run["targets"].as_array().unwrap() {
        assert_eq!(target["storage"]["attribution"]["foreign_flushes"], 0, "{target:#}");
    }
}

#[test]
fn the_dialects_run_on_simulated_drives() {
    for typed in [
        "diskspd -b8K -r -o32 -w30 -d2 -W0 sim:plp-nvme-ssd?size=1GiB",
        "sqlio -kW -frandom -b64 -o8 -s2 sim:he8-media-cache",
        "fio --name=x --filename=sim:consumer-sata-ssd --rw=randwrite --size=64m --direct=1",
    ] {
        let output = Place::new().run(typed);
        assert_eq!(output.status.code(), Some(0), "{typed}: {}", said(&output));
    }
}

#[test]
fn names_that_mean_nothing_are_refused_with_what_there_is() {
    let place = Place::new();
    for (typed, expected) in [
        ("load sim:none-such", "none-such"),
        ("load sim:", "sim:"),
        ("load sim:memory?wce=perhaps", "wce=perhaps"),
        ("load sim:memory?seat=3", "seat"),
        ("load sim:memory?fault=write:eoi", "eoi"),
        ("load nbd+unix:///?socket=none-such", "none-such"),
        ("load nbd+unix:///", "nbd+unix"),
    ] {
        let output = place.run(typed);
        let code = output.status.code().unwrap();
        assert!(code == 2 || code == 5, "{typed} ended with {code}: {}", said(&output));
        assert!(stderr(&output).contains(expected), "{typed}: {}", said(&output));
    }
}

#[test]
fn untorn_writes_are_taken_within_the_unit_of_the_drive_and_refused_beyond() {
    let drive = "sim:consumer-nvme-ssd?size=64MiB&geometry.atomic_unit=16KiB&geometry.atomic_boundary=32KiB";
    let words = "--random --write 100 --count 200 --verify --atomic --block-size";
    let run = document(&format!("load {drive} {words} 16k"));
    let atomic = run.pointer("/targets/0/atomic").unwrap();
    assert_eq!(*atomic, serde_json::json!({"unit_bytes": 16384, "refused": 0, "torn": 0}));
    assert!(document(&format!("load {drive} --count 9")).pointer("/targets/0/atomic").is_none());
    for (target, size, why) in [
        (drive, "32k", "powers of two from 512 B to 16 KiB that divide 32 KiB"),
        (drive, "12k", "powers of two from 512 B to 16 KiB"),
        ("sim:consumer-nvme-ssd?size=64MiB", "4k", "powers of two from 512 B to 512 B"),
    ] {
        let output = exited(Place::new().run(&format!("load {target} {words} {size}")), 2);
        assert!(stderr(&output).contains(why), "{}", said(&output));
    }
}
