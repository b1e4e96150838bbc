//! Tests of twelve ways to lose a write below a file system, on simulated drives of which one write fails:
//! `plumb observe` reports the file of each during the observation, and nothing else. For a file system that
//! has shut down, it still reports the open file.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command};

use plumb_block::Bytes;
use plumb_linux::sync_file_range::write_back;
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, syncfs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{holds, plumb, scratch};
use crate::drive_support::{Kind, MountedFileSystem, Server, cannot_attach, run};
use crate::load_support::{start, system, wait_for};

/// Bytes that each way loses.
const LENGTH: u64 = 65_536;

/// Mounted file system on a drive that can be made to fail.
struct LosingFileSystem {
    mounted: MountedFileSystem,
    server: Server,
    /// Fault that affects one write of data.
    fault: String,
}

/// Way to lose a write.
struct Way {
    file: &'static str,
    /// True if a call of this process on the file fails.
    is_told: bool,
    /// Loses the write, and returns the file if it stays open.
    lose: fn(&LosingFileSystem, &Path) -> Option<File>,
}

const fn untold(file: &'static str, lose: fn(&LosingFileSystem, &Path) -> Option<File>) -> Way {
    Way { file, is_told: false, lose }
}

const fn told(file: &'static str, lose: fn(&LosingFileSystem, &Path) -> Option<File>) -> Way {
    Way { file, is_told: true, lose }
}

const WAYS: [Way; 12] = [
    untold("closed", |on, path| {
        on.fail_next();
        write(path);
        on.sync()
    }),
    told("held", |on, path| {
        on.fail_next();
        let file = write(path);
        file.sync_all().unwrap_err();
        Some(file)
    }),
    told("overwritten", |on, path| {
        on.fail_next();
        let file = rewrite(path);
        file.sync_data().unwrap_err();
        Some(file)
    }),
    told("unlinked", |on, path| {
        on.fail_next();
        let file = rewrite(path);
        fs::remove_file(path).unwrap();
        file.sync_all().unwrap_err();
        Some(file)
    }),
    // The program has ended before the next reading of the observation.
    untold("mapped", |on, path| {
        rewrite(path);
        on.fail_next();
        let commands = ["-c", "mmap -w 0 64k", "-c", "mwrite 0 64k", "-c", "msync -s"];
        Command::new("xfs_io").args(commands).arg(path).output().unwrap();
        None
    }),
    untold("ended", |on, path| {
        on.fail_next();
        run(Command::new("dd")
            .args(["if=/dev/zero", "bs=64k", "count=1"])
            .arg(format!("of={}", path.display())));
        on.sync()
    }),
    told("range", |on, path| {
        on.fail_next();
        let file = rewrite(path);
        write_back(file.as_fd(), Bytes(0), Bytes(LENGTH)).unwrap_err();
        Some(file)
    }),
    untold("advised", |on, path| {
        on.fail_next();
        let file = write(path);
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        Some(file)
    }),
    untold("renamed", |on, path| {
        let new = path.with_extension("new");
        on.fail_next();
        write(&new);
        fs::rename(new, path).unwrap();
        on.sync()
    }),
    untold("truncated", |on, path| {
        on.fail_next();
        write(path);
        on.sync()
    }),
    untold("allocated", |on, path| {
        let file = File::create(path).unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, LENGTH).unwrap();
        file.sync_all().unwrap();
        on.fail_next();
        file.write_all_at(&[7; LENGTH as usize], 0).unwrap();
        on.sync()
    }),
    untold("deep/er/sparse", |on, path| {
        let file = File::create(path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.sync_all().unwrap();
        on.fail_next();
        file.write_all_at(&[7; LENGTH as usize], 1 << 19).unwrap();
        on.sync()
    }),
];

/// Creates or truncates a file, and writes it.
fn write(path: &Path) -> File {
    let mut file = File::create(path).unwrap();
    file.write_all(&[1; LENGTH as usize]).unwrap();
    file
}

/// Overwrites an existing file in place.
fn rewrite(path: &Path) -> File {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[2; LENGTH as usize], 0).unwrap();
    file
}

impl LosingFileSystem {
    /// Creates a file system, mounted at `at`, with the files that some ways overwrite.
    fn new(kind: Kind, at: &Path) -> Self {
        let server = Server::start(&["consumer-nvme-ssd", "--size", kind.size(), "--attach"]);
        kind.make(server.device());
        let fault = format!("write:eio:times=1{}", data_of(kind, server.device()));
        let mounted = MountedFileSystem::new(kind, server.device(), at).unwrap();
        if kind != Kind::Xfs {
            // Prevents other writes meanwhile.
            system("mount", &["-o", "remount,commit=300", at.to_str().unwrap()]).unwrap();
        }
        fs::create_dir_all(at.join("deep/er")).unwrap();
        for name in ["overwritten", "unlinked", "mapped", "range", "renamed", "truncated"] {
            write(&at.join(name)).sync_all().unwrap();
        }
        let all = Self { mounted, server, fault };
        all.sync();
        all
    }

    /// Makes the next write fail, once nothing is dirty. Must be called before data is written, because a
    /// sync(2) of another program would write it.
    fn fail_next(&self) {
        self.sync();
        self.server.order("fault", &[&self.fault]);
    }

    /// Syncs the whole file system, like another program. The result does not matter.
    fn sync(&self) -> Option<File> {
        syncfs(File::open(&self.mounted.at).unwrap()).unwrap_or_default();
        None
    }
}

/// Returns the condition of a fault that affects only data, because syncfs(2) of btrfs also writes its trees.
fn data_of(kind: Kind, device: &str) -> String {
    if kind != Kind::Btrfs {
        return String::new();
    }
    let tree = system("btrfs", &["inspect-internal", "dump-tree", "-t", "chunk", device]).unwrap();
    let mut lines = tree.lines().skip_while(|line| !line.contains("type DATA"));
    let number = |line: Option<&str>, before: &str| -> u64 {
        let rest = line.unwrap().split_once(before).unwrap().1;
        rest.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 512
    };
    let blocks = number(lines.next(), "length ");
    let first = number(lines.find(|line| line.contains("stripe 0 ")), "offset ");
    format!(":lba={first}-{}", first + blocks - 1)
}

/// Reads until a file is reported, and returns it.
fn next_told(said: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended before it told a file");
        if let Some((_, told)) = line.split_once("write lost: ") {
            return told.to_owned();
        }
    }
}

/// Ends an observation, and returns its document.
fn ended(mut child: Child, mut said: BufReader<ChildStderr>) -> Value {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (mut printed, mut rest) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    said.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {rest}"))
}

/// Does common operations on files, all of which succeed.
fn work_honestly(at: &Path) {
    for number in 0..20 {
        let (path, new) = (at.join(format!("honest-{number}")), at.join("honest.new"));
        write(&new).sync_all().unwrap();
        fs::rename(&new, &path).unwrap();
        rewrite(&path).sync_data().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        write(&path);
        if number % 2 == 0 {
            fs::remove_file(&path).unwrap();
        }
    }
}

fn every_way_is_told(kind: Kind) {
    let make = format!("mkfs.{}", kind.word());
    if let Some(why) = cannot_attach(&[&make, "xfs_io"]) {
        return plumb_testkit::skip(&why);
    }
    let place = scratch();
    let on = LosingFileSystem::new(kind, place.path());
    let mut command = plumb();
    command.args(["observe", "--json", "--no-record", "--duration", "5m"]).arg(place.path());
    let mut observing = start(&mut command);
    let mut said = wait_for("observing", &mut observing);
    work_honestly(place.path());
    on.sync();
    let mut open = Vec::new();
    for way in &WAYS {
        let path = place.path().join(way.file);
        open.extend((way.lose)(&on, &path));
        let told = next_told(&mut said);
        assert!(told.starts_with(&path.display().to_string()), "{}: {told}", path.display());
    }
    // All writes fail, including those of the journal: the file system shuts down, and even stat(2) fails.
    let last = place.path().join("last");
    on.server.order("fault", &["write:eio"]);
    let file = write(&last);
    on.sync();
    while !next_told(&mut said).starts_with(&last.display().to_string()) {}
    let document = ended(observing, said);
    drop((open, file));
    on.server.order("fault", &["--clear"]);
    holds("observation", &document);
    let errors = document["writeback_errors"].as_array().unwrap();
    for way in &WAYS {
        let path = place.path().join(way.file).display().to_string();
        let is_it = |error: &&Value| error["path"].as_str().is_some_and(|found| found.starts_with(&path));
        let error = errors.iter().find(is_it).unwrap_or_else(|| panic!("{path}: {document:#}"));
        let own = std::process::id();
        let heard = error["reported_to"].as_array().unwrap().iter().any(|told| told["process"] == own);
        assert_eq!(heard, way.is_told, "{path}: {error:#}");
    }
    assert_eq!(document["level"], "danger");
}

#[test]
fn every_way_to_lose_a_write_below_ext4_is_told() {
    every_way_is_told(Kind::Ext4);
}

#[test]
fn every_way_to_lose_a_write_below_xfs_is_told() {
    every_way_is_told(Kind::Xfs);
}

#[test]
fn every_way_to_lose_a_write_below_btrfs_is_told() {
    every_way_is_told(Kind::Btrfs);
}

#[test]
fn a_write_that_a_device_itself_loses_is_told_while_metrics_are_served() {
    if let Some(why) = cannot_attach(&[]) {
        return plumb_testkit::skip(&why);
    }
    let (place, server) = (scratch(), Server::start(&["consumer-nvme-ssd", "--size", "16M", "--attach"]));
    let mut command = plumb();
    command.args(["observe", server.device(), "--serve"]).arg(place.path().join("metrics"));
    let mut observing = start(&mut command);
    let mut said = wait_for("metrics at", &mut observing);
    server.order("fault", &["write:eio:times=1"]);
    let file = rewrite(Path::new(server.device()));
    file.sync_all().unwrap_err();
    let told = next_told(&mut said);
    assert!(told.starts_with(&format!("{} ", server.device())), "{told}");
    kill_process(Pid::from_child(&observing), Signal::TERM).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(observing.wait().unwrap().code(), Some(0), "{rest}");
}
