//! What a loop device is set up over: `struct loop_info64`, linux/loop.h. In the byte order of the machine.

use crate::tree::DeviceNumber;

/// The state of a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopStatus {
    /// The device that the backing file's file system is on: `lo_device`, bytes 0-7.
    pub device: DeviceNumber,
    /// The backing file's inode: `lo_inode`, bytes 8-15.
    pub inode: u64,
    /// The first byte of the file that is used: `lo_offset`, bytes 24-31.
    pub offset: u64,
    /// LO_FLAGS_DIRECT_IO (16) of `lo_flags`, bytes 52-55: the page cache of the backing file is not used.
    pub direct_io: bool,
    /// LO_FLAGS_READ_ONLY (1).
    pub read_only: bool,
    /// The backing file's name, cut at 63 bytes: `lo_file_name`, bytes 56-119.
    pub file: String,
}

/// Reads the structure; `None` if it is shorter than its 232 bytes.
pub fn parse(bytes: &[u8]) -> Option<LoopStatus> {
    let info = bytes.get(..232)?;
    let number = |at: usize| info[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
    let flags = info[52..56].try_into().map_or(0, u32::from_ne_bytes);
    let name = info[56..120].split(|byte| *byte == 0).next().unwrap_or_default();
    Some(LoopStatus {
        device: DeviceNumber::from_huge(number(0)),
        inode: number(8),
        offset: number(24),
        direct_io: flags & 16 != 0,
        read_only: flags & 1 != 0,
        file: String::from_utf8_lossy(name).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_header_says() {
        let mut info = vec![0_u8; 232];
        info[..8].copy_from_slice(&0xfe00_u64.to_ne_bytes());
        info[52..56].copy_from_slice(&17_u32.to_ne_bytes());
        info[56..62].copy_from_slice(b"/a.img");
        let status = parse(&info).unwrap();
        assert_eq!(status.device, DeviceNumber { major: 254, minor: 0 });
        assert!(status.direct_io && status.read_only);
        assert_eq!(status.file, "/a.img");
        assert_eq!(parse(&info[..231]), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            parse(&bytes);
        }
    }
}
