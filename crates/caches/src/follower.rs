//! The marker of the backing device follows the log, as the cache asks for it. When a device of the log is
//! lost, a session begins, and nothing is acknowledged until the marker names it: the device that was lost
//! cannot know that it is stale; by the marker it is refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use plumb_block::{Error, Result};
use plumb_cache::driver::CachedDevice;

use crate::witness::Marking;

/// A thread that writes the marker. It ends when this is dropped.
pub(crate) struct Follower {
    device: CachedDevice,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Has `mark` write each mark that `device` asks for, durably.
    pub(crate) fn start(device: CachedDevice, marking: Arc<Marking>) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (followed, ended) = (device.clone(), Arc::clone(&is_over));
        let thread = std::thread::Builder::new().name("plumb-marker".to_owned()).spawn(move || {
            while let Some(mark) = followed.wait_to_mark(&ended) {
                let result = marking.write(mark).map_err(|error| error.to_string());
                let has_failed = result.is_err();
                followed.with(|core, now| core.marked(mark, result, now));
                if has_failed {
                    // Nothing is written any more.
                    break;
                }
            }
        });
        let thread = thread.map_err(|error| Error::io(&error, "start a thread of", "a cache"))?;
        Ok(Self { device, is_over, thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.device.end_marking(&self.is_over);
        // A thread that panicked has said so.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}
