//! Read-only SCSI commands through SG_IO. scsi/sg.h, block/scsi_ioctl.c.

use std::fs::File;

use plumb_block::Nanos;

use super::{PageControl, Refusal, Reply};
use crate::command::sense::Sense;
use crate::command::{self, ScsiFailure, Transfer};

/// Timeout of a query to a drive.
const TIMEOUT: Nanos = Nanos(5_000_000_000);

/// IDENTIFY DEVICE: SAT-4 12.2.2.2 ATA PASS-THROUGH(16), PIO data-in, length in the count field, one block.
pub(super) const ATA_IDENTIFY: [u8; 16] = [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xec, 0];

/// Returns the command MODE SENSE(10), caching page 08h: SPC-5 6.15. The PC field is bits 7:6 of byte 2.
pub(super) fn mode_sense_caching(control: PageControl) -> [u8; 10] {
    let pc = match control {
        PageControl::Current => 0,
        PageControl::Changeable => 1,
        PageControl::Default => 2,
        PageControl::Saved => 3,
    };
    [0x5a, 0, pc << 6 | 0x08, 0, 0, 0, 0, 0, 252, 0]
}

/// Sends `cdb`, which must be a read-only command, and returns at most `length` bytes of the answer.
///
/// # Errors
/// The [`Refusal`] of the system or the device.
pub(super) fn read(device: &File, cdb: &[u8], length: usize) -> Reply {
    let reply = command::scsi_done(device, cdb, Transfer::FromDevice(length), TIMEOUT);
    reply.map(|reply| reply.bytes).map_err(|failure| match failure {
        ScsiFailure::System(error) => Refusal::from_io(&error),
        ScsiFailure::Sense(Sense { key, asc, ascq }) => Refusal::Sense { key, asc, ascq },
        ScsiFailure::Failed(errno) => Refusal::Failed(errno),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_control_is_in_its_bits() {
        assert_eq!(mode_sense_caching(PageControl::Current)[2], 0x08);
        assert_eq!(mode_sense_caching(PageControl::Saved)[2], 0xc8);
    }
}
