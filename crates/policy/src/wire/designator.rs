//! Identification of a device: the vital product data pages 83h (designators) and 80h (serial number). SPC-5
//! 7.7.6 and 7.7.18.
//!
//! The texts have the format of the kernel's attribute `wwid` (drivers/scsi/scsi_lib.c, scsi_vpd_lun_id), so
//! that answers through a descriptor can be compared with /sys.

use plumb_state::hex;

use plumb_linux::probe::wire::text;

/// A designator of the logical unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Designator {
    /// Rank: the kernel takes the highest, at most 9.
    pub rank: u8,
    /// `naa.5000c500a1b2c3d4`, `eui.0025385a71b0b0ed`, `t10.ATA     ...`, or a SCSI name string.
    pub text: String,
}

/// Returns the designators of the logical unit in page 83h, in order. Those of ports and targets are left
/// out.
pub fn parse(page: &[u8]) -> Vec<Designator> {
    let mut found = Vec::new();
    if page.get(1) != Some(&0x83) {
        return found;
    }
    let Some(length) = page.get(2..4).map(|field| usize::from(u16::from_be_bytes([field[0], field[1]])))
    else {
        return found;
    };
    let mut rest = page.get(4..(4 + length).min(page.len())).unwrap_or(&[]);
    while let [_, kind, _, size, tail @ ..] = rest {
        let Some(value) = tail.get(..usize::from(*size)) else { break };
        let of_unit = kind & 0x30 == 0;
        if of_unit && let Some(designator) = designator(kind & 0xf, value) {
            found.push(designator);
        }
        rest = &tail[value.len()..];
    }
    found
}

/// Parses a designator, ranked by the kernel's preferences, designator_prio.
fn designator(kind: u8, value: &[u8]) -> Option<Designator> {
    let first = *value.first()?;
    let (rank, text) = match kind {
        // Vendor and model may contain padding blanks in the middle, which are kept.
        1 => (1, format!("t10.{}", printable(value))),
        2 => {
            let rank = match value.len() {
                16 => 7,
                12 => 6,
                8 => 2,
                _ => return None,
            };
            (rank, format!("eui.{}", hex::encode(value)))
        }
        3 => {
            let (rank, bytes) = match first >> 4 {
                6 => (8, 16),
                5 => (5, 8),
                4 => (4, 8),
                3 => (3, 8),
                2 => (3, 8),
                _ => return None,
            };
            (rank, format!("naa.{}", hex::encode(value.get(..bytes)?)))
        }
        8 => (9, text(value)?),
        _ => return None,
    };
    Some(Designator { rank, text: text.trim_end().to_owned() })
}

fn printable(value: &[u8]) -> String {
    value.iter().filter(|byte| (0x20..0x7f).contains(*byte)).map(|byte| char::from(*byte)).collect()
}

/// Returns the serial number in page 80h.
pub fn serial(page: &[u8]) -> Option<String> {
    if *page.get(1)? != 0x80 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    text(page.get(4..(4 + length).min(page.len()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_unit_are_taken_and_those_of_ports_left() {
        let mut page = vec![0, 0x83, 0, 0];
        page.extend(*b"\x02\x01\x00\x0bATA     X 1");
        page.extend([1, 0x13, 0, 8, 0x50, 1, 2, 3, 4, 5, 6, 7]);
        page.extend([1, 3, 0, 8, 0x50, 0, 0xc5, 0, 0xa1, 0xb2, 0xc3, 0xd4]);
        page[3] = (page.len() - 4) as u8;
        let found = parse(&page);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].text, "t10.ATA     X 1");
        assert_eq!((found[1].rank, found[1].text.as_str()), (5, "naa.5000c500a1b2c3d4"));
        page.truncate(page.len() - 1);
        assert_eq!(parse(&page).len(), 1, "a designator that is cut off is none");
    }

    #[test]
    fn the_serial_loses_its_padding() {
        assert_eq!(serial(b"\0\x80\0\x08  AB12  ").as_deref(), Some("AB12"));
        assert_eq!(serial(b"\0\x83\0\x04AB12"), None);
        assert_eq!(serial(b"\0\x80\0\x00"), None);
        let (names, page) = crate::mock::encode::identity([0x50, 0, 0, 0, 0, 0, 0, 7], "S7");
        assert_eq!(parse(&names)[0].text, "naa.5000000000000007");
        assert_eq!(serial(&page).as_deref(), Some("S7"));
    }
}
