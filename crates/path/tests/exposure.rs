//! Tests of the loss in a power cut on hand-made machines: unseen data never counts as zero.

use std::collections::BTreeMap;

use plumb_block::Bytes;
use plumb_linux::open_files::{FileInterest, OpenFile, OpenFiles, UnwrittenFile};
use plumb_linux::tree::Tree as _;
use plumb_path::exposure::{CacheShare, ExposedPart, Exposure, ExposureWatch, Live, PartKind};
use plumb_path::{Target, survey_exposed};

use crate::machine::{Machine, WB};

/// Answers of the processes and the servers of a machine.
#[derive(Default)]
struct Processes(OpenFiles);

impl Live for Processes {
    fn drive(&self, name: &str) -> Result<u64, String> {
        Err(format!("there is no {name}"))
    }

    fn cache(&self, _: &str) -> Result<CacheShare, String> {
        Ok(CacheShare { bytes: 4096, oldest: Some(2.5) })
    }

    fn open_files(&self, wanted: &FileInterest) -> OpenFiles {
        let is_wanted = !wanted.file_systems.is_empty() || !wanted.devices.is_empty();
        if is_wanted { self.0.clone() } else { OpenFiles::default() }
    }

    fn file(&self, path: &str) -> Result<UnwrittenFile, String> {
        Err(format!("no {path}"))
    }

    fn used(&self, _: &str) -> Option<u64> {
        Some(12345)
    }
}

fn machine(mount: &str) -> Machine {
    let mut machine = Machine::new();
    machine.scsi("sda", "sd", WB, true);
    machine.tree.put_text("/proc/filesystems", "\text4\n\txfs\nnodev\tnfs4\nnodev\ttmpfs\n");
    machine.tree.put_text("/proc/self/mountinfo", mount);
    machine.tree.put_text("/proc/meminfo", "Dirty:  1000 kB\nWriteback:  24 kB\n");
    machine.tree.put_text("/sys/devices/system/cpu/possible", "0\n");
    machine.tree.put_text("/proc/sys/vm/dirty_expire_centisecs", "3000\n");
    machine.tree.put_text("/proc/sys/vm/dirty_writeback_centisecs", "500\n");
    machine
}

const EXT4: &str = "30 1 8:1 / / rw - ext4 /dev/sda rw,commit=7\n";
/// The kernel's count of the whole machine, with its maximum error.
const COUNTED: u64 = (1024 << 10) + 2 * 125 * 4096;

fn exposure(machine: &Machine, files: OpenFiles) -> Exposure {
    let target = Target::Named("/".to_owned());
    let (_, exposed) =
        survey_exposed(&machine.tree, &machine.probe, &target).expect("the machine is surveyed");
    exposed[0].now(&machine.tree, &machine.probe, &Processes(files))
}

fn part(of: &Exposure, kind: PartKind) -> &ExposedPart {
    of.parts.iter().find(|part| part.kind == kind).unwrap_or_else(|| panic!("{kind:?}: {of:#?}"))
}

fn file(path: &str, unwritten: u64, writers: &[(u32, &str)]) -> OpenFile {
    let writers: BTreeMap<u32, String> =
        writers.iter().map(|(pid, name)| (*pid, (*name).to_owned())).collect();
    OpenFile { path: path.to_owned(), unwritten: Bytes(unwritten), writers }
}

#[test]
fn each_file_counts_once_and_the_rest_has_no_holder() {
    let files = vec![
        file("/wal", 300 << 10, &[(7, "postgres"), (8, "postgres")]),
        file("/log", 100 << 10, &[(9, "rsyslog")]),
        file("/read", 0, &[(10, "idle")]),
        file("/own", 50 << 10, &[(std::process::id(), "plumb")]),
    ];
    let of = exposure(&machine(EXT4), OpenFiles { files, ..OpenFiles::default() });
    let memory = part(&of, PartKind::Memory);
    assert_eq!((memory.bytes_min, memory.bytes_max), (450 << 10, Some(COUNTED)));
    assert_eq!(of.unheld_bytes_max, Some(COUNTED - (400 << 10)));
    let holders: Vec<_> = of
        .holders
        .iter()
        .map(|of| (of.process.as_str(), of.pid, of.bytes >> 10, of.shared_bytes >> 10))
        .collect();
    assert_eq!(holders, [("postgres", 7, 300, 300), ("postgres", 8, 300, 300), ("rsyslog", 9, 100, 0)]);
    assert!(of.holders_unknown_because.is_none() && !of.complete);
    assert!(memory.age_min.is_none());
    assert!(memory.age_min_unknown_because.as_ref().unwrap().contains("dirty for 30 s"), "{memory:?}");
    assert!(memory.because.contains("all file systems together"), "{memory:?}");
    let journal = part(&of, PartKind::Journal);
    assert!(journal.bytes_max.is_none() && journal.because.contains("at most 7 s"), "{journal:?}");
    assert!(part(&of, PartKind::Drive).bytes_max.is_none(), "its cache is volatile");
}

#[test]
fn who_is_not_seen_is_said() {
    let denied = exposure(&machine(EXT4), OpenFiles { denied: 3, ..OpenFiles::default() });
    assert!(denied.holders_unknown_because.unwrap().starts_with("3 processes may not be looked into"));
    let old = exposure(&machine(EXT4), OpenFiles { is_unsupported: true, ..OpenFiles::default() });
    assert!(old.holders_unknown_because.unwrap().contains("since Linux 6.5"));
    let mut blind = machine(EXT4);
    blind.tree.remove("/proc/meminfo");
    let blind = exposure(&blind, OpenFiles::default());
    assert!(part(&blind, PartKind::Memory).bytes_max.is_none() && blind.unheld_bytes_max.is_none());
}

#[test]
fn files_of_a_server_are_not_looked_at() {
    let asked = OpenFiles { denied: 9, ..OpenFiles::default() };
    let of = exposure(&machine("30 1 0:40 / / rw - nfs4 server:/x rw\n"), asked);
    assert!(of.holders_unknown_because.unwrap().contains("could wait for the server"));
    assert!(
        of.parts.iter().any(|part| part.kind == PartKind::Drive && part.bytes_max.is_none()),
        "{:?}",
        of.parts
    );
    let memory = exposure(&machine("30 1 0:41 / / rw - tmpfs none rw\n"), OpenFiles::default());
    assert_eq!((part(&memory, PartKind::Contents).bytes_max, memory.complete), (Some(12345), true));
}

#[test]
fn commits_and_flushes_bound_what_is_not_settled() {
    let mut machine = machine(EXT4);
    machine.tree.put_names("/proc/fs/jbd2", &["sda-8".to_owned()]);
    let target = Target::Named("/".to_owned());
    let directory = machine.tree.canonical("/sys/class/block/sda").unwrap();
    let state = |machine: &mut Machine, sectors: u64, flushes: u64, commits: u64| {
        let stat = format!("0 0 0 0 9 0 {sectors} 0 0 0 0 0 0 0 0 {flushes} 0\n");
        machine.tree.put_text(&format!("{directory}/stat"), &stat);
        machine.tree.put_text("/proc/fs/jbd2/sda-8/info", &format!("{commits} transactions (1 requested)\n"));
    };
    state(&mut machine, 100, 1, 1);
    let (_, mut exposed) = survey_exposed(&machine.tree, &machine.probe, &target).unwrap();
    let mut watch = ExposureWatch::new("/".to_owned(), exposed.remove(0));
    let held = Processes(OpenFiles { files: vec![file("/a", 4096, &[(1, "a")])], ..OpenFiles::default() });
    let mut look = |machine: &Machine, seconds: u64| {
        let of = watch.look(plumb_block::Nanos::secs(seconds), &machine.tree, &machine.probe, &held);
        let most = |kind| part(of, kind).bytes_max;
        (most(PartKind::Drive), most(PartKind::Journal), part(of, PartKind::Memory).age_min)
    };
    assert_eq!(look(&machine, 1), (None, None, None), "nothing was seen before");
    state(&mut machine, 300, 3, 3);
    assert_eq!(
        look(&machine, 2),
        (Some(200 * 512), None, Some(1.0)),
        "one of two flushes began after the first reading"
    );
    state(&mut machine, 350, 3, 4);
    assert_eq!(look(&machine, 4), (Some(250 * 512), Some(250 * 512), Some(3.0)));
    state(&mut machine, 400, 3, 5);
    watch.sample(&machine.tree);
    state(&mut machine, 900, 5, 8);
    let of = watch.look(plumb_block::Nanos::secs(5), &machine.tree, &machine.probe, &held);
    assert_eq!(part(of, PartKind::Journal).bytes_max, Some(500 * 512), "since the sample");
    assert_eq!(part(of, PartKind::Drive).bytes_max, Some(500 * 512), "since the sample");
    let observed = watch.finish();
    assert_eq!((observed.readings, observed.peak_at, observed.now.complete), (4, 4.0, true));
}
