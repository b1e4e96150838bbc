//! The loss that `survey --now` names for a power cut, held against what cuts took: the image of a device at
//! one moment is what a cut leaves when all that may be dropped is dropped.
//!
//! `PLUMB_EXPOSURES` says how many cuts of each workload (2), `PLUMB_SEED` the seed of the first (1).

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{can_mount, document, holds, in_own_mounts, plumb, said, scratch};
use crate::drive_cuts::Chance;
use crate::drive_support::{Server, cannot_attach};

/// Two readings around a cut: a loop device past the page cache of its file, so that the file has what was
/// handed to the device and nothing else. `$work` writes below `$place/live` and does not sync.
const AROUND_A_CUT: &str = r#"
cd "$place"; mkdir live cut debug
mount -t debugfs debugfs debug
truncate -s 192M image; mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 image
device=$(losetup --find --show --direct-io=on image)
trap 'exec 7>&-; umount cut 2>/dev/null || true; umount live; losetup -d "$device"; umount debug' EXIT
mount "$device" live; mkdir live/data; sync -f live
eval "$work"
"$plumb" survey --now live --json > before.json 7>&-
cp --reflink=never image cut.img
"$plumb" survey --now live --json > after.json 7>&-
cp -r live/data live-data
mount -o loop cut.img cut
if test -d cut/data; then cp -r cut/data cut-data; else mkdir cut-data; fi
"#;

/// Workloads that sync nothing: name, the script, and the process that has its file open at the cut.
const WORKLOADS: [(&str, &str, Option<&str>); 4] = [
    ("dd", "dd if=/dev/urandom of=live/data/file bs=1M count=$mib 2>/dev/null", None),
    ("held", "exec 7>live/data/held; dd if=/dev/urandom bs=1M count=$mib 2>/dev/null >&7", Some("sh")),
    (
        "sqlite",
        "sqlite3 live/data/db \"pragma synchronous=off; pragma journal_mode=memory; create table t(b); \
         with recursive n(i) as (select 1 union all select i+1 from n where i < $mib) insert into t select randomblob(1048000) from n;\" >/dev/null",
        None,
    ),
    (
        "copy",
        "mkdir src; for i in 1 2 3 4 5 6 7 8; do dd if=/dev/urandom of=src/$i bs=128k count=$mib 2>/dev/null; done; \
         for i in 1 2 3 4 5 6 7 8; do cp src/$i live/data/.$i.part; mv live/data/.$i.part live/data/$i; done",
        None,
    ),
];

/// Bytes of the files in `live` that are not in `cut`.
fn lost(live: &Path, cut: &Path) -> u64 {
    let of_file = |name: &std::ffi::OsStr| {
        let there = fs::read(live.join(name)).unwrap();
        let left = fs::read(cut.join(name)).unwrap_or_default();
        let same = there.iter().zip(&left).filter(|(one, other)| one == other).count();
        (there.len() - same) as u64
    };
    fs::read_dir(live).unwrap().map(|entry| of_file(&entry.unwrap().file_name())).sum()
}

fn exposure(place: &Path, name: &str) -> Value {
    let survey: Value = serde_json::from_slice(&fs::read(place.join(name)).unwrap()).unwrap();
    holds("survey", &survey);
    survey["paths"][0]["exposure"].clone()
}

fn number(from: &str, default: u64) -> u64 {
    std::env::var(from).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn a_cut_takes_no_more_than_was_said_and_a_third_of_it_at_least() {
    if !can_mount() {
        return;
    }
    if let Some(why) = cannot_attach(&["mkfs.ext4", "sqlite3"]) {
        return plumb_testkit::skip(&why);
    }
    let first = number("PLUMB_SEED", 1);
    for seed in first..first + number("PLUMB_EXPOSURES", 2) {
        for (name, work, holder) in WORKLOADS {
            let mib = 4 + Chance(seed).up_to(20);
            let place = scratch();
            let place = place.path();
            let script = format!("mib={mib}; work='{work}'; {AROUND_A_CUT}");
            let output = in_own_mounts(&script, place);
            assert!(output.status.success(), "{name}, seed {seed}: {}", said(&output));
            let (before, after) = (exposure(place, "before.json"), exposure(place, "after.json"));
            let most = |of: &Value| of["bytes_max"].as_u64().unwrap();
            let lost = lost(&place.join("live-data"), &place.join("cut-data"));
            let about = format!("{name}, seed {seed}, {mib} MiB: lost {lost}: {before:#}");
            assert!(lost > mib << 19, "most of it was still in memory: {about}");
            assert!(most(&before) >= lost && most(&after) >= lost, "{about}");
            assert!(most(&before) <= 3 * lost, "{about}");
            let names = |of: &Value| {
                of["holders"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|of| of["process"].to_string())
                    .collect::<String>()
            };
            match holder {
                Some(holder) => {
                    assert!(names(&before).contains(holder), "{about}");
                    assert_eq!(before["holders"][0]["shared_bytes"], 0, "{about}");
                    assert!(before["unheld_bytes_max"].as_u64().unwrap() < lost / 2, "{about}");
                }
                None => {
                    assert_eq!(names(&before), "", "{about}");
                    assert_eq!(before["unheld_bytes_max"], before["bytes_max"], "{about}");
                }
            }
            // One reading cannot tell what the journal holds, and says so.
            let journal =
                before["parts"].as_array().unwrap().iter().find(|part| part["kind"] == "journal").unwrap();
            assert!(
                journal["bytes_max"].is_null() && journal["bytes_max_unknown_because"].is_string(),
                "{about}"
            );
            assert_eq!(before["complete"], false, "{about}");
        }
    }
}

#[test]
fn what_a_simulated_drive_holds_is_said_exactly() {
    if let Some(why) = cannot_attach(&[]) {
        return plumb_testkit::skip(&why);
    }
    let server = Server::start(&["consumer-nvme-ssd", "--size", "16M", "--attach"]);
    let survey = || {
        let output = plumb().args(["survey", "--now", "--json", server.device()]).output().unwrap();
        let survey = document(&output);
        holds("survey", &survey);
        let parts = survey["paths"][0]["exposure"]["parts"].as_array().unwrap().clone();
        parts.into_iter().find(|part| part["layer"].as_str().unwrap().starts_with("plumb drive")).unwrap()
    };
    assert_eq!(survey()["bytes_max"], 0);
    let direct = ["if=/dev/urandom", "bs=64k", "count=8", "oflag=direct", "status=none"];
    let mut dd = std::process::Command::new("dd");
    let written = dd.args(direct).arg(format!("of={}", server.device())).output().unwrap();
    assert!(written.status.success(), "{}", said(&written));
    let said = survey();
    assert_eq!(said["bytes_max"], server.order("status", &[])["dirty_bytes"], "{said}");
    let most = said["bytes_max"].as_u64().unwrap();
    let cut = server.order("cut", &[]);
    let lost = cut["lost_at_last_cut_blocks"].as_u64().unwrap() * 512;
    assert!(most >= lost && most <= 8 * 65536, "said {most}, lost {lost}: {cut}");
    server.order("power-on", &[]);
    server.detach();
}

#[test]
fn an_observation_bounds_what_was_at_risk_and_has_metrics() {
    let directory = scratch();
    let observe = |more: &[&str]| {
        let mut command = plumb();
        command.args(["observe", "--counters", "--no-record", "--duration", "100ms"]).args(more);
        command.arg(directory.path()).output().unwrap()
    };
    let observed = observe(&["--exposure", "--json"]);
    if observed.status.code() == Some(2) {
        return plumb_testkit::skip("no block device is beneath the directory");
    }
    let observation = document(&observed);
    holds("observation", &observation);
    let exposure = &observation["exposures"][0];
    assert!(exposure["readings"].as_u64().unwrap() >= 1, "{exposure}");
    assert!(exposure["bytes_max_peak"].as_u64() >= exposure["now"]["bytes_max"].as_u64(), "{exposure}");
    let metrics = said(&observe(&["--exposure", "--format", "prometheus"]));
    assert!(metrics.contains("plumb_exposure_bytes_max{target="), "{metrics}");
    assert!(metrics.contains("plumb_exposure_complete{target="), "{metrics}");
    let refused = said(&observe(&["--format", "prometheus"]));
    assert!(refused.contains("add --exposure"), "{refused}");
}

#[test]
fn a_recording_has_no_now() {
    let directory = scratch();
    let refused = plumb().args(["survey", "--now", ".", "--record"]).arg(directory.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    let unknown = plumb().args(["survey", "--now", "sim:null"]).output().unwrap();
    assert!(said(&unknown).contains("the kernel does not know sim:null"), "{}", said(&unknown));
}
