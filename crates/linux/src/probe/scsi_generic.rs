//! SCSI commands that read, through SG_IO. scsi/sg.h, block/scsi_ioctl.c.

use std::fs::File;

use plumb_block::{Errno, Nanos};

use super::{PageControl, Refusal, Reply};
use crate::command::{self, Transfer};

/// A drive that does not answer a query within this is left alone.
const TIMEOUT: Nanos = Nanos(5_000_000_000);
/// A unit attention is told once per reason; more than a few in a row is a fault.
const ATTENTIONS_MAX: usize = 3;

/// IDENTIFY DEVICE: SAT-4 12.2.2.2 ATA PASS-THROUGH(16), PIO data-in, length in the count field, one block.
pub(super) const ATA_IDENTIFY: [u8; 16] = [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xec, 0];

/// MODE SENSE(10), caching page 08h: SPC-5 6.15. The PC field is bits 7:6 of byte 2.
pub(super) fn mode_sense_caching(control: PageControl) -> [u8; 10] {
    let pc = match control {
        PageControl::Current => 0,
        PageControl::Changeable => 1,
        PageControl::Default => 2,
        PageControl::Saved => 3,
    };
    [0x5a, 0, pc << 6 | 0x08, 0, 0, 0, 0, 0, 252, 0]
}

/// Sends `cdb`, which must be one that only reads, and gives at most `length` bytes of its answer.
///
/// # Errors
/// The [`Refusal`] of the system or of the device; unit attentions are asked again.
pub(super) fn read(device: &File, cdb: &[u8], length: usize) -> Reply {
    for _ in 0..ATTENTIONS_MAX {
        match read_once(device, cdb, length) {
            Err(Refusal::Sense { key: 6, .. }) => {}
            reply => return reply,
        }
    }
    read_once(device, cdb, length)
}

fn read_once(device: &File, cdb: &[u8], length: usize) -> Reply {
    let reply = command::scsi(device, cdb, Transfer::FromDevice(length), TIMEOUT)
        .map_err(|error| Refusal::from_io(&error))?;
    if let Some(refusal) = refusal_of(reply.status, &reply.sense) {
        return Err(refusal);
    }
    if reply.host_status != 0 {
        return Err(Refusal::Failed(Errno(libc::EIO)));
    }
    Ok(reply.bytes)
}

/// What status and sense data mean. SPC-5 4.4.2 (descriptor format, 72h) and 4.4.3 (fixed format, 70h).
fn refusal_of(status: u8, sense: &[u8]) -> Option<Refusal> {
    const CHECK_CONDITION: u8 = 2;
    let byte = |at: usize| sense.get(at).copied().unwrap_or(0);
    let (key, asc, ascq) = match byte(0) & 0x7f {
        0x72 | 0x73 => (byte(1) & 0xf, byte(2), byte(3)),
        _ => (byte(2) & 0xf, byte(12), byte(13)),
    };
    // Key 1 is a recovered error: the data is good. ATA pass-through also reports its registers so.
    match status & 0x3e {
        0 => None,
        CHECK_CONDITION if key == 1 => None,
        CHECK_CONDITION => Some(Refusal::Sense { key, asc, ascq }),
        _ => Some(Refusal::Failed(Errno(libc::EBUSY))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sense_formats_are_read() {
        let fixed = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0];
        assert_eq!(refusal_of(2, &fixed), Some(Refusal::Sense { key: 5, asc: 0x24, ascq: 0 }));
        assert_eq!(refusal_of(2, &[0x72, 5, 0x20, 0]), Some(Refusal::Sense { key: 5, asc: 0x20, ascq: 0 }));
        assert_eq!(refusal_of(2, &[0x72, 1, 0, 0x1d]), None);
        assert_eq!(refusal_of(0, &[]), None);
        assert_eq!(refusal_of(8, &[]), Some(Refusal::Failed(Errno(libc::EBUSY))));
    }

    #[test]
    fn the_page_control_is_in_its_bits() {
        assert_eq!(mode_sense_caching(PageControl::Current)[2], 0x08);
        assert_eq!(mode_sense_caching(PageControl::Saved)[2], 0xc8);
    }
}
