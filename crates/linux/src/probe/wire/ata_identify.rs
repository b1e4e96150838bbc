//! IDENTIFY DEVICE data. ACS-4 7.13.6; words are little endian, strings have their bytes swapped in each
//! word.

/// Self-description of an ATA drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtaIdentify {
    /// Serial number, words 10-19.
    pub serial: Option<String>,
    /// Word 82 bit 5: the drive has a volatile write cache. `None` unless word 83 bits 15:14 are 01b.
    pub write_cache_supported: Option<bool>,
    /// Word 85 bit 5: the write cache is enabled. `None` unless word 87 bits 15:14 are 01b.
    pub write_cache_enabled: Option<bool>,
    /// Word 217: rotation of the medium.
    pub rotation: Rotation,
}

/// The nominal media rotation rate. ACS-4 7.13.6.80.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// 0001h: non-rotating medium.
    Solid,
    /// Revolutions per minute.
    Rpm(u16),
    /// 0000h, or a reserved value.
    NotReported,
}

/// Parses the data; `None` if it is shorter than 512 bytes.
pub fn parse(bytes: &[u8]) -> Option<AtaIdentify> {
    let data = bytes.get(..512)?;
    let word = |number: usize| u16::from_le_bytes([data[number * 2], data[number * 2 + 1]]);
    let valid = |number: usize| word(number) >> 14 == 0b01;
    let flag = |holds: bool, number: usize, bit: u16| holds.then(|| word(number) >> bit & 1 == 1);
    Some(AtaIdentify {
        serial: text(data, 10, 19),
        write_cache_supported: flag(valid(83), 82, 5),
        write_cache_enabled: flag(valid(87), 85, 5),
        rotation: match word(217) {
            1 => Rotation::Solid,
            rpm @ 0x0401..=0xfffe => Rotation::Rpm(rpm),
            _ => Rotation::NotReported,
        },
    })
}

/// Returns the string in words `first` to `last`.
fn text(data: &[u8], first: usize, last: usize) -> Option<String> {
    let swapped: Vec<u8> =
        data[first * 2..=last * 2 + 1].chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]).collect();
    super::text(&swapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identify(words: &[(usize, u16)]) -> Vec<u8> {
        let mut data = vec![0_u8; 512];
        for (number, value) in words {
            data[number * 2..number * 2 + 2].copy_from_slice(&value.to_le_bytes());
        }
        data
    }

    #[test]
    fn the_write_cache_counts_only_where_the_words_are_valid() {
        let on =
            parse(&identify(&[(82, 0x20), (83, 0x4000), (85, 0x20), (87, 0x4000), (217, 7200)])).unwrap();
        assert_eq!((on.write_cache_supported, on.write_cache_enabled), (Some(true), Some(true)));
        assert_eq!(on.rotation, Rotation::Rpm(7200));
        let invalid = parse(&identify(&[(82, 0x20), (83, 0xffff), (85, 0x20)])).unwrap();
        assert_eq!((invalid.write_cache_supported, invalid.write_cache_enabled), (None, None));
        assert_eq!(invalid.rotation, Rotation::NotReported);
    }

    #[test]
    fn strings_are_unswapped() {
        let words: Vec<(usize, u16)> = vec![(10, 0x5145), (11, 0x4d55), (12, 0x2020)];
        assert_eq!(parse(&identify(&words)).unwrap().serial.as_deref(), Some("QEMU"));
        assert_eq!(parse(&[0; 511]), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 500..520)) {
            parse(&bytes);
        }
    }
}
