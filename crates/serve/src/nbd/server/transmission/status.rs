//! State of the blocks, in the terms of `base:allocation`.

use plumb_block::{Bytes, Extent, ExtentState, Lba, LbaRange};

use super::Transmission;
use super::plan::Refusal;
use crate::nbd::server::handshake::ALLOCATION_ID;
use crate::nbd::wire::{BlockDescriptor, BlockStatus, Cookie, WireErrno};

/// Number of descriptors that a reply has at most; the client asks again from where they end.
const DESCRIPTORS_MAX: usize = 1024;
/// How much the device is asked about at once.
const ASKED: Bytes = Bytes::mib(256);

impl Transmission {
    /// Answers a block status request. A part of what was asked is an answer too, as long as it is not empty.
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

/// Appends what lies within `asked`, to the descriptor before where the state is the same.
fn append(descriptors: &mut Vec<BlockDescriptor>, extent: &Extent, asked: LbaRange, block: u64) {
    let start = extent.range.lba.0.max(asked.lba.0);
    let end = extent.range.lba.0.saturating_add(extent.range.nlb).min(asked.end().0);
    let Some(nlb) = end.checked_sub(start).filter(|nlb| *nlb > 0) else { return };
    // `asked` is at most 4 GiB less a block, the range of a request, so lengths fit even when joined.
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
