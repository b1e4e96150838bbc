//! Sync calls made on behalf of a program, while its thread is held after a system call.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use plumb_block::Op;
use plumb_prove::file_system::FileSystem;
use plumb_prove::recording::Event;
use plumb_prove::session::{RecordedWork, record};
use plumb_prove::subject::{Outcome, Subject};
use plumb_prove::trace::{Injection, Sync, TracedCalls, Tracer, candidates};
use plumb_prove::{Error, ErrorKind};

use crate::record_options;

/// Python program that works on five files.
struct Script {
    script: &'static str,
    injections: Vec<Injection>,
    traced: Mutex<TracedCalls>,
}

impl Script {
    fn new(script: &'static str, injections: &[Injection]) -> Self {
        Self { script, injections: injections.to_vec(), traced: Mutex::default() }
    }

    /// Records the program; `None` if that is impossible here.
    fn recorded(&self) -> Option<RecordedWork> {
        let directory = tempfile::tempdir().unwrap();
        let options = record_options(FileSystem::Ext4, directory.path());
        match record(self, &options, &AtomicBool::new(false)) {
            Ok(recorded) => Some(recorded),
            Err(error) => {
                plumb_testkit::skip(&error.to_string());
                None
            }
        }
    }
}

impl Subject for Script {
    fn name(&self) -> String {
        "a script".to_owned()
    }

    fn set_up(&self, place: &Path) -> plumb_prove::Result<()> {
        for number in 0..5 {
            std::fs::write(place.join(format!("f{number}.old")), b"12345").unwrap();
        }
        Ok(())
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> plumb_prove::Result<()> {
        let traced = run(self.script, place, &self.injections);
        *self.traced.lock().unwrap() = traced.map_err(|error| Error::failed("a script", error))?;
        acknowledge(1);
        Ok(())
    }

    fn check(&self, _: &Path, _: Option<u64>) -> plumb_prove::Result<Outcome> {
        Ok(Outcome::Intact)
    }
}

fn run(script: &str, place: &Path, injections: &[Injection]) -> plumb_prove::Result<TracedCalls> {
    let tracer = Tracer::start(place, injections.to_vec(), None)?;
    let mut python = Command::new("python3");
    python.args(["-c", script]).current_dir(place);
    let output = tracer.command(&python).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    tracer.finish()
}

fn flushes(recorded: &RecordedWork) -> usize {
    let recording = &recorded.recording;
    let events = &recording.events[recorded.from..recorded.until];
    let is_flush = |event: &Event| match event {
        Event::Completed(id) => recording.commands[id.0 as usize].op == Op::Flush,
        _ => false,
    };
    events.iter().filter(|(_, event)| is_flush(event)).count()
}

const UNLINKS: &str = "import os\nfor n in range(5): os.unlink(f'f{n}.old')";

fn after_unlink() -> Injection {
    Injection { after: "unlink", path: "f#.old".into(), sync: Sync::Directory }
}

#[test]
fn each_removal_reaches_the_drive_with_a_sync_of_the_directory() {
    let without = Script::new(UNLINKS, &[]);
    let Some(recorded) = without.recorded() else { return };
    // There may be other flushes: of the journal's timer, and of a sync(2) of any other process.
    assert_eq!((without.traced.lock().unwrap().injected, recorded.from < recorded.until), (0, true));
    let elsewhere = TracedCalls { root: "/nowhere".into(), ..without.traced.lock().unwrap().clone() };
    let found = candidates(&elsewhere, &[plumb_block::Nanos(u64::MAX)]);
    assert_eq!(found, [], "none of it is there");

    let with = Script::new(UNLINKS, &[after_unlink()]);
    let recorded = with.recorded().unwrap();
    assert_eq!(with.traced.lock().unwrap().injected, 5);
    assert!(flushes(&recorded) >= 5, "{} flushes", flushes(&recorded));
}

#[test]
fn every_thread_is_held_by_itself() {
    let script = "import os, threading\n\
                  def work(t):\n for n in range(8):\n  p = f'{t}-{n}'; os.close(os.open(p, os.O_CREAT | os.O_WRONLY)); \
                  os.rename(p, p + '.new')\n\
                  threads = [threading.Thread(target=work, args=(t,)) for t in range(6)]\n\
                  [t.start() for t in threads]; [t.join() for t in threads]";
    let directory = tempfile::tempdir().unwrap();
    let renamed = Injection { after: "rename", path: "#-#.new".into(), sync: Sync::File };
    let missed = Injection { after: "rename", path: "elsewhere/*".into(), sync: Sync::File };
    match run(script, directory.path(), &[renamed, missed]) {
        Ok(traced) => {
            assert_eq!(traced.injected, 48);
            assert_eq!(traced.calls.iter().filter(|call| call.name == "rename").count(), 48);
        }
        Err(error) if error.kind == ErrorKind::NotTraced => plumb_testkit::skip("strace is missing"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_sync_after_a_call_that_failed_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let script = "import os\ntry: os.unlink('f1.old')\nexcept FileNotFoundError: open('f2.old', 'w').close()";
    match run(script, directory.path(), &[after_unlink()]) {
        Ok(traced) => assert_eq!((traced.injected, traced.injected_after_failures), (0, 1)),
        Err(error) if error.kind == ErrorKind::NotTraced => plumb_testkit::skip("strace is missing"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_sync_that_a_database_lacks_is_named_first() {
    let directory = tempfile::tempdir().unwrap();
    let root: PathBuf = directory.path().canonicalize().unwrap();
    let script = "import sqlite3\nc = sqlite3.connect('t.db')\nc.execute('pragma synchronous=full')\n\
                  c.execute('create table t(a)')\nfor n in range(3):\n c.execute('insert into t values(1)'); c.commit()";
    let traced = match run(script, &root, &[]) {
        Ok(traced) => traced,
        Err(error) if error.kind == ErrorKind::NotTraced => return plumb_testkit::skip("strace is missing"),
        Err(error) => panic!("{error}"),
    };
    let mut calls = traced.calls.iter();
    assert!(calls.any(|call| call.name == "fdatasync" && call.took.0 > 0), "{traced:?}");
    let found = candidates(&traced, &[plumb_block::Nanos(u64::MAX)]);
    let sentence = found.first().map(ToString::to_string).unwrap_or_default();
    assert_eq!(sentence, "fsync of the directory after unlink(t.db-journal)", "{found:?}");
}
