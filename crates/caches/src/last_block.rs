//! Checks and clears the last block of a device, where the marker of a cache goes. The cached device ends
//! before that block.

use plumb_block::{BufferMut, Lba, LbaRange, Payload, Pool, PoolShape, Request, Tag};
use plumb_cache::driver::carry_out;
use plumb_guard::cache::config::MarkerPlace;
use plumb_guard::cache::marker::BLOCK;
use plumb_guard::signature::end_of_file_system;
use plumb_guard::{Error, Result};

use crate::member::Member;

/// Number of blocks at the start of a device that hold the signatures and the size of its file system.
const FRONT: u64 = 17;

/// Refuses a device whose contents may extend into its last block.
pub(crate) fn is_left_free(member: &Member) -> Result<()> {
    let (size, limit) = (member.device.info().size, member.cached(MarkerPlace::LastBlock).info().size);
    let front = carry_out(&*member.device, front(member, Request::read_into))
        .map_err(|error| Error::device(&member.shown, &error))?;
    let front: Vec<&[u8]> = front
        .iter()
        .filter_map(|block| if let Payload::Into(bytes) = block { Some(&bytes[..]) } else { None })
        .collect();
    let end = end_of_file_system(&&front.concat()[..]).unwrap_or_default();
    let found = match (end, member.nature()?.contents.of_unknown_length()) {
        (Some(end), _) if end > limit.0 => {
            format!("its file system uses {end} of its {} bytes", size.0)
        }
        (None, Some(name)) => format!("it holds {name}, which may use all of it"),
        _ => return Ok(()),
    };
    let found = format!("{found}; the last 4096 are where a cache marks the device that needs it");
    let remedy = format!(
        "shrink what is on it to at most {} bytes (resize2fs and the like); if it may be lost, erase it \
         with wipefs; or cache a file",
        limit.0
    );
    Err(Error::refused(&member.shown, found, remedy))
}

/// Zeroes the signatures of a file system, durably.
pub(crate) fn take_off(member: &Member) -> plumb_block::Result<()> {
    let zeroes = |tag, range, mut buffer: BufferMut| {
        buffer.fill(0);
        Request::write(tag, range, Payload::Bytes(buffer.freeze()))
    };
    let requests = front(member, zeroes).into_iter().chain([Request::flush(Tag(FRONT))]);
    carry_out(&*member.device, requests).map(drop)
}

/// Returns a request for each of the first [`FRONT`] blocks.
fn front(member: &Member, request: impl Fn(Tag, LbaRange, BufferMut) -> Request) -> Vec<Request> {
    let info = member.device.info();
    let (nlb, count) = (BLOCK.0 / info.logical_block.0, FRONT.min(info.size.0 / BLOCK.0));
    let pool = Pool::new(PoolShape { buffer: BLOCK, count: FRONT as u32, alignment: BLOCK });
    let Ok(pool) = pool else { return Vec::new() };
    let buffers = (0..count).filter_map(|block| Some((block, pool.take(BLOCK)?)));
    buffers.map(|(block, buffer)| request(Tag(block), LbaRange::new(Lba(block * nlb), nlb), buffer)).collect()
}
