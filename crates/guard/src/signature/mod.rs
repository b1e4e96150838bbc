//! Detection of the contents of a device or file by signatures: magic numbers of file systems, volume
//! managers and partition tables.
//!
//! Detection prefers false positives: a blank device mistaken for used costs the user typing a serial, a used
//! one mistaken for blank costs the data. So checksums are not required, a two-byte magic suffices where no
//! further check is cheap, and backup copies count like primaries.
//!
//! # Limitations
//! No signature does not prove a blank device: raw database files, archives written straight to a device, and
//! encrypted volumes without a header (plain dm-crypt, VeraCrypt) have none.

mod computed;
mod extent;
mod magics;
mod mark;
mod source;

use std::io;

pub use extent::{OF_KNOWN_LENGTH, end_of_file_system};
pub use mark::{CACHE_BACKING, CACHE_LOG, Signature};
use plumb_block::Stamp;
use source::SourceEnds;
pub use source::{FileSource, Source};

/// Signatures that count only if there is no other, as they may also occur within other contents.
const ALONE: [&str; 1] = [computed::BOOT_SECTOR];
/// Pairs of names of which the first implies the second and says more.
const SAYS_MORE: [(&str, &str); 1] = [("UDF", "ISO 9660")];

/// Returns all signatures in `source`, each name once, at its first position; a copy only if the primary is
/// missing.
///
/// # Errors
/// Fails if a part cannot be read; positions beyond the end hold nothing.
pub fn find(source: &dyn Source) -> io::Result<Vec<Signature>> {
    let mut found: Vec<Signature> = Vec::new();
    let source = SourceEnds::over(source);
    let fixed = magics::find(&source)?;
    let (first, copies): (Vec<_>, Vec<_>) =
        fixed.into_iter().chain(computed::find(&source)?).partition(|signature| !signature.is_copy);
    for signature in first.into_iter().chain(copies) {
        if !found.iter().any(|known| known.name == signature.name) && !is_noise(&source, signature.at)? {
            found.push(signature);
        }
    }
    let names: Vec<&str> = found.iter().map(|found| found.name).collect();
    found.retain(|found| {
        let is_beside = ALONE.contains(&found.name) && names.len() > 1;
        let is_said = SAYS_MORE.iter().any(|(more, less)| *less == found.name && names.contains(more));
        !is_beside && !is_said
    });
    Ok(found)
}

/// Returns true if the byte at `at` lies in an intact block of noise written by plumb. A signature there is
/// chance.
fn is_noise(source: &dyn Source, at: u64) -> io::Result<bool> {
    for length in [512_u64, 4096] {
        let mut block = vec![0; length as usize];
        let read = source.read_at(at - at % length, &mut block)?;
        if read == block.len() && Stamp::read(&block).is_some_and(|stamp| stamp.is_whole(&block)) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an image of `size` zeroes with `parts` inserted.
    fn image(size: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; size];
        for (at, part) in parts {
            bytes[*at..*at + part.len()].copy_from_slice(part);
        }
        bytes
    }

    fn names(bytes: &[u8]) -> Vec<&'static str> {
        find(&bytes).unwrap().iter().map(|found| found.name).collect()
    }

    const MIB: usize = 1 << 20;

    #[test]
    fn every_fixed_mark_is_found_alone_and_nothing_else_is() {
        for magic in magics::MAGICS {
            for &at in magic.at.iter().chain(magic.copies) {
                let at = usize::try_from(at).unwrap();
                // Copies at high offsets are tested with sparse files in the tests of the crate.
                if at < 64 * MIB {
                    let bytes = image(at + 8 * MIB, &[(at, magic.bytes)]);
                    assert_eq!(names(&bytes), [magic.name], "{magic:?}");
                }
            }
        }
        assert!(names(&vec![0; 8 * MIB]).is_empty());
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn marks_at_computed_places_are_found() {
        let md = 0xa92b_4efc_u32;
        let size = 5 * MIB + 4096 + 512;
        let entry = [0x80, 0, 0, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0];
        let uberblock = 0x00ba_b10c_u64;
        for (name, parts) in [
            ("an md 1.0 member", &[(size / 512 / 8 * 8 * 512 - 8192, &md.to_le_bytes()[..])][..]),
            ("an md 0.90 member", &[(5 * MIB - 65536, &md.to_le_bytes())]),
            ("an md 0.90 member", &[(5 * MIB - 65536, &md.to_be_bytes())]),
            ("swap space", &[(16384 - 10, b"SWAPSPACE2")]),
            ("a GPT", &[(4096, b"EFI PART")]),
            ("a GPT", &[(size - 512, b"EFI PART")]),
            ("MBR partitions", &[(446, &entry), (510, &[0x55, 0xaa])]),
            ("MBR partitions", &[(446 + 48, &entry), (510, &[0x55, 0xaa])]),
            ("FAT", &[(0, b"\xeb\x3c\x90"), (11, &[0, 2, 1, 1, 0, 2]), (510, &[0x55, 0xaa])]),
            ("FAT", &[(0, b"\xe9"), (11, &[0, 2, 1, 1, 0, 2])]),
            ("an xfs log", &[(512 * 77, &[0xfe, 0xed, 0xba, 0xbe])]),
            ("swap space", &[(4096 - 10, b"S1SUSPEND")]),
            ("an LSI RAID member", &[(size - 512, b"$XIDE$")]),
            ("an NVIDIA RAID member", &[(size - 1024, b"NVIDIA")]),
            ("ZFS", &[(131_072 + 4096, &uberblock.to_le_bytes())]),
            ("ZFS", &[(5 * MIB - 512 * 1024 + 131_072, &uberblock.to_be_bytes())]),
            ("DRBD", &[(5 * MIB + 60, &0x8374_026b_u32.to_be_bytes())]),
            ("NILFS2", &[(1024, &[2, 0, 0, 0, 0, 0, 0x34, 0x34])]),
            ("NILFS2", &[(5 * MIB + 6, &[0x34, 0x34])]),
            ("an Intel RAID member", &[(size - 1024, b"Intel Raid ISM Cfg Sig. ")]),
            ("a DDF RAID member", &[(size - 512, &[0xde, 0x11, 0xde, 0x11])]),
            ("an Adaptec RAID member", &[(size - 512, &[0x37, 0xfc, 0x4d, 0x1e])]),
            ("a HighPoint RAID member", &[(size - 11 * 512, &[0xf3, 0x16, 0x78, 0x5a])]),
            ("a HighPoint RAID member", &[(size - 11 * 512, &[0xfd, 0x16, 0x78, 0x5a])]),
            ("a JMicron RAID member", &[(size - 512, b"JM")]),
            ("a Silicon Image RAID member", &[(size - 512 + 0x60, &[0, 0, 0, 0x2f])]),
            ("a Promise RAID member", &[(size - 63 * 512, b"Promise Technology, Inc.")]),
            ("a Promise RAID member", &[(size - 3087 * 512, b"Promise Technology, Inc.")]),
            // 0x55 + 0xaa + 1 = 0x100.
            ("a VIA RAID member", &[(size - 512, &[0x55, 0xaa, 1])]),
            ("a Windows dynamic disk", &[(size - 512, b"PRIVHEAD")]),
            ("Sun partitions", &[(508, &[0xda, 0xbe, 0xda, 0xbe])]),
            ("Atari partitions", &[(0x1c6, &[1, b'G', b'E', b'M', 0, 0, 0, 2, 0, 0, 4, 0])]),
            ("UDF", &[(32768, b"\0BEA01\x01"), (34816, b"\0NSR02\x01")]),
            (
                "UDF",
                &[
                    (32768, b"\x01CD001\x01"),
                    (34816, b"\xffCD001\x01"),
                    (36864, b"\0BEA01"),
                    (38912, b"\0NSR03"),
                ],
            ),
            ("UDF", &[(32768, b"\0BEA01\x01"), (36864, b"\0NSR02\x01")]),
            ("ISO 9660", &[(32768, b"\x01CD001\x01")]),
            ("bcache", &[(4096 + 8, &[8]), (4096 + 24, &computed::BCACHE)]),
            ("bcachefs", &[(4096 + 24, &computed::BCACHE), (4096 + 104, &[8])]),
            ("xfs", &[(0, b"XFSB"), (512 * 77, &[0xfe, 0xed, 0xba, 0xbe])]),
            ("NTFS", &[(size - 512 + 3, b"NTFS    ")]),
            ("HFS+", &[(size - 1024, b"H+\0\x04")]),
            ("HFS", &[(size - 1024, b"BD")]),
            ("ReFS", &[(size - 512 + 3, b"ReFS\0")]),
            ("a FreeBSD GEOM member", &[(size - 512, b"GEOM::ELI")]),
            // A quarter of the blocks of 4096 bytes, rounded up, and a seventh.
            ("xfs", &[((size / 4096).div_ceil(4) * 4096, b"XFSB")]),
            ("xfs", &[((size / 4096).div_ceil(7) * 4096, b"XFSB")]),
            // A quarter, rounded down to a unit of 64 KiB, less one unit.
            ("xfs", &[(size / 4 / 65536 * 65536 - 65536, b"XFSB")]),
            // A group of 3 MiB, as in a file system that has grown.
            ("xfs", &[(3 * MIB, b"XFSB")]),
            // A group of 1 MiB, the first with blocks of 1 KiB.
            ("ext2", &[(MIB + 0x38, &[0x53, 0xef]), (MIB + 0x5a, &[1, 0])]),
            ("ext2", &[(3 * MIB + 1024 + 0x38, &[0x53, 0xef]), (3 * MIB + 1024 + 0x5a, &[3, 0])]),
        ] {
            assert_eq!(names(&image(size, parts)), [name], "{parts:?}");
        }
    }

    #[test]
    fn relatives_of_ext_are_told_apart() {
        let magic = [0x53, 0xef];
        for (name, compatible, incompatible) in [
            ("ext2", 0_u32, 0x2_u32),
            ("ext3", 0x4, 0x2),
            ("ext4", 0x4, 0x42),
            ("ext4", 0, 0x80),
            ("an ext4 journal", 0, 0x8),
        ] {
            let parts: &[(usize, &[u8])] = &[
                (1024 + 0x38, &magic),
                (1024 + 0x5c, &compatible.to_le_bytes()),
                (1024 + 0x60, &incompatible.to_le_bytes()),
            ];
            assert_eq!(names(&image(MIB, parts)), [name]);
        }
    }

    #[test]
    fn a_mark_that_is_chance_in_a_block_of_noise_is_none() {
        use plumb_block::{Lba, Pattern};
        let mut block = vec![0; 512];
        let minix = (0..).find(|seed| {
            Pattern { seed: *seed, lba: Lba(2), generation: 7 }.fill(512, &mut block);
            block[16..18] == [0x7f, 0x13]
        });
        let mut bytes = image(MIB, &[(1024, &block)]);
        assert!(names(&bytes).is_empty(), "seed {minix:?}");
        bytes[1024 + 400] ^= 1;
        assert_eq!(names(&bytes), ["minix"], "a block that is not whole may be anybody's");
    }

    #[test]
    fn the_noise_that_plumb_writes_is_no_signature() {
        use plumb_block::{Lba, Pattern};
        let mut bytes = vec![0; MIB];
        for (seed, block) in [(1, 512), (2, 4096), (3, 512), (4, 4096)] {
            Pattern { seed, lba: Lba(0), generation: 0 }.fill(block, &mut bytes);
            assert!(names(&bytes).is_empty(), "seed {seed}");
            // Even if the noise contains the magic of ext by chance.
            bytes[1080..1082].copy_from_slice(&[0x53, 0xef]);
            assert_eq!(names(&bytes).is_empty(), bytes[1024 + 0x1b] != 0, "seed {seed}");
        }
    }

    #[test]
    fn the_end_of_a_boot_sector_counts_where_nothing_else_is() {
        assert_eq!(names(&image(MIB, &[(510, &[0x55, 0xaa])])), ["a boot sector"]);
        let wild = [0x12, 0, 0, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0];
        assert_eq!(names(&image(MIB, &[(446, &wild), (510, &[0x55, 0xaa])])), ["a boot sector"]);
        assert_eq!(names(&image(MIB, &[(3, b"NTFS    "), (510, &[0x55, 0xaa])])), ["NTFS"]);
    }

    #[test]
    fn a_copy_counts_where_the_first_is_gone() {
        let found = |parts: &[(usize, &[u8])]| find(&&image(9 * MIB, parts)[..]).unwrap();
        let (first, copy) = ((4096 + 0x38, b"\x53\xef"), (8193 * 1024 + 0x38, &[0x53, 0xef][..]));
        assert!(found(&[(first.0, first.1)]).is_empty(), "not the place of a superblock");
        // The group number in the copy.
        let group = (8193 * 1024 + 0x5a, &[1, 0][..]);
        assert_eq!(found(&[copy, group]), [Signature::copy("ext2", 8193 * 1024 + 0x38)]);
        assert!(
            found(&[copy]).is_empty(),
            "the superblock of another file system, kept in a file of this one"
        );
        let superblock = (1024 + 0x38, &[0x53, 0xef][..]);
        assert_eq!(found(&[superblock, copy, group]), [Signature::new("ext2", 1024 + 0x38)]);
        assert_eq!(found(&[copy, group])[0].to_string(), "ext2 (a copy of its superblock at byte 8389688)");
    }

    #[test]
    fn an_unreadable_source_is_an_error_not_blank() {
        struct BrokenField;
        impl Source for BrokenField {
            fn size(&self) -> u64 {
                1 << 30
            }
            fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
                if at > 1 << 20 { Err(io::Error::from_raw_os_error(5)) } else { Ok(into.len()) }
            }
        }
        assert_eq!(find(&BrokenField).unwrap_err().raw_os_error(), Some(5));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
        #[test]
        fn any_bytes_are_read_without_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..6000),
            size in 0..3_000_000_usize,
            at in 0..3_000_000_usize,
            claimed in proptest::num::u64::ANY,
        ) {
            // Random bytes in a short source, and in one that claims a size beyond its end.
            let mut whole = vec![0; size];
            for (place, byte) in whole.iter_mut().skip(at).zip(&bytes) {
                *place = *byte;
            }
            proptest::prop_assert!(find(&whole.as_slice()).is_ok());
            let claims = Claims { bytes: &whole, size: claimed };
            proptest::prop_assert!(find(&claims).is_ok());
        }
    }

    struct Claims<'a> {
        bytes: &'a [u8],
        size: u64,
    }

    impl Source for Claims<'_> {
        fn size(&self) -> u64 {
            self.size
        }
        fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
            self.bytes.read_at(at, into)
        }
    }
}
