//! Changing the caching mode page 08h: from an answer to MODE SENSE(10) to the data of MODE SELECT(10). SPC-5
//! 6.13, 6.15 and 7.5.6; the page itself is SBC-4 6.5.6, found and read by [`caching_page`].
//!
//! ```text
//! header  0-1 mode data length (reserved in a select: 0)   2 medium type   3 device-specific (WP, DPOFUA: 0)
//!         4 bit 0 LONGLBA   6-7 block descriptor length, descriptors follow
//! page    0 bit 7 PS (reserved in a select: 0), bits 5:0 page code   1 page length   2 bit 2 WCE ...
//! ```
//! Only the WCE bit differs from the device's answer; everything else is sent back unchanged.

use plumb_linux::probe::wire::caching_page;

const HEADER_BYTES: usize = 8;
const PAGE_CODE: u8 = 0x08;
const WCE: u8 = 1 << 2;

/// SYNCHRONIZE CACHE(10), the whole device. SBC-4 5.33.
pub(crate) const SYNCHRONIZE_CACHE: [u8; 10] = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Choice whether the new value is saved across a power cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Save {
    /// SP=0: only the current value.
    No,
    /// SP=1: also the saved value. Only for pages with PS=1.
    Yes,
}

/// A MODE SELECT(10) command with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeSelect {
    /// The command descriptor block.
    pub cdb: [u8; 10],
    /// The mode parameter list.
    pub parameters: Vec<u8>,
}

/// Creates the command that sets WCE and leaves everything else as in `answer`, the answer to MODE SENSE for
/// current values. `None` if the page is incomplete.
pub fn select(answer: &[u8], write_cache: bool, save: Save) -> Option<ModeSelect> {
    let (at, length) = caching_page::find(answer)?;
    // Pages before the caching page are left out: the descriptors end where the first page starts.
    let descriptors = u16::from_be_bytes([*answer.get(6)?, *answer.get(7)?]);
    let mut parameters = answer.get(..HEADER_BYTES + usize::from(descriptors))?.to_vec();
    parameters.extend(answer.get(at..at + length)?);
    let page = parameters.len() - length;
    parameters[..2].fill(0);
    parameters[3] = 0;
    parameters[page] &= 0x3f;
    parameters[page + 2] = parameters[page + 2] & !WCE | u8::from(write_cache) << 2;
    let [high, low] = u16::try_from(parameters.len()).ok()?.to_be_bytes();
    let page_format_and_save = 0x10 | u8::from(save == Save::Yes);
    Some(ModeSelect { cdb: [0x55, page_format_and_save, 0, 0, 0, 0, 0, high, low, 0], parameters })
}

/// Returns the WCE value that a MODE SELECT sets, and whether the command saves it, for a mock and for
/// printing. `None` if it is another command.
pub fn read_select(cdb: &[u8], parameters: &[u8]) -> Option<(bool, Save)> {
    if *cdb.first()? != 0x55 {
        return None;
    }
    let save = if cdb.get(1)? & 1 == 1 { Save::Yes } else { Save::No };
    let descriptors = u16::from_be_bytes([*parameters.get(6)?, *parameters.get(7)?]);
    let page = parameters.get(HEADER_BYTES + usize::from(descriptors)..)?;
    let is_caching = page.first()? & 0x7f == PAGE_CODE;
    is_caching.then(|| page.get(2).map(|byte| (byte & WCE != 0, save)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(descriptors: usize) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0x90, 0, 0, 0, descriptors as u8];
        bytes.extend(vec![0xdd; descriptors]);
        bytes.extend([0x88, 0x12, 0x01]);
        bytes.extend([0x77; 17]);
        bytes[1] = (bytes.len() - 2) as u8;
        bytes.resize(252, 0);
        bytes
    }

    #[test]
    fn only_the_bit_differs_from_what_the_device_said() {
        for descriptors in [0, 8] {
            let before = answer(descriptors);
            let command = select(&before, true, Save::Yes).unwrap();
            let length = 8 + descriptors + 20;
            assert_eq!(command.cdb, [0x55, 0x11, 0, 0, 0, 0, 0, 0, length as u8, 0]);
            let mut expected = before[..length].to_vec();
            expected[1] = 0;
            expected[3] = 0;
            expected[8 + descriptors] = 0x08;
            expected[8 + descriptors + 2] = 0x05;
            assert_eq!(command.parameters, expected);
            assert_eq!(read_select(&command.cdb, &command.parameters), Some((true, Save::Yes)));
        }
    }

    #[test]
    fn a_page_in_front_is_passed_over_and_left_out() {
        let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x02, 0xaa, 0xbb];
        bytes.extend([0x08, 0x0a, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes[1] = (bytes.len() - 2) as u8;
        let command = select(&bytes, false, Save::No).unwrap();
        assert_eq!(command.parameters.len(), 8 + 12);
        assert_eq!(command.cdb[1], 0x10);
    }

    #[test]
    fn what_is_not_whole_is_not_sent_back() {
        let whole = answer(8);
        for length in 0..8 + 8 + 20 {
            assert_eq!(select(&whole[..length], true, Save::No), None, "{length} bytes");
        }
        assert_eq!(select(&[0, 6, 0, 0, 0, 0, 0, 0], true, Save::No), None);
    }
}
