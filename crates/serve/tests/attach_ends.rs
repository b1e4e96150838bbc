//! Tests of the end of attachments: detached, refused because they are in use, dropped, and killed. Nothing
//! is left behind, and nothing of other programs is removed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::attach_support::disk::{Disk, SharedDisk};
use crate::attach_support::{MountedFileSystem, Place, run, wait_until};
use plumb_block::Bytes;
use plumb_serve::ExportError;
use plumb_serve::attach::{AttachOptions, Attachment, MOUNTS_GO, Swept, sweep};

/// Environment variable that gives the child the directory in which to attach.
const DIRECTORY: &str = "PLUMB_TEST_ATTACH_DIRECTORY";
/// Environment variable that gives the child the text for the record of its attachment.
const RECORD: &str = "PLUMB_TEST_ATTACH_RECORD";

/// A separate process that serves an attachment named `killed`.
struct Server {
    child: Child,
    path: PathBuf,
}

impl Server {
    fn start(place: &Place) -> Self {
        Self::start_with(place, "")
    }

    /// Starts the server with this text in the record of the attachment.
    fn start_with(place: &Place, record: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "attach_ends::serves_until_it_is_killed", "--nocapture"])
            .env(DIRECTORY, place.directory())
            .env(RECORD, record)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let path =
            lines.map(Result::unwrap).find_map(|line| Some(PathBuf::from(line.strip_prefix("attached ")?)));
        Self { child, path: path.unwrap() }
    }

    /// Kills the server, and waits until it is gone: a killed server that does not end is a bug.
    fn kill(mut self) {
        self.child.kill().unwrap();
        wait_until("a killed server is gone", || self.child.try_wait().unwrap().is_some());
    }
}

#[test]
#[ignore = "the child of other tests"]
fn serves_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let options = AttachOptions { directory: Some(directory.into()), ..AttachOptions::default() };
    let disk = Arc::new(SharedDisk(Disk::new(Bytes::mib(64))));
    let attachment = Attachment::new(disk, "killed", &options).unwrap();
    attachment.describe(&std::env::var(RECORD).unwrap()).unwrap();
    println!("\nattached {}", attachment.path().display());
    loop {
        std::thread::park();
    }
}

fn leave_dirty(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[9; 1 << 20], 0).unwrap();
}

fn is_empty(place: &Place) -> bool {
    place.loop_devices().is_empty() && !place.has_mounts() && place.left().is_empty()
}

#[test]
fn detaching_takes_everything_away_and_flushes_first() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let mut attachment = place.attach(&disk, "clean");
    assert_eq!(place.loop_devices().len(), 1);
    leave_dirty(attachment.path());
    attachment.detach().unwrap();
    assert!(disk.counts().writes > 0 && disk.counts().flushes > 0, "{:?}", disk.counts());
    assert!(is_empty(&place));
    attachment.detach().unwrap();
}

#[test]
fn dropping_takes_everything_away() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let attachment = place.attach(&disk, "dropped");
    leave_dirty(attachment.path());
    drop(attachment);
    assert!(disk.counts().flushes > 0);
    assert!(is_empty(&place));
}

#[test]
fn a_device_in_use_is_not_detached_and_its_users_are_named() {
    let Some(place) = Place::new() else { return };
    let mut attachment = place.attach(&Disk::new(Bytes::mib(64)), "used");
    let held = |attachment: &mut Attachment| match attachment.detach() {
        Err(ExportError::Held { by, .. }) => by.join("; "),
        other => panic!("detached while in use: {other:?}"),
    };
    let file = File::open(attachment.path()).unwrap();
    assert!(held(&mut attachment).contains(&format!("open in process {}", std::process::id())));
    drop(file);
    run("mkfs.ext4", &["-q", &attachment.path().display().to_string()]).unwrap();
    let mounted = MountedFileSystem::new(attachment.path()).unwrap();
    let by = held(&mut attachment);
    assert!(by.contains(&format!("mounted at {}", mounted.path().display())), "{by}");
    // The attachment still works.
    File::create(mounted.path().join("file")).unwrap().sync_all().unwrap();
    mounted.unmount().unwrap();
    attachment.detach().unwrap();
    assert!(is_empty(&place));
}

#[test]
fn a_name_is_taken_while_it_is_attached_and_two_names_live_side_by_side() {
    let Some(place) = Place::new() else { return };
    let mut first = place.attach(&Disk::new(Bytes::mib(16)), "first");
    let again = Attachment::new(Arc::new(SharedDisk(Disk::new(Bytes::mib(16)))), "first", &place.options());
    assert!(matches!(again.err(), Some(ExportError::NameInUse { .. })));
    let mut second = place.attach(&Disk::new(Bytes::mib(16)), "second");
    assert_ne!(first.path(), second.path());
    first.detach().unwrap();
    leave_dirty(second.path());
    second.detach().unwrap();
    assert!(is_empty(&place));
}

#[test]
fn a_killed_server_leaves_no_loop_device_and_a_sweep_removes_the_rest() {
    let Some(place) = Place::new() else { return };
    let server = Server::start(&place);
    let living = place.attach(&Disk::new(Bytes::mib(16)), "living");
    // Dirty pages that its last opener, the server itself, must not wait for.
    leave_dirty(&server.path);
    assert_eq!(sweep(Some(&place.directory())).unwrap(), Swept::default(), "both live");
    server.kill();
    wait_until("the loop device of the dead is gone", || place.loop_devices().len() == 1);
    let swept = sweep(Some(&place.directory())).unwrap();
    assert_eq!(swept, Swept { removed: vec!["killed".to_owned()], kept: Vec::new() });
    assert_eq!(place.left(), ["living"]);
    leave_dirty(living.path());
    drop(living);
    assert!(is_empty(&place));
}

#[test]
fn what_a_killed_server_alone_mounts_is_unmounted_by_a_sweep() {
    let Some(place) = Place::new() else { return };
    let server = Server::start_with(&place, MOUNTS_GO);
    run("mkfs.ext4", &["-q", &server.path.display().to_string()]).unwrap();
    let mounted = [(); 2].map(|()| MountedFileSystem::new(&server.path).unwrap());
    assert_eq!(sweep(Some(&place.directory())).unwrap(), Swept::default(), "it lives");
    server.kill();
    let swept = sweep(Some(&place.directory())).unwrap();
    assert_eq!(swept, Swept { removed: vec!["killed".to_owned()], kept: Vec::new() });
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(mounted.iter().all(|one| !mounts.contains(&*one.path().to_string_lossy())), "{mounts}");
    assert!(is_empty(&place));
}

#[test]
fn what_a_killed_server_leaves_mounted_is_swept_away_once_it_is_unmounted() {
    let Some(place) = Place::new() else { return };
    let server = Server::start(&place);
    let path = server.path.clone();
    run("mkfs.ext4", &["-q", &path.display().to_string()]).unwrap();
    let mounted = MountedFileSystem::new(&path).unwrap();
    server.kill();
    let mut file = File::create(mounted.path().join("file"));
    let error =
        file.as_mut().map_or_else(|error| Some(error.kind()), |file| file.sync_all().err().map(|e| e.kind()));
    assert!(error.is_some(), "a write without a server succeeded");
    drop(file);
    let swept = sweep(Some(&place.directory())).unwrap();
    let [(name, why)] = &swept.kept[..] else { panic!("{swept:?}") };
    assert!(name == "killed" && why.contains("mounted at"), "{why}");
    mounted.unmount().unwrap();
    wait_until("the loop device is gone", || place.loop_devices().is_empty());
    // The next attachment sweeps first, and may use the name.
    let next = place.attach(&Disk::new(Bytes::mib(16)), "killed");
    assert_eq!(next.swept().removed, ["killed"]);
    drop(next);
    assert!(is_empty(&place));
}
