//! Support code for the tests of real targets.

use std::path::Path;
use std::sync::Arc;

use plumb_block::{Bytes, Outcome, QueueOptions, Request, Tag, Wait};
use plumb_block::{Clock, Device, Lba, LbaRange, Op, Pattern, Payload, Pool, PoolShape, RealClock};
use plumb_linux::FileOptions;
use plumb_targets::{Error, Intent, Name, OpenedTarget, Permission, open};
pub(crate) use plumb_testkit::program::{alone, run};

/// Opens the target at `path`, through the page cache by default.
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

/// Writes the first 4 KiB of a device. Returns the outcome.
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
