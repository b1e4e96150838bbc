//! Tests that the client keeps the contract of the waist, with the server of this crate around the reference
//! model, and with nbdkit and qemu-nbd. Guards against losses between the two ends: FUA, flushes of other
//! queues, latches, deadlines, buffers.

use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::conformance::{self, CannotStage, ModelOptions, Rig};
use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceLayer, Error, Nanos, Outcome, Pool, PoolShape, Queue, QueueFull,
    QueueOptions, Request, Result, Time, Wait,
};
use plumb_serve::nbd::client::{NbdDevice, Options};
use plumb_serve::nbd::server;

use crate::client_support::Program;
use crate::nbd_server::running::{RunningServer, export};
use crate::nbd_server::staged::StagedServer;

const DEPTH: u32 = 16;

struct ClientRig {
    what: String,
    options: Options,
    pool: Pool,
    model: Option<(u64, ModelOptions)>,
    staged: Option<StagedServer>,
    serving: Option<RunningServer>,
    uri: String,
    /// True after the power was cut, for the queues that were open then.
    is_cut: Arc<AtomicBool>,
}

impl ClientRig {
    fn new(what: &str, connections: u32) -> Self {
        let options = Options {
            connections,
            time: Time::real(),
            drop_patience: Nanos::millis(500),
            ..Options::default()
        };
        let shape = PoolShape { buffer: Bytes(512 * 16), count: DEPTH * 4, alignment: Bytes(512) };
        let pool = Pool::new(shape).unwrap();
        let what = format!("{what}, {connections} connections");
        Self {
            what,
            options,
            pool,
            model: None,
            staged: None,
            serving: None,
            uri: String::new(),
            is_cut: Arc::default(),
        }
    }

    fn connect(&self) -> Result<Arc<dyn Device>> {
        let uri = self.uri.parse().unwrap();
        let inner = NbdDevice::connect(&uri, self.options.clone()).map_err(Error::from)?;
        Ok(Arc::new(Cuttable { inner, is_cut: Arc::clone(&self.is_cut) }))
    }

    fn serve(&mut self, staged: &StagedServer) {
        let exports = vec![export("disk", Arc::new(staged.clone()))];
        let serving = RunningServer::start(exports, server::Options::default());
        self.uri = serving.uri();
        self.is_cut = Arc::default();
        self.serving = Some(serving);
    }

    fn staged(&self) -> std::result::Result<&StagedServer, CannotStage> {
        self.staged.as_ref().ok_or_else(|| CannotStage("a server that is another program".to_owned()))
    }
}

impl Rig for ClientRig {
    fn describe(&self) -> String {
        format!("{}, model {:?}", self.what, self.model)
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        if let Some((renewals, options)) = &mut self.model {
            *renewals += 1;
            let options = ModelOptions { seed: options.seed + *renewals, ..*options };
            let staged = StagedServer::new(options);
            self.serve(&staged);
            self.staged = Some(staged);
        }
        self.connect()
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.options.time.clock()
    }

    fn cut_power(&mut self) -> std::result::Result<Arc<dyn Device>, CannotStage> {
        let staged = self.staged()?.clone();
        // The server answers the received requests, and ends; only then the power is cut. So every answer
        // that the client still finds was given before the cut.
        self.is_cut.store(true, Ordering::SeqCst);
        drop(self.serving.take());
        staged.model.cut_power();
        self.serve(&staged);
        self.connect().map_err(|error| CannotStage(error.to_string()))
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        self.staged()?.model.fail_next_flush();
        Ok(())
    }

    fn hold_next_request(&mut self) -> std::result::Result<(), CannotStage> {
        let is_first = AtomicBool::new(true);
        self.staged()?.hold(move |_, _| is_first.swap(false, Ordering::SeqCst));
        Ok(())
    }

    fn release_held(&mut self) {
        if let Some(staged) = &self.staged {
            staged.release();
        }
    }
}

/// The client's device. It cannot know that the power was cut at the other end, so requests with lost answers
/// are unknown to it. The rig knows about the cut.
struct Cuttable {
    inner: NbdDevice,
    is_cut: Arc<AtomicBool>,
}

impl DeviceLayer for Cuttable {
    type Inner = NbdDevice;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &self.inner
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let inner = self.inner.open_queue(options)?;
        Ok(Box::new(CuttableQueue { inner, is_cut: Arc::clone(&self.is_cut) }))
    }
}

struct CuttableQueue {
    inner: Box<dyn Queue>,
    is_cut: Arc<AtomicBool>,
}

impl Queue for CuttableQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        self.inner.submit(request)
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let count = self.inner.poll(wait, completions)?;
        if self.is_cut.load(Ordering::SeqCst) {
            for completion in completions.iter_mut().filter(|one| one.outcome == Outcome::Unknown) {
                completion.outcome = Outcome::PowerLost;
            }
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wake_fd()
    }
}

fn conforms(mut rig: ClientRig, seed: u64) {
    // Other servers answer NO_HOLE with holes: nbdkit's memory, and qemu-nbd for a raw file. And a read
    // concurrent with a write of a block in a file may return a mixture.
    let is_foreign = rig.model.is_none();
    let mut names = conformance::names();
    let beyond_others = ["zeroes-without-holes-keep-their-space", "payloads-come-back"];
    names.retain(|name| !(is_foreign && beyond_others.contains(name)));
    conformance::run_some(&mut rig, seed, &names).assert_conforms();
}

fn over_the_model(connections: u32, options: ModelOptions) {
    let mut rig = ClientRig::new("the server of this crate", connections);
    rig.model = Some((0, options));
    conforms(rig, 4);
}

#[test]
fn three_queues_on_connections_of_their_own_conform() {
    over_the_model(3, ModelOptions::small(21));
}

#[test]
fn three_queues_on_one_connection_conform() {
    over_the_model(1, ModelOptions { fast_zeroes: true, discard_zeroes: true, ..ModelOptions::small(22) });
}

#[test]
fn an_export_without_discard_conforms() {
    over_the_model(2, ModelOptions { discards: false, ..ModelOptions::small(23) });
}

#[test]
fn a_memory_of_nbdkit_conforms() {
    for connections in [1, 3] {
        let Some(server) = Program::nbdkit(&["memory", "1M"]) else { return };
        let mut rig = ClientRig::new("nbdkit memory", connections);
        rig.uri = server.uri("");
        conforms(rig, 5);
    }
}

#[test]
fn a_file_of_nbdkit_without_fua_conforms() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let path = file.path().to_str().unwrap();
    let Some(server) = Program::nbdkit(&["--filter=fua", "--filter=nozero", "file", path, "zeromode=none"])
    else {
        return;
    };
    let mut rig = ClientRig::new("nbdkit file without FUA and zeroes", 2);
    rig.uri = server.uri("");
    conforms(rig, 6);
}

#[test]
fn an_image_of_qemu_conforms() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let Some(server) = Program::qemu_nbd(&["-f", "raw", "--shared=4", file.path().to_str().unwrap()]) else {
        return;
    };
    let mut rig = ClientRig::new("qemu-nbd", 2);
    rig.uri = server.uri("");
    conforms(rig, 7);
}
