//! Block status in terms of `base:allocation`.

use plumb_block::{Bytes, Extent, ExtentState, Lba, LbaRange};

use super::Transmission;
use super::plan::Refusal;
use crate::nbd::server::handshake::ALLOCATION_ID;
use crate::nbd::wire::{BlockDescriptor, BlockStatus, Cookie, WireErrno};

/// Maximum number of descriptors in a reply; the client continues from their end.
const DESCRIPTORS_MAX: usize = 1024;
/// Length of one query to the device.
const ASKED: Bytes = Bytes::mib(256);

impl Transmission {
    /// Answers a block status request. A non-empty part of the requested range is a valid answer.
    pub(super) fn tell_status(&mut self, cookie: Cookie, range: LbaRange, is_one: bool) {
        let block = self.rules.info.logical_block.0;
        let step_nlb = (ASKED.0 / block).max(1);
        let mut descriptors: Vec<BlockDescriptor> = Vec::new();
        let mut lba = range.lba.0;
        let served = &self.session.served.device;
        while lba < range.end().0
            && self.session.known.is_all(&*served.device)
            && descriptors.len() <= DESCRIPTORS_MAX
            && !(is_one && descriptors.len() > 1)
        {
            let asked = LbaRange::new(Lba(lba), step_nlb.min(range.end().0 - lba));
            let Ok(extents) = served.device.extents(asked) else { break };
            for extent in extents {
                append(&mut descriptors, &extent, asked, block);
                if descriptors.len() > DESCRIPTORS_MAX {
                    break;
                }
            }
            lba = asked.end().0;
        }
        descriptors.truncate(if is_one { 1 } else { DESCRIPTORS_MAX });
        if descriptors.is_empty() {
            let why = "the device cannot be asked what is behind its blocks";
            return self.refuse(cookie, Refusal { errno: WireErrno::EIO, why });
        }
        let status = BlockStatus { context: ALLOCATION_ID, descriptors };
        self.output.bytes(status.encode(cookie));
    }
}

/// Appends the part of an extent within `asked`, merged with the previous descriptor if the state is equal.
fn append(descriptors: &mut Vec<BlockDescriptor>, extent: &Extent, asked: LbaRange, block: u64) {
    let start = extent.range.lba.0.max(asked.lba.0);
    let end = extent.range.lba.0.saturating_add(extent.range.nlb).min(asked.end().0);
    let Some(nlb) = end.checked_sub(start).filter(|nlb| *nlb > 0) else { return };
    // `asked` is at most 4 GiB minus a block, so lengths fit even when merged.
    let length = u32::try_from(nlb * block).unwrap_or(u32::MAX);
    let flags = flags_of(extent.state);
    match descriptors.last_mut() {
        Some(last) if last.flags == flags => last.length = last.length.saturating_add(length),
        _ => descriptors.push(BlockDescriptor { length, flags }),
    }
}

const fn flags_of(state: ExtentState) -> u32 {
    match state {
        ExtentState::Written | ExtentState::Unknown => 0,
        ExtentState::Unwritten => BlockDescriptor::ZERO,
        ExtentState::Hole => BlockDescriptor::HOLE | BlockDescriptor::ZERO,
    }
}
