//! Tests of the table of outcomes (docs/OUTCOMES.md), one row per place: the knowledge about a place
//! determines headline, level and exit code, and `survey`, the run and `report` agree. Rows guard against
//! false alarms (a flush sent by a server, a path hidden by a mount) and false comfort (no finding where
//! nothing is known).
//!
//! A row runs in a mount namespace of its own, so that nothing stays mounted.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::common::{plumb, said, scratch};

/// Place created by a shell, with the expected outcome.
struct Row {
    /// Shell commands that create the place; `skip REASON` ends the row if that is impossible.
    place: &'static str,
    /// Words of plumb, with `--json` where a document is printed.
    run: &'static str,
    outcome: Outcome,
    /// Expected finding; empty for none.
    finding: &'static str,
    /// Expected exit code.
    exit: i32,
}

/// Outcomes in docs/OUTCOMES.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Danger,
    NotKnown,
    NoFinding,
}
use Outcome::{Danger, NoFinding, NotKnown};

/// Row of a danger, which ends with 1.
const fn danger(place: &'static str, run: &'static str, finding: &'static str) -> Row {
    Row { place, run, outcome: Danger, finding, exit: 1 }
}

const fn not_known(place: &'static str, run: &'static str, finding: &'static str) -> Row {
    Row { place, run, outcome: NotKnown, finding, exit: 0 }
}

const fn no_finding(place: &'static str, run: &'static str, finding: &'static str) -> Row {
    Row { place, run, outcome: NoFinding, finding, exit: 0 }
}

/// Shell functions for creating places.
const PRELUDE: &str = r#"
set -e
skip() { echo "SKIP $*" >&2; exit 77; }
need() { command -v "$1" >/dev/null || skip "there is no $1"; }
make() { truncate -s "$2" i.img; "mkfs.$1" -q $3 i.img 2>/dev/null >&2 || skip "mkfs.$1 does not work"; mkdir -p m; }
disk() { make ext4 48M -F; mount -o "loop${1:+,$1}" i.img m 2>/dev/null || skip "no loop device"; }
other() { kind=$1; make "$@"; mount -o loop -t "$kind" i.img m 2>/dev/null || skip "no $kind here"; }
memory() { mkdir -p t; mount -t tmpfs none t; }
layers() { mkdir -p low up work o; mount -t overlay overlay -o "lowerdir=$PWD/low,upperdir=$PWD/${1:-up},workdir=$PWD/${2:-work}$3" o \
  2>/dev/null || skip "no overlay here"; }
fuse() { need fuse2fs; make ext4 48M -F; L=$(losetup -f --show i.img); exec 9<"$L"; losetup -d "$L"; fuse2fs "$L" m -o rw \
  >/dev/null 2>&1 || skip "no FUSE here"; }
apart() { unshare -m --propagation private sh -c "$1; touch m/f; exec 3<>m/f; echo ready; exec sleep 3600" >ready 2>/dev/null & A=$!
  trap 'kill $A 2>/dev/null || :' EXIT; until [ -s ready ]; do kill -0 $A 2>/dev/null || skip "no namespace"; sleep 0.05; done; }
nbd() { need nbdkit; nbdkit -f -U "$PWD/n.sock" "$@" & N=$!; trap 'kill $N 2>/dev/null || :' EXIT
  until [ -S n.sock ]; do kill -0 $N 2>/dev/null || skip "nbdkit does not start"; sleep 0.05; done; U="nbd+unix:///?socket=$PWD/n.sock"; }
zram() { Z=$(cat /sys/class/zram-control/hot_add 2>/dev/null) || skip "no zram here"
  trap 'umount -q m || :; echo 1 >/sys/block/zram$Z/reset && echo $Z >/sys/class/zram-control/hot_remove || :' EXIT
  echo 96M >/sys/block/zram$Z/disksize; mkfs.ext4 -q /dev/zram$Z; mkdir -p m; mount /dev/zram$Z m; }
bare() { printf 'case "$1" in %s get_size) echo 16777216;; can_write) exit 0;; pread) head -c "$3" /dev/zero;; pwrite) cat >/dev/null;; *) exit 2;; esac' "$1" >p.sh
  chmod +x p.sh; nbd sh "$PWD/p.sh"; }
"#;

const SYNCED: &str = "load --json m/f --size 1M --write 100 --sync-every 1 --count 20";
const CACHED: &str = "load --json m/f --size 1M --write 100 --cached --count 20";
const OVERLAID: &str = "load --json o/f --size 1M --write 100 --sync-every 1 --count 20";

const ROWS: &[Row] = &[
    no_finding("disk", SYNCED, ""),
    no_finding("disk", "load --json m/f --size 1M --write 100 --dsync --depth 8 --count 400", ""),
    no_finding("disk", "load --json m/f --size 1M --write 100 --dsync --depth 32 --count 400", ""),
    danger("disk nobarrier", SYNCED, "barriers-off"),
    danger("disk nobarrier", "check --json m --duration 1s", "barriers-off"),
    danger(
        "disk nobarrier; mv m 'a b' 2>/dev/null || { umount m; mkdir 'a b'; mount -o loop,nobarrier i.img 'a b'; }; cd 'a b'",
        "survey .",
        "barriers-off",
    ),
    no_finding("disk sync", CACHED, "synchronous-mount"),
    no_finding("disk dirsync", CACHED, "synchronous-mount"),
    no_finding("disk data=writeback", SYNCED, "lax-order"),
    no_finding(
        "disk data=journal",
        "load --json m/f --size 1M --write 100 --cached --sync-every 1 --count 20",
        "",
    ),
    no_finding("disk data=journal", "check --json m --duration 1s", ""),
    no_finding("other ext2 48M -F", SYNCED, ""),
    no_finding("other ext3 48M -F", SYNCED, ""),
    no_finding("other xfs 320M", SYNCED, ""),
    no_finding("other btrfs 128M", SYNCED, ""),
    no_finding("disk; mkdir m/d; chattr +S m/d; mount --bind m/d m", CACHED, "synchronous-mount"),
    no_finding(
        "disk; head -c 1048576 /dev/zero >m/f; chattr +S m/f",
        "load --json m/f --overwrite --write 100 --cached --count 20",
        "synchronous-mount",
    ),
    no_finding(
        "disk; head -c 1048576 /dev/zero >m/f; chattr +S m/f",
        "load --json m/f --overwrite --write 100 --count 20",
        "synchronous-mount",
    ),
    danger("memory; mv t m 2>/dev/null || { mkdir -p m; mount --bind t m; }", SYNCED, "memory"),
    danger("mkdir m; mount -t tmpfs none m", "check --json m --duration 1s", "memory"),
    danger("mkdir m; mount -t ramfs none m", CACHED, "memory"),
    danger("memory; cd t; disk", SYNCED, "memory"),
    no_finding(
        "mkdir d; cd d; disk; cd ..; mkdir m; mount --bind d/m m; mount -t tmpfs none d; touch d/i.img",
        SYNCED,
        "",
    ),
    no_finding("disk; rm i.img", SYNCED, ""),
    no_finding(
        "make ext4 48M -F; L=$(losetup -f --show --direct-io=on i.img) || skip 'no direct loop device'; mount $L m; losetup -d $L",
        SYNCED,
        "",
    ),
    no_finding(
        "disk; mkdir b; mount --bind m b",
        "load --json b/f --size 1M --write 100 --sync-every 1 --count 20",
        "",
    ),
    no_finding("layers", OVERLAID, ""),
    danger("layers up work ,volatile", OVERLAID, "volatile-overlay"),
    danger("memory; mkdir t/up t/work; layers t/up t/work", OVERLAID, "memory"),
    no_finding(
        "mkdir -p low l2 o; mount -t overlay overlay -o lowerdir=low:l2 o || skip 'no overlay'",
        "survey o",
        "read-only",
    ),
    no_finding(
        "mkdir -p low l2 o; mount -t overlay overlay -o lowerdir=low:l2 o || skip 'no overlay'",
        "survey --strict o",
        "read-only",
    ),
    not_known("fuse", SYNCED, "path-ends-unseen"),
    not_known("mkdir x; mount -t tracefs none x || skip 'no tracefs'; fuse", SYNCED, "path-ends-unseen"),
    Row {
        exit: 3,
        ..not_known(
            "fuse",
            "load --strict --json m/f --size 1M --write 100 --sync-every 1 --count 20",
            "path-ends-unseen",
        )
    },
    not_known("fuse", "check --json m --duration 1s", "path-ends-unseen"),
    no_finding("fuse", "load --json m/f --size 1M --count 20", "path-ends-unseen"),
    not_known("fuse", "survey m", "path-ends-unseen"),
    no_finding(
        "apart 'mkdir m; truncate -s 48M a.img; mkfs.ext4 -q -F a.img; mount -o loop a.img m'",
        "survey /proc/$A/root/$PWD/m",
        "volatile-cache",
    ),
    danger(
        "apart 'mkdir m; truncate -s 48M a.img; mkfs.ext4 -q -F a.img; mount -o loop,nobarrier a.img m'",
        "survey /proc/$A/fd/3",
        "barriers-off",
    ),
    danger("apart 'mkdir m; mount -t tmpfs none m'", "survey /proc/$A/root/$PWD/m", "memory"),
    danger(
        "mkdir m s; apart 'mount -t tmpfs none s; truncate -s 48M s/a.img; mkfs.ext4 -q -F s/a.img; losetup -f --show s/a.img >dev; mount $(cat dev) m'; exec 8<$(cat dev); losetup -d $(cat dev); touch s/a.img",
        "survey $(cat dev)",
        "memory",
    ),
    no_finding("disk ro", "survey m", "read-only"),
    no_finding("disk; mount -o remount,ro m", "survey m", "read-only"),
    no_finding("disk; mkdir b; mount --bind m b; mount -o remount,bind,ro b", "survey b", "read-only"),
    danger("disk nobarrier; mount -o remount,ro m", "survey m", "barriers-off"),
    no_finding(
        "truncate -s 48M i.img; L=$(losetup -r -f --show i.img) || skip 'no loop device'; exec 9<$L; losetup -d $L",
        "survey $L",
        "read-only",
    ),
    no_finding(
        // The kernel keeps this setting for the next user of the loop device.
        "truncate -s 48M i.img; L=$(losetup -f --show i.img) || skip 'no loop device'; trap 'blockdev --setrw $L' EXIT; blockdev --setro $L; exec 9<$L; losetup -d $L",
        "survey $L",
        "read-only",
    ),
    danger("zram", SYNCED, "memory"),
    danger("bare", "survey $U", "nbd-no-flush"),
    danger("bare", "load --json --overwrite $U --write 100 --count 20", "nbd-no-flush"),
    danger("bare 'can_fua) echo native;;'", "survey $U", "nbd-no-flush"),
    Row {
        exit: 5,
        ..danger("bare", "load --json --overwrite $U --write 100 --sync-every 1 --count 20", "nbd-no-flush")
    },
    no_finding("nbd memory 16M", "survey $U", "remote-storage"),
    no_finding("nbd -r memory 16M", "survey $U", "read-only"),
    no_finding(
        "nbd memory 16M",
        "load --json --overwrite $U --write 100 --sync-every 1 --count 20",
        "remote-storage",
    ),
    not_known("mkdir m; mount -t tmpfs none /sys", SYNCED, "path-ends-unseen"),
    not_known("mount -t tmpfs none /sys", "survey .", "path-ends-unseen"),
    Row { exit: 3, ..not_known("mount -t tmpfs none /sys", "survey --strict .", "path-ends-unseen") },
    not_known("true", "survey /proc", "path-ends-unseen"),
    no_finding("true", "check --json sim:liar --duration 1s", "simulated"),
    danger("true", "survey sim:null", "keeps-nothing"),
    danger("true", "check --json sim:null --duration 1s", "keeps-nothing"),
    danger("true", "load --json sim:null --write 100 --sync-every 1 --count 50", "keeps-nothing"),
    danger(
        "true",
        "load --json cache:backing=sim:null,log=sim:memory,size=1GiB --write 100 --sync-every 1 --count 50",
        "keeps-nothing",
    ),
    no_finding("true", "load --json sim:memory --write 100 --sync-every 1 --count 50", "simulated"),
    no_finding("true", "check --json sim:consumer-nvme-ssd --duration 1s", "volatile-cache"),
    no_finding("true", "check --json sim:plp-nvme-ssd --duration 1s", "simulated"),
    no_finding("true", "check --json sim:nearline-4tb?wce=off --duration 1s", "simulated"),
    no_finding(
        "true",
        "load --json sim:consumer-sata-ssd --write 100 --dsync --depth 8 --count 400",
        "simulated",
    ),
    no_finding("true", "load --json sim:sas-15k --write 100 --sync-every 1 --count 50", "simulated"),
    no_finding(
        "true",
        "load --json sim:he8-media-cache --random --write 100 --sync-every 1 --count 50",
        "volatile-cache",
    ),
];

/// Rules about the machine and the quality of figures, which a busy test machine breaks. They do not concern
/// the path.
const FIGURES: [&str; 13] = [
    "backlog",
    "cached-below",
    "compressible",
    "depth-not-reached",
    "device-shared-with-others",
    "faster-than-the-platter",
    "generator-bound",
    "no-steady-state",
    "not-settled",
    "not-steady",
    "page-cache",
    "steal",
    "too-short",
];

/// Creates the place of a row, and runs its command there; `None` if that is impossible, which is reported.
fn made(row: &Row, here: &Path) -> Option<Output> {
    let binary = env!("CARGO_BIN_EXE_plumb");
    let record =
        if row.run.starts_with("survey") { String::new() } else { format!("--out {}/run", here.display()) };
    let (command, words) = row.run.split_once(' ').unwrap();
    let script = format!(
        "{PRELUDE}\ncd '{}'; {} >&2\n'{binary}' {command} {record} {words}",
        here.display(),
        row.place
    );
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "bash", "-c", &script])
        .output()
        .unwrap();
    if output.status.code() == Some(77) || String::from_utf8_lossy(&output.stderr).contains("unshare failed")
    {
        plumb_testkit::skip(&format!("{}: {}", row.place, String::from_utf8_lossy(&output.stderr).trim()));
        return None;
    }
    Some(output)
}

fn ids<'a>(document: &'a Value, severities: &[&str]) -> BTreeSet<&'a str> {
    let verdicts = document["verdicts"].as_array().into_iter().flatten();
    let wanted = |verdict: &&Value| severities.contains(&verdict["severity"].as_str().unwrap());
    verdicts.filter(wanted).map(|verdict| verdict["id"].as_str().unwrap()).collect()
}

/// Compares a document with the row, and returns the mismatch, if any.
fn judged(row: &Row, document: &Value, output: &Output) -> Result<(), String> {
    let all = ids(document, &["info", "warning", "danger"]);
    let serious: BTreeSet<&str> =
        ids(document, &["warning", "danger"]).into_iter().filter(|id| !FIGURES.contains(id)).collect();
    let is_of_figures = serious.is_empty() && document["level"] == "warning";
    let level = document["level"].as_str().unwrap();
    let outcome = match level {
        "danger" => Some(Danger),
        "unknown" => Some(NotKnown),
        _ if serious.is_empty() => Some(NoFinding),
        _ => None,
    };
    let headline = document["headline"].as_str().unwrap();
    // A warning about the figures takes precedence over an unknown.
    if outcome != Some(row.outcome) && !(is_of_figures && row.outcome == NotKnown) {
        return Err(format!("level {level}, {serious:?}: {headline}"));
    }
    if headline.starts_with("NOT KNOWN") != (level == "unknown") {
        return Err(format!("the headline of level {level} is {headline}"));
    }
    if !row.finding.is_empty() && !all.contains(row.finding) {
        return Err(format!("no {} among {all:?}", row.finding));
    }
    if !is_of_figures {
        told(row, document, headline)?;
    }
    let exit = if is_of_figures { 1 } else { row.exit };
    if output.status.code() != Some(exit) {
        return Err(format!("exit {:?}, not {exit}", output.status.code()));
    }
    Ok(())
}

/// Compares the headline of a document with the outcome of its row, and returns the mismatch, if any.
fn told(row: &Row, document: &Value, headline: &str) -> Result<(), String> {
    let verdicts = document["verdicts"].as_array().unwrap();
    let found = |sentence: &str| {
        let dangers = verdicts.iter().filter(|verdict| verdict["severity"] == "danger");
        dangers
            .into_iter()
            .any(|verdict| verdict["sentence"].as_str().unwrap().trim_end_matches('.') == sentence)
    };
    let is_told = match row.outcome {
        Danger => found(headline.trim_end_matches('.')),
        NotKnown => {
            headline.starts_with("NOT KNOWN: What an fsync is worth") && headline.contains("To know it: ")
        }
        // The headline of a check says where a flush ends, that of a load what was reached.
        NoFinding if row.run.starts_with("check") => {
            headline.contains("durable in") || headline.contains("not known below")
        }
        NoFinding => headline.contains("per second"),
    };
    if is_told { Ok(()) } else { Err(format!("the headline of {:?} is {headline}", row.outcome)) }
}

/// Reports the recording of a row, which must agree with it, and compares the findings of its path with its
/// verdicts.
fn reported(document: &Value, here: &Path, exit: Option<i32>) -> Result<(), String> {
    let run = here.join("run");
    let again = plumb().args(["report", "--json"]).arg(&run).output().unwrap();
    let shown: Value = serde_json::from_slice(&again.stdout).map_err(|_| said(&again))?;
    for key in ["level", "headline", "verdicts"] {
        if shown[key] != document[key] {
            return Err(format!("report says another {key}: {} beside {}", shown[key], document[key]));
        }
    }
    // For an unknown, a strict run exits with 3, but the report is not strict.
    if exit != Some(3) && again.status.code() != exit {
        return Err(format!("report ends with {:?}, the run with {exit:?}", again.status.code()));
    }
    let verdicts = document["verdicts"].as_array().unwrap();
    for finding in document["path"]["findings"].as_array().into_iter().flatten() {
        let is_same =
            |verdict: &&Value| ["id", "sentence", "remedy"].iter().all(|key| verdict[key] == finding[key]);
        if !verdicts.iter().any(|verdict| is_same(&verdict)) {
            return Err(format!("the survey's {} is worded in another way by the run", finding["id"]));
        }
    }
    Ok(())
}

/// Runs a row and compares the outcome; false if its place cannot be created here.
fn checked(row: &Row) -> Result<bool, String> {
    let place = scratch();
    let Some(output) = made(row, place.path()) else { return Ok(false) };
    let problem = match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(document) => judged(row, &document, &output)
            .and_then(|()| reported(&document, place.path(), output.status.code())),
        Err(_) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let is_there = row.finding.is_empty() || text.contains(&format!("[{}]", row.finding));
            let label = match row.outcome {
                Danger => "DANGER",
                NotKnown => "NOT KNOWN",
                NoFinding => "NO FINDING",
            };
            let is_told = text.lines().any(|line| line == label);
            let is_so = output.status.code() == Some(row.exit) && is_told;
            match is_so && is_there {
                true => Ok(()),
                false => Err(format!("not exit {} with {}", row.exit, row.finding)),
            }
        }
    };
    problem.map_err(|problem| format!("{} | {}: {problem}\n{}", row.place, row.run, said(&output)))?;
    Ok(true)
}

/// Smallest plausible number of rows in the table.
const ROWS_MIN: usize = 40;

#[test]
fn every_place_has_its_outcome() {
    assert!(ROWS.len() >= ROWS_MIN);
    if !rustix::process::geteuid().is_root() {
        return plumb_testkit::skip("places are made with mount(2), which takes root");
    }
    let place = scratch();
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(place.path()).output().unwrap();
    if String::from_utf8_lossy(&kind.stdout).contains("tmpfs") {
        return plumb_testkit::skip("the folder of the tests is in memory, and so is all that is made in it");
    }
    let rows = Mutex::new(ROWS.iter());
    let (problems, made) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some(row) = rows.lock().unwrap().next() else { return };
                    match checked(row) {
                        Ok(is_made) => drop(made.fetch_add(is_made.into(), Ordering::Relaxed)),
                        Err(problem) => problems.lock().unwrap().push(problem),
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} rows are wrong:\n{}", problems.len(), problems.join("\n\n"));
    let made = made.into_inner();
    if made < ROWS_MIN {
        plumb_testkit::skip(&format!("{made} of {} places could be made here", ROWS.len()));
    }
}

#[test]
fn a_dialect_says_a_finding_on_stderr_and_leaves_stdout_to_parsers() {
    if !Path::new("/dev/shm").is_dir() {
        return plumb_testkit::skip("no tmpfs at /dev/shm");
    }
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = |name: &str| memory.path().join(name).display().to_string();
    let runs = [
        vec![
            "fio".to_owned(),
            "--name=a".to_owned(),
            format!("--filename={}", file("a")),
            "--size=1m".to_owned(),
            "--rw=write".to_owned(),
            "--output-format=json".to_owned(),
        ],
        vec![
            "diskspd".to_owned(),
            "-c1M".to_owned(),
            "-w100".to_owned(),
            "-d1".to_owned(),
            "-W0".to_owned(),
            file("b"),
        ],
    ];
    for words in runs {
        let output = plumb().args(&words).arg("--no-record").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let lines: Vec<&str> = told.lines().filter(|line| line.contains("DANGER")).collect();
        assert_eq!(lines.len(), 1, "{told}");
        assert!(lines[0].starts_with("plumb: DANGER: ") && lines[0].ends_with("[memory]"), "{told}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("DANGER"), "{}", said(&output));
        if words[0] == "fio" {
            serde_json::from_slice::<Value>(&output.stdout).unwrap();
        }
    }
}

#[test]
fn a_check_of_a_simulated_drive_names_what_finds_a_lie() {
    let output = plumb().args(["check", "sim:liar", "--duration", "1s", "--no-record"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("A drive that lies is not found this way: `plumb prove`"), "{text}");
}

#[test]
fn a_remedy_can_be_typed_as_it_is_printed() {
    let place = scratch();
    let row = danger(
        "disk; umount m; mkdir \"it's m\"; mount -o loop,nobarrier i.img \"it's m\"",
        "survey --json \"it's m\"",
        "barriers-off",
    );
    let Some(output) = made(&row, place.path()) else { return };
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let findings = document["paths"][0]["findings"].as_array().unwrap();
    let remedy =
        findings.iter().find(|finding| finding["id"] == row.finding).unwrap()["remedy"].as_str().unwrap();
    let command = remedy.split('`').nth(1).unwrap();
    // The shell itself is an independent parser of shell words.
    let script = format!("mount() {{ printf '%s\\n' \"$@\"; }}; {command}");
    let words = Command::new("sh").args(["-c", &script]).output().unwrap();
    let words = String::from_utf8_lossy(&words.stdout).into_owned();
    let point = place.path().join("it's m").display().to_string();
    assert_eq!(words.lines().collect::<Vec<_>>(), ["-o", "remount,barrier", &point], "{command}");
}
