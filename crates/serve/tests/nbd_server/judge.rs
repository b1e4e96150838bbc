//! Tests of the promises of the server, judged from outside on the reference model; and tests of the judge
//! itself, with servers that make mistakes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use plumb_block::conformance::ModelOptions;
use plumb_block::{Bytes, Device, Errno, Lba, LbaRange, Op, Outcome};
use plumb_serve::nbd::server::Options;
use plumb_serve::nbd::wire::{Command, CommandFlags, WireErrno};

use crate::nbd_server::client::Client;
use crate::nbd_server::memory::ReadOnly;
use crate::nbd_server::running::{RunningServer, export};
use crate::nbd_server::staged::StagedServer;
use crate::nbd_server::wrong::{Mistake, Wrong as WrongDevice};

const BLOCK: usize = 512;
const NONE: CommandFlags = CommandFlags(0);
const FUA: CommandFlags = CommandFlags::FUA;
/// A write that takes several pieces of 4 KiB.
const SPLIT: usize = 16 << 10;

/// A server on a model, and its address.
struct Scene {
    device: StagedServer,
    running: RunningServer,
    seed: u64,
}

/// Broken promise of the server.
#[derive(Debug)]
struct Wrong(String);

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Self(format!("the connection failed: {error}"))
    }
}

fn expect<T: Copy + PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Wrong> {
    if found == expected { Ok(()) } else { Err(Wrong(format!("{what}: {found:?}, expected {expected:?}"))) }
}

impl Scene {
    fn new(mistake: Option<Mistake>, seed: u64) -> Self {
        let model = ModelOptions { discard_zeroes: true, ..ModelOptions::small(seed) };
        let device = StagedServer::new(model);
        let inner: Arc<dyn Device> = Arc::new(device.clone());
        let served = match mistake {
            Some(mistake) => Arc::new(WrongDevice { inner, mistake }),
            None => inner,
        };
        let fixed: Arc<dyn Device> = match mistake {
            Some(Mistake::ReadOnlyIgnored) => Arc::clone(&served),
            _ => Arc::new(ReadOnly(Arc::clone(&served))),
        };
        let exports = vec![export("disk", served), export("fixed", fixed)];
        let running = RunningServer::start(exports, Options::default());
        Self { device, running, seed }
    }

    fn client(&self) -> io::Result<Client> {
        Client::open(self.socket(), "disk", self.seed.is_multiple_of(2))
    }

    fn socket(&self) -> &Path {
        &self.running.socket
    }
}

fn filled(byte: u8, length: usize) -> Vec<u8> {
    (0..length).map(|index| byte.wrapping_add((index / BLOCK) as u8)).collect()
}

type Scenario = (&'static str, fn(&Scene) -> Result<(), Wrong>);

const SCENARIOS: &[Scenario] = &[
    ("reads return what was written", reads),
    ("a flush covers what other connections wrote", flush_covers_all),
    ("a flush is answered when it is done", flush_waits),
    ("FUA is durable", fua_is_durable),
    ("a failed flush is told, and no later one succeeds", failed_flush),
    ("a split write is whole or failed", split_writes),
    ("zeroes keep their flags", zeroes),
    ("what nobody knows is not answered", unknown),
    ("a refused write is skipped", refused),
];

fn reads(scene: &Scene) -> Result<(), Wrong> {
    let mut client = scene.client()?;
    for block in (0..256_u64).step_by(5).chain([255]) {
        let bytes = filled(block as u8, BLOCK);
        expect("a write", client.write(block * 512, &bytes, NONE)?, WireErrno::NONE)?;
        expect("what it wrote", client.read(block * 512, 512)? == bytes, true)?;
    }
    let bytes = filled(9, SPLIT);
    expect("a split write", client.write(0, &bytes, NONE)?, WireErrno::NONE)?;
    expect("what it wrote", client.read(0, SPLIT as u32)? == bytes, true)
}

/// Checks that all of `expected` is present after a power cut.
fn survives(scene: &Scene, what: &str, offset: u64, expected: &[u8]) -> Result<(), Wrong> {
    scene.device.model.cut_power();
    let found = scene.client()?.read(offset, expected.len() as u32)?;
    expect(what, found == expected, true)
}

fn flush_covers_all(scene: &Scene) -> Result<(), Wrong> {
    let (mut writer, mut flusher) = (scene.client()?, scene.client()?);
    let bytes = filled(40, SPLIT);
    expect("a write", writer.write(4096, &bytes, NONE)?, WireErrno::NONE)?;
    expect("a flush", flusher.flush()?, WireErrno::NONE)?;
    survives(scene, "what was flushed survives", 4096, &bytes)
}

fn flush_waits(scene: &Scene) -> Result<(), Wrong> {
    let mut client = scene.client()?;
    scene.device.hold(|op, _| op == Op::Flush);
    let flush = client.send(Command::FLUSH, NONE, (0, 0), &[])?;
    let read = client.send(Command::READ, NONE, (0, 512), &[])?;
    expect("the first to be answered while the flush is held", client.reply()?.cookie, read)?;
    scene.device.release();
    expect("the one answered then", client.reply()?.cookie, flush)
}

fn fua_is_durable(scene: &Scene) -> Result<(), Wrong> {
    let mut client = scene.client()?;
    let bytes = filled(70, SPLIT);
    expect("a FUA write", client.write(0, &bytes, FUA)?, WireErrno::NONE)?;
    survives(scene, "a FUA write", 0, &bytes)?;
    let zeroes = vec![0; SPLIT];
    let reply = client.ask(Command::WRITE_ZEROES, FUA, (0, SPLIT as u32 / 2), &[])?;
    expect("FUA zeroes", reply.errno, WireErrno::NONE)?;
    survives(scene, "FUA zeroes", 0, &zeroes[..SPLIT / 2])?;
    let reply = client.ask(Command::TRIM, FUA, (SPLIT as u64 / 2, SPLIT as u32 / 2), &[])?;
    expect("a FUA trim", reply.errno, WireErrno::NONE)?;
    survives(scene, "a FUA trim", SPLIT as u64 / 2, &zeroes[..SPLIT / 2])
}

fn failed_flush(scene: &Scene) -> Result<(), Wrong> {
    let (mut first, mut second) = (scene.client()?, scene.client()?);
    expect("a write", first.write(0, &filled(1, BLOCK), NONE)?, WireErrno::NONE)?;
    scene.device.end_next(Outcome::Failed(Errno::EIO), |op, _| op == Op::Flush);
    expect("the failed flush", first.flush()?, WireErrno::EIO)?;
    expect("the next flush", first.flush()?, WireErrno::EIO)?;
    expect("a flush elsewhere", second.flush()?, WireErrno::EIO)?;
    expect("a flush of a new connection", scene.client()?.flush()?, WireErrno::EIO)?;
    let trim = second.ask(Command::TRIM, FUA, (0, 512), &[])?;
    expect("a FUA trim after it", trim.errno, WireErrno::EIO)
}

fn split_writes(scene: &Scene) -> Result<(), Wrong> {
    let mut client = scene.client()?;
    let bytes = filled(100, SPLIT);
    scene.device.hold(|op, range| matches!(op, Op::Write { .. }) && range.lba == Lba(16));
    let write = client.send(Command::WRITE, NONE, (0, SPLIT as u32), &bytes)?;
    let read = client.send(Command::READ, NONE, (65536, 512), &[])?;
    expect("the first to be answered while a piece is held", client.reply()?.cookie, read)?;
    scene.device.release();
    expect("the one answered then", client.reply()?.cookie, write)?;
    for lba in [0, 8, 24] {
        let fails = move |op, range: LbaRange| matches!(op, Op::Write { .. }) && range.lba == Lba(lba);
        scene.device.end_next(Outcome::Failed(Errno::ENOSPC), fails);
        expect("a write of which a piece fails", client.write(0, &bytes, NONE)?, WireErrno::ENOSPC)?;
    }
    Ok(())
}

fn zeroes(scene: &Scene) -> Result<(), Wrong> {
    let mut client = scene.client()?;
    expect("a write", client.write(0, &filled(1, SPLIT), NONE)?, WireErrno::NONE)?;
    let reply = client.ask(Command::WRITE_ZEROES, CommandFlags::FAST_ZERO, (0, 4096), &[])?;
    expect("fast zeroes where there are none", reply.errno, WireErrno::ENOTSUP)?;
    let reply = client.ask(Command::WRITE_ZEROES, CommandFlags::NO_HOLE, (0, SPLIT as u32), &[])?;
    expect("zeroes", reply.errno, WireErrno::NONE)?;
    expect("what reads back", client.read(0, SPLIT as u32)? == vec![0; SPLIT], true)?;
    let kept = Op::WriteZeroes { fua: false, no_hole: true, fast_only: false };
    expect("the device's last write", scene.device.seen().iter().any(|(op, _)| *op == kept), true)
}

fn unknown(scene: &Scene) -> Result<(), Wrong> {
    for outcome in [Outcome::Unknown, Outcome::PowerLost] {
        let mut client = scene.client()?;
        scene.device.end_next(outcome, |op, _| matches!(op, Op::Write { .. }));
        client.send(Command::WRITE, NONE, (0, 512), &filled(1, BLOCK))?;
        match client.reply() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            other => return Err(Wrong(format!("{outcome:?} was answered {other:?}, expected the end"))),
        }
    }
    Ok(())
}

fn refused(scene: &Scene) -> Result<(), Wrong> {
    let mut client = scene.client()?;
    let past = client.write(255 * 512, &filled(1, 1024), NONE)?;
    expect("a write past the end", past, WireErrno::ENOSPC)?;
    expect("a write off the grid", client.write(100, &filled(1, BLOCK), NONE)?, WireErrno::EINVAL)?;
    expect("a write of half a block", client.write(0, &filled(1, 256), NONE)?, WireErrno::EINVAL)?;
    let huge = vec![0; (32 << 20) + 512];
    expect("a write that is too large", client.write(0, &huge, NONE)?, WireErrno::EINVAL)?;
    expect("a good one", client.write(0, &filled(7, BLOCK), NONE)?, WireErrno::NONE)?;
    let mut reader = Client::open(scene.socket(), "fixed", scene.seed.is_multiple_of(2))?;
    expect("a write to what is fixed", reader.write(0, &filled(1, BLOCK), NONE)?, WireErrno::EPERM)?;
    expect("what is there", reader.read(0, 512)? == filled(7, BLOCK), true)
}

/// Fails with the first broken promise.
fn judge(mistake: Option<Mistake>, seed: u64) -> Result<(), String> {
    for (name, scenario) in SCENARIOS {
        let scene = Scene::new(mistake, seed);
        scenario(&scene).map_err(|wrong| format!("{name}: {} (seed {seed})", wrong.0))?;
    }
    Ok(())
}

#[test]
fn the_server_keeps_its_promises() {
    for seed in 0..6 {
        if let Err(wrong) = judge(None, seed) {
            panic!("{wrong}");
        }
    }
}

#[test]
fn every_mistake_is_caught() {
    let mut missed = Vec::new();
    for mistake in Mistake::ALL {
        match (0..2).find_map(|seed| judge(Some(mistake), seed).err()) {
            Some(caught) => println!("{mistake:?}: {caught}"),
            None => missed.push(mistake),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

#[test]
fn what_is_told_of_the_blocks_is_what_the_device_says() {
    let scene = Scene::new(None, 2);
    let mut client = scene.client().unwrap();
    assert_eq!(client.write(8192, &filled(1, 4096), NONE).unwrap(), WireErrno::NONE);
    let whole = (0, Bytes::kib(64).0 as u32);
    let all = client.ask(Command::BLOCK_STATUS, NONE, whole, &[]).unwrap();
    assert_eq!(all.status, [(8192, 3), (4096, 0), (53248, 3)]);
    let one = client.ask(Command::BLOCK_STATUS, CommandFlags::REQ_ONE, whole, &[]).unwrap();
    assert_eq!(one.status, [(8192, 3)]);
    let mut plain = Client::open(scene.socket(), "disk", false).unwrap();
    let refused = plain.ask(Command::BLOCK_STATUS, NONE, whole, &[]).unwrap();
    assert_eq!(refused.errno, WireErrno::EINVAL, "without a context");
}
