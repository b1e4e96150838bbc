//! Sense data: why a SCSI command did not simply succeed. SPC-5 4.4.2 (descriptor format, 72h), 4.4.3 (fixed
//! format, 70h); SAT-4 12.2.6 (ATA Status Return descriptor 09h).

/// Sense key, additional sense code and qualifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sense {
    /// Sense key: 1 recovered error, 5 illegal request, 6 unit attention.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Additional sense code qualifier.
    pub ascq: u8,
}

/// Registers of an ATA device after a command, as ATA PASS-THROUGH with CK_COND returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtaStatus {
    /// The ERROR register.
    pub error: u8,
    /// The COUNT register, bits 7:0.
    pub count: u8,
    /// The LBA register, bits 7:0.
    pub lba_low: u8,
    /// The STATUS register: 50h is success; bit 0 error, bit 5 device fault.
    pub status: u8,
}

impl Sense {
    /// Returns true for RECOVERED ERROR, which includes ATA PASS-THROUGH INFORMATION AVAILABLE: the command
    /// was carried out.
    pub fn is_recovered(self) -> bool {
        self.key == 1
    }

    /// Returns true for UNIT ATTENTION: the device reports an event instead of carrying out the command. Send
    /// it again.
    pub(crate) fn is_unit_attention(self) -> bool {
        self.key == 6
    }
}

impl AtaStatus {
    /// Returns true if the ATA command succeeded: neither error nor device fault.
    pub fn is_success(self) -> bool {
        self.status & 0x21 == 0
    }
}

/// Parses sense data; `None` if the bytes are in neither format.
pub fn parse(bytes: &[u8]) -> Option<Sense> {
    let byte = |at: usize| bytes.get(at).copied();
    match byte(0)? & 0x7f {
        0x72 | 0x73 => Some(Sense { key: byte(1)? & 0xf, asc: byte(2)?, ascq: byte(3)? }),
        // Old devices truncate the data before the code.
        0x70 | 0x71 => {
            Some(Sense { key: byte(2)? & 0xf, asc: byte(12).unwrap_or(0), ascq: byte(13).unwrap_or(0) })
        }
        _ => None,
    }
}

/// Finds the ATA Status Return descriptor.
pub fn ata_status(bytes: &[u8]) -> Option<AtaStatus> {
    const DESCRIPTOR: u8 = 0x09;
    if !matches!(bytes.first()? & 0x7f, 0x72 | 0x73) {
        return None;
    }
    let end = 8 + usize::from(*bytes.get(7)?);
    let mut rest = bytes.get(8..end.min(bytes.len()))?;
    while let [kind, length, ..] = rest {
        let whole = 2 + usize::from(*length);
        if *kind == DESCRIPTOR {
            let at = |at: usize| rest.get(at).copied();
            return Some(AtaStatus { error: at(3)?, count: at(5)?, lba_low: at(7)?, status: at(13)? });
        }
        rest = rest.get(whole..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read() {
        let fixed = [0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x2a, 1];
        assert_eq!(parse(&fixed), Some(Sense { key: 6, asc: 0x2a, ascq: 1 }));
        assert!(parse(&fixed).unwrap().is_unit_attention());
        assert_eq!(parse(&[0x72, 5, 0x24, 0]), Some(Sense { key: 5, asc: 0x24, ascq: 0 }));
        assert_eq!((parse(&[]), parse(&[0x72, 5]), parse(&[0x7f; 18])), (None, None, None));
    }
}
