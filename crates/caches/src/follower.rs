//! Thread that keeps the marker of the backing device up to date with the log. When a leg is lost, a new
//! session begins, and no write is acknowledged until the marker names it: the lost leg does not know that it
//! is stale, and is refused because of the marker.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use plumb_block::{Error, Result};
use plumb_cache::driver::CachedDevice;

use crate::witness::Marking;

/// Thread that writes the marker; ends when this is dropped.
pub(crate) struct Follower {
    device: CachedDevice,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts the thread, which writes each mark that `device` requests, durably.
    pub(crate) fn start(device: CachedDevice, marking: Arc<Marking>) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (followed, ended) = (device.clone(), Arc::clone(&is_over));
        let thread = std::thread::Builder::new().name("plumb-marker".to_owned()).spawn(move || {
            while let Some(mark) = followed.wait_to_mark(&ended) {
                let result = marking.write(mark).map_err(|error| error.to_string());
                let has_failed = result.is_err();
                followed.with(|core, now| core.marked(mark, result, now));
                if has_failed {
                    // After a failure the cache stops, so no further mark is needed.
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
        // A panic has printed its message already.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}
