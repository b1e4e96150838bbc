//! File or device behind a loop device: `struct loop_info64`, linux/loop.h, in native byte order.

use crate::tree::DeviceNumber;

/// State of a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopStatus {
    /// Device of the backing file's file system: `lo_device`, bytes 0-7.
    pub device: DeviceNumber,
    /// Inode of the backing file: `lo_inode`, bytes 8-15.
    pub inode: u64,
    /// Device number if the backing file is a device node: `lo_rdevice`, bytes 16-23. Older kernels repeat
    /// `lo_device` there for a regular file.
    pub node: Option<DeviceNumber>,
    /// Start of the loop device in the backing file, in bytes: `lo_offset`, bytes 24-31.
    pub offset: u64,
}

/// Parses the structure; `None` if it is shorter than 232 bytes.
pub fn parse(bytes: &[u8]) -> Option<LoopStatus> {
    let info = bytes.get(..232)?;
    let number = |at: usize| info[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
    let node = Some(number(16)).filter(|node| *node != 0 && *node != number(0));
    Some(LoopStatus {
        device: DeviceNumber::from_huge(number(0)),
        inode: number(8),
        node: node.map(DeviceNumber::from_huge),
        offset: number(24),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_header_says() {
        let mut info = vec![0_u8; 232];
        info[..8].copy_from_slice(&0xfe00_u64.to_ne_bytes());
        info[8..16].copy_from_slice(&7_u64.to_ne_bytes());
        let status = parse(&info).unwrap();
        assert_eq!(status.device, DeviceNumber { major: 254, minor: 0 });
        assert_eq!((status.inode, status.node, status.offset), (7, None, 0));
        info[16..24].copy_from_slice(&0x700_u64.to_ne_bytes());
        info[24..32].copy_from_slice(&512_u64.to_ne_bytes());
        let status = parse(&info).unwrap();
        assert_eq!(status.node, Some(DeviceNumber { major: 7, minor: 0 }));
        assert_eq!(status.offset, 512);
        info[16..24].copy_from_slice(&0xfe00_u64.to_ne_bytes());
        assert_eq!(parse(&info).unwrap().node, None, "an older kernel, over a regular file");
        assert_eq!(parse(&info[..231]), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            parse(&bytes);
        }
    }
}
