//! Shared parts of the tests of real devices: a rig over any device or file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::conformance::{CannotStage, Rig};
use plumb_block::{
    Bytes, Caching, Clock, Completion, Device, LbaRange, Pool, PoolShape, Queue, QueueOptions, RealClock,
    Request, Result, Wait,
};
use plumb_linux::{FileDevice, FileOptions, Filling, TestFile, layout};
pub(crate) use plumb_testkit::loop_device::{LoopDevice, Mount};
pub(crate) use plumb_testkit::program::{alone, run};

/// Number of requests that the queues of the rigs hold.
pub(crate) const DEPTH: u32 = 8;

/// Step by which the user of a rig makes something fail.
pub(crate) type Stage = Box<dyn FnMut()>;

/// A file or block device as a rig.
pub(crate) struct FileRig {
    path: PathBuf,
    options: FileOptions,
    clock: Arc<RealClock>,
    pool: Pool,
    /// Makes the next flush fail.
    pub(crate) fail_flush: Option<Stage>,
    /// Leaves requests unanswered, and answers them.
    pub(crate) hold: Option<(Stage, Stage)>,
}

impl FileRig {
    pub(crate) fn new(path: &Path, options: FileOptions) -> Self {
        let shape = PoolShape { buffer: Bytes::kib(64), count: DEPTH * 4, alignment: Bytes::kib(4) };
        Self {
            path: path.to_owned(),
            options,
            clock: Arc::new(RealClock::start()),
            pool: Pool::new(shape).expect("memory for a pool"),
            fail_flush: None,
            hold: None,
        }
    }
}

impl Rig for FileRig {
    fn describe(&self) -> String {
        format!("{} opened with {:?}", self.path.display(), self.options)
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        let device = FileDevice::open(&self.path, self.options, Arc::clone(&self.clock) as _)?;
        Ok(Arc::new(device))
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    fn range(&self) -> LbaRange {
        LbaRange::new(plumb_block::Lba(8), 64)
    }

    /// Returns true for a loop device, too: it copies through the page cache of its file, however it is
    /// opened itself.
    fn is_page_cached(&self) -> bool {
        self.options.opening.caching != Caching::Direct || self.path.starts_with("/dev")
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        let Some(fail) = &mut self.fail_flush else {
            return Err(CannotStage("no flush of this file can be made to fail".to_owned()));
        };
        fail();
        Ok(())
    }

    fn hold_next_request(&mut self) -> std::result::Result<(), CannotStage> {
        let Some((hold, _)) = &mut self.hold else {
            return Err(CannotStage("the kernel answers every request to this file".to_owned()));
        };
        hold();
        Ok(())
    }

    fn release_held(&mut self) {
        if let Some((_, release)) = &mut self.hold {
            release();
        }
    }
}

/// Opens a queue of `device`, with the pool for its buffers.
pub(crate) fn queue(device: &dyn Device) -> (Box<dyn Queue>, Pool) {
    let pool = Pool::new(PoolShape { buffer: Bytes::kib(64), count: 4, alignment: Bytes::kib(4) }).unwrap();
    (device.open_queue(QueueOptions { depth: 4, pool: pool.clone() }).unwrap(), pool)
}

/// Sends a request to a queue that has none, and returns its answer.
pub(crate) fn answer(queue: &mut dyn Queue, request: Request) -> Completion {
    queue.submit(request).unwrap();
    let mut completions = Vec::new();
    queue.poll(Wait::ONE, &mut completions).unwrap();
    completions.remove(0)
}

/// Returns a filled test file of 4 MiB in `directory`.
pub(crate) fn test_file(directory: &Path) -> TestFile {
    let stop = AtomicBool::new(false);
    let filling = Filling { seed: 5, stop: &stop, progress: &mut |_| {} };
    let file = TestFile::create(directory, Bytes::mib(4)).expect("a test file");
    layout::write(&file.path(), Bytes(0), file.size(), Bytes(512), filling).expect("a filled test file");
    file
}
