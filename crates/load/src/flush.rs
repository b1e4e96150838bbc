//! Flushes without other requests: to bring a device to rest, and to learn how a kernel counts them.

use plumb_block::{Bytes, Device, Outcome, Pool, PoolShape, QueueOptions, Request, Tag, Wait};

use crate::fault::{Error, Fault};

/// Reason why the flushes failed.
#[derive(Debug, thiserror::Error)]
pub enum FlushError {
    /// The device cannot open a queue for the flushes.
    #[error(transparent)]
    Device(#[from] Error),
    /// A flush failed: data written since the last successful flush is not reliable.
    #[error(transparent)]
    Failed(#[from] Fault),
}

/// Flushes `device` `count` times in sequence. Afterwards all data acknowledged before is durable.
///
/// # Errors
/// Fails with the first flush that fails or has no answer.
pub fn flush(device: &dyn Device, count: u64) -> Result<(), FlushError> {
    let broken = |source| FlushError::Device(Error::Device(source));
    let pool =
        Pool::new(PoolShape { buffer: Bytes(4096), count: 1, alignment: Bytes(4096) }).map_err(broken)?;
    let mut queue = device.open_queue(QueueOptions { depth: 1, pool }).map_err(broken)?;
    let mut completions = Vec::new();
    for _ in 0..count {
        if queue.submit(Request::flush(Tag(0))).is_err() {
            let how = "it is full although nothing is in flight";
            return Err(Fault::Contract { worker: 0, how }.into());
        }
        queue.poll(Wait::ONE, &mut completions).map_err(broken)?;
        for completion in completions.drain(..) {
            if completion.outcome != Outcome::Done {
                let at = completion.service_time();
                let device = device.info().name;
                return Err(Fault::Flush { device, outcome: completion.outcome, at }.into());
            }
        }
    }
    Ok(())
}
