//! Serial requests to one device, to create a cache and to write markers.

use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Device, DeviceInfo, Error, ErrorKind, LbaRange, Outcome, Payload, Pool, PoolShape,
    Queue, QueueOptions, Request, Result, Tag, Wait,
};

use crate::{BUFFER, Cache, InitialWrite, LOG_BLOCK, Member, Settings};

/// A queue that executes one request at a time. Opening it costs more than a request.
pub struct SerialRequests {
    name: String,
    queue: Box<dyn Queue>,
}

impl SerialRequests {
    /// Opens a queue to `device`.
    ///
    /// # Errors
    /// If the device cannot open a queue.
    pub fn open(device: &dyn Device) -> Result<Self> {
        let pool = Pool::new(PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes::kib(4) })?;
        let queue = device.open_queue(QueueOptions { depth: 1, pool })?;
        Ok(Self { name: device.info().name, queue })
    }

    /// Executes a request. Returns its payload.
    ///
    /// # Errors
    /// If the request fails; later ones may succeed.
    pub fn carry_out(&mut self, request: Request) -> Result<Payload> {
        let failed = |kind| Error::new(kind, "write the cache's data to", self.name.as_str());
        if self.queue.submit(request).is_err() {
            return Err(failed(ErrorKind::Invalid).because("its queue accepts no request"));
        }
        let mut completions = Vec::new();
        self.queue.poll(Wait::ONE, &mut completions)?;
        match completions.pop() {
            Some(Completion { outcome: Outcome::Done, payload, .. }) => Ok(payload),
            Some(Completion { outcome: Outcome::Failed(errno), .. }) => Err(failed(ErrorKind::Os(errno))),
            _ => Err(failed(ErrorKind::PowerLost)),
        }
    }
}

/// Executes `requests` one after the other. Returns their payloads in order.
///
/// # Errors
/// The first failure; later requests were not tried.
pub fn carry_out(device: &dyn Device, requests: impl IntoIterator<Item = Request>) -> Result<Vec<Payload>> {
    let mut queue = SerialRequests::open(device)?;
    requests.into_iter().map(|request| queue.carry_out(request)).collect()
}

/// Creates a cache on these legs, durably. The backing device is not changed.
///
/// # Errors
/// If the devices cannot satisfy the settings, or a write fails.
pub fn create(settings: &Settings, legs: &[Arc<dyn Device>], backing: &DeviceInfo) -> Result<()> {
    let infos: Vec<_> = legs.iter().map(|leg| leg.info()).collect();
    let writes = Cache::create(settings, &infos, backing)?;
    for (number, leg) in legs.iter().enumerate() {
        let own = writes.iter().filter(|write| write.member == Member::Leg(number));
        write(&**leg, own.map(|InitialWrite { range, bytes, .. }| (*range, &**bytes)))?;
    }
    Ok(())
}

/// Overwrites the superblocks with zeroes, durably: the device is then a leg of no cache.
///
/// # Errors
/// If a write fails; the device may then still be a leg.
pub fn erase(leg: &dyn Device) -> Result<()> {
    let zeroes = [0; LOG_BLOCK as usize];
    write(leg, Cache::superblocks_of(&leg.info()).map(|range| (range, &zeroes[..])))
}

/// Writes to a device, durably.
fn write<'a>(device: &dyn Device, writes: impl IntoIterator<Item = (LbaRange, &'a [u8])>) -> Result<()> {
    let pool = Pool::new(PoolShape { buffer: BUFFER, count: 1, alignment: Bytes::kib(4) })?;
    for (range, bytes) in writes {
        let Some(mut buffer) = pool.take(Bytes(bytes.len() as u64)) else { continue };
        buffer.copy_from_slice(bytes);
        carry_out(device, [Request::write(Tag(0), range, Payload::Bytes(buffer.freeze()))])?;
    }
    carry_out(device, [Request::flush(Tag(0))]).map(drop)
}
