//! Tests of the data that `plumb observe --exposure` reports as exposed to a power cut, against cuts of
//! simulated drives below PostgreSQL, SQLite, rsync and dd on ext4: one random cut, and one that loses
//! everything it may, after which the medium at that moment is left.
//!
//! `PLUMB_EXPOSURES` is the number of cuts per program (1), `PLUMB_SEED` the seed of the first (1).

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cache_cuts::{POSTGRES, POSTGRES_BEGIN, POSTGRES_SERVER, without_postgres};
use crate::common::{can_mount, exited, holds, in_own_mounts, plumb, said, scratch, valid_document};
use crate::drive_cuts::{Chance, from_environment};
use crate::drive_support::{Server, cannot_attach};

/// Script of a cut in the middle of `work`, after `commits` commits of the journal. The programs are stopped
/// from the last reading to the cut, and the drive while its medium is copied.
const A_CUT: &str = r#"
cd "$place"; mkdir live cut worst debug
stop() { kill -STOP "$1" 2>/dev/null || return 0; for child in $(ps -o pid= --ppid "$1"); do echo "$child"; stop "$child"; done; }
commits() { sed -n '1s/ .*//p' "/proc/fs/jbd2/${device##*/}-8/info"; }
mount -t debugfs debugfs debug
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$device"
mount -o commit=1 "$device" live; mkdir live/data
export kib syncs TMPDIR="$place"
bash -c "$(cat prepare)" "$PWD/live/data"
sync -f live
"$plumb" observe --counters --exposure --no-record --duration 1h --json live > said.json 2> observer & observer=$!
bash -c "$(cat work)" "$PWD/live/data" > worked 2>&1 & worker=$!
trap 'kill -KILL $worker $(stop $worker) $observer 2>/dev/null || true; umount -l live cut worst debug 2>/dev/null || true' EXIT
until grep -q observing observer; do kill -0 $observer; sleep 0.1; done
until=$(($(commits) + commits))
until test "$(commits)" -ge $until; do kill -0 $worker || { cat worked >&2; exit 1; }; sleep 0.1; done
workers="$worker $(stop $worker)"
cp -r live/data seen
kill -INT $observer; wait $observer || true
kill -STOP "$server"; cp medium worst.img; kill -CONT "$server"
"$plumb" drive cut "$name" > /dev/null
kill -KILL $workers
until umount live 2>/dev/null; do sleep 0.1; done
"$plumb" drive power-on "$name" > /dev/null
mount "$device" cut; cp -r cut/data cut-data; umount cut
mount -o loop worst.img worst; cp -r worst/data worst-data; umount worst
"#;

/// Program with its work in the directory `$0`, before the measurement and until it is killed, in pieces of
/// `$kib` KiB. If `$syncs` is 1, it syncs or uses direct I/O.
struct Program {
    name: &'static str,
    before: &'static [&'static str],
    work: &'static [&'static str],
    /// True if the program always has an open file with dirty data, unless it syncs.
    holds_open: bool,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "dd",
        before: &[],
        work: &[r#"cd "$0"; while head -c ${kib}K /dev/urandom; do sleep 0.05; done |
dd of=file bs=16k iflag=fullblock $(test $syncs = 0 || echo oflag=direct)"#],
        holds_open: true,
    },
    Program {
        name: "rsync",
        before: &[r#"mkdir "$0/../../src"; cd "$0/../../src"
for i in $(seq 16); do head -c $((kib * i * 256)) /dev/urandom > $i; done"#],
        work: &[r#"cd "$0"; n=0
while n=$((n + 1)); do
    rsync -a $(test $syncs = 0 -o $((n % 4)) -ne 0 || echo --fsync) ../../src/ $n; sleep 0.1
done"#],
        holds_open: false,
    },
    Program {
        name: "sqlite3",
        before: &[r#"cd "$0"; sqlite3 base 'pragma journal_mode=wal; create table t(b)'"#],
        work: &[r#"cd "$0"
{ echo "pragma synchronous=$syncs; pragma wal_autocheckpoint=2000;"
while echo "insert into t values(randomblob($kib * 1024));"; do sleep 0.02; done; } | sqlite3 base"#],
        holds_open: true,
    },
    Program {
        name: "postgres",
        before: &[
            POSTGRES,
            POSTGRES_BEGIN,
            "\necho -e \"shared_buffers=1MB\\nfsync=$syncs\" >> data/postgresql.conf",
        ],
        work: &[
            POSTGRES,
            POSTGRES_SERVER,
            r#"
while ask -c "INSERT INTO entry (text) SELECT repeat(md5(random()::text), 40) FROM generate_series(1, $kib)"
do sleep 0.1; done"#,
        ],
        holds_open: false,
    },
];

/// Returns the number of bytes in files below `live` that are not below `cut`.
fn lost(live: &Path, cut: &Path) -> u64 {
    let of_entry = |entry: fs::DirEntry| {
        let (kind, there) = (entry.file_type().unwrap(), cut.join(entry.file_name()));
        if kind.is_dir() {
            return lost(&entry.path(), &there);
        }
        if !kind.is_file() {
            return 0;
        }
        let (seen, left) = (fs::read(entry.path()).unwrap(), fs::read(there).unwrap_or_default());
        let same = seen.iter().zip(&left).filter(|(one, other)| one == other).count();
        (seen.len() - same) as u64
    };
    fs::read_dir(live).unwrap().map(|entry| of_entry(entry.unwrap())).sum()
}

/// Cuts the power below a program, which `syncs` or does not. Returns true if the reported amount is at most
/// three times the largest loss.
fn cut_below(program: &Program, seed: u64, syncs: bool) -> bool {
    let name = program.name;
    let mut chance = Chance(seed);
    let (kib, commits) = (16 + chance.up_to(48), 4 + chance.up_to(4));
    let place = scratch();
    let place = place.path();
    fs::write(place.join("prepare"), program.before.concat()).unwrap();
    fs::write(place.join("work"), program.work.concat()).unwrap();
    let (medium, seed_text) = (place.join("medium"), seed.to_string());
    let backing = ["--backing", medium.to_str().unwrap(), "--seed", &seed_text];
    let server = Server::start(
        &[&["consumer-nvme-ssd?flash.destage_after=30s", "--size", "384M", "--attach"][..], &backing]
            .concat(),
    );
    let of_server = format!("device={}; name={}; server={}", server.device(), server.name, server.pid());
    let script = format!("kib={kib}; commits={commits}; syncs={}; {of_server}; {A_CUT}", u8::from(syncs));
    let output = in_own_mounts(&script, place);
    assert!(output.status.success(), "{name}, PLUMB_SEED={seed}: {}", said(&output));
    server.detach();
    let observation: Value = serde_json::from_slice(&fs::read(place.join("said.json")).unwrap()).unwrap();
    holds("observation", &observation);
    let now = &observation["exposures"][0]["now"];
    let most = now["bytes_max"].as_u64().unwrap();
    let seen = place.join("seen");
    let (lost, worst) = (lost(&seen, &place.join("cut-data")), lost(&seen, &place.join("worst-data")));
    let about = format!("{name}, PLUMB_SEED={seed}: said {most}, lost {lost}, at worst {worst}");
    eprintln!("{about}");
    assert!(now["complete"] == true && lost.max(worst) <= most, "{about}: {now:#}");
    let holders = now["holders"].as_array().unwrap();
    let is_named = holders.iter().any(|of| of["process"] == name);
    assert!(syncs || !program.holds_open || is_named, "{about}: {now:#}");
    most <= 3 * worst
}

/// Number of attempts with a program that does not sync, because other programs may sync all file systems
/// just before a cut.
const TRIES: usize = 3;

#[test]
fn a_cut_takes_no_more_than_was_said_and_a_third_of_it_where_nothing_syncs() {
    if !can_mount() {
        return;
    }
    let missing = cannot_attach(&["mkfs.ext4", "sqlite3", "rsync"]).or_else(without_postgres);
    if let Some(why) = missing {
        return plumb_testkit::skip(&why);
    }
    let first = from_environment("PLUMB_SEED", 1);
    for seed in first..first + from_environment("PLUMB_EXPOSURES", 1) {
        std::thread::scope(|scope| {
            for (place, program) in (0..).zip(&PROGRAMS) {
                // The bound includes synced data until the journal has committed three times.
                let syncs = (seed + place) % 2 == 0;
                scope.spawn(move || {
                    let is_tight = (0..TRIES).any(|_| cut_below(program, seed, syncs) || syncs);
                    assert!(is_tight, "{}: none of {TRIES} cuts took a third of what was said", program.name);
                });
            }
        });
    }
}

#[test]
fn what_a_simulated_drive_holds_is_said_exactly() {
    if let Some(why) = cannot_attach(&[]) {
        return plumb_testkit::skip(&why);
    }
    // Nothing is destaged between two readings.
    let server = Server::start(&["consumer-nvme-ssd?flash.destage_after=1000s", "--size", "16M", "--attach"]);
    let survey = || {
        let output = plumb().args(["survey", "--now", "--json", server.device()]).output().unwrap();
        let survey = valid_document("survey", &output);
        let parts = survey["paths"][0]["exposure"]["parts"].as_array().unwrap().clone();
        parts.into_iter().find(|part| part["layer"].as_str().unwrap().starts_with("plumb drive")).unwrap()
    };
    assert_eq!(survey()["bytes_max"], 0);
    let direct = ["if=/dev/urandom", "bs=64k", "count=8", "oflag=direct", "status=none"];
    let mut dd = std::process::Command::new("dd");
    exited(dd.args(direct).arg(format!("of={}", server.device())).output().unwrap(), 0);
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
    let observation = valid_document("observation", &observed);
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
    exited(plumb().args(["survey", "--now", ".", "--record"]).arg(directory.path()).output().unwrap(), 2);
    let unknown = plumb().args(["survey", "--now", "sim:null"]).output().unwrap();
    assert!(said(&unknown).contains("the kernel does not know sim:null"), "{}", said(&unknown));
}
