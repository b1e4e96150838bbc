//! Support code for the tests of real targets.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Outcome, QueueOptions, Request, Tag, Wait};
use plumb_block::{Clock, Device, Lba, LbaRange, Op, Pattern, Payload, Pool, PoolShape, RealClock};
use plumb_linux::FileOptions;
use plumb_targets::{Error, Intent, Name, OpenedTarget, Permission, open};

/// Opens the target at `path`, through the page cache unless the test says otherwise.
pub(crate) fn open_path(path: &Path, intent: Intent, permission: &Permission) -> Result<OpenedTarget, Error> {
    open(&Name::parse(path).expect("a name"), intent, permission, FileOptions::write_buffered(), &clock())
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(RealClock::start())
}

pub(crate) fn nothing() -> Permission {
    Permission::default()
}

pub(crate) fn overwrite() -> Permission {
    Permission { overwrite: true, ..Permission::default() }
}

pub(crate) fn destroy(word: &str) -> Permission {
    Permission { destroy: vec![word.to_owned()], ..Permission::default() }
}

/// Writes the first 4 KiB of a device; how that ended.
pub(crate) fn write_first_block(device: &dyn Device) -> Outcome {
    let block = device.info().logical_block;
    let shape = PoolShape { buffer: Bytes::kib(4), count: 4, alignment: Bytes::kib(4) };
    let pool = Pool::new(shape).expect("memory for a pool");
    let mut queue = device.open_queue(QueueOptions { depth: 2, pool }).expect("a queue");
    let pattern = Pattern { seed: 1, lba: Lba(0), generation: 1 };
    let request = Request {
        tag: Tag(1),
        op: Op::Write { fua: false },
        range: LbaRange::new(Lba(0), 4096 / block.0),
        payload: Payload::Pattern(pattern),
        deadline: None,
    };
    queue.submit(request).expect("room in the queue");
    let mut completions = Vec::new();
    queue.poll(Wait::ONE, &mut completions).expect("an answer");
    completions[0].outcome
}

/// Returns one test at a time: while one starts a program, the child holds a copy of the other's exclusive
/// descriptor for a moment, and claiming the device again fails with EBUSY. Every test that runs a program or
/// claims a device holds this.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command; its output, or why not.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
