//! File or device that a loop device is set up over: `struct loop_info64`, linux/loop.h. In the byte order of
//! the machine.

use crate::tree::DeviceNumber;

/// The state of a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopStatus {
    /// The device that the backing file's file system is on: `lo_device`, bytes 0-7.
    pub device: DeviceNumber,
    /// The backing file's inode: `lo_inode`, bytes 8-15.
    pub inode: u64,
    /// The device that the backing file is a node of, if it is one: `lo_rdevice`, bytes 16-23. Older kernels
    /// repeat `lo_device` there for a regular file.
    pub node: Option<DeviceNumber>,
    /// Where in the backing file the loop device begins, in bytes: `lo_offset`, bytes 24-31.
    pub offset: u64,
    /// The length of the loop device in bytes: `lo_sizelimit`, bytes 32-39. 0 is up to the end of the file.
    pub size_limit: u64,
}

/// Reads the structure; `None` if it is shorter than its 232 bytes.
pub fn parse(bytes: &[u8]) -> Option<LoopStatus> {
    let info = bytes.get(..232)?;
    let number = |at: usize| info[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
    let node = Some(number(16)).filter(|node| *node != 0 && *node != number(0));
    Some(LoopStatus {
        device: DeviceNumber::from_huge(number(0)),
        inode: number(8),
        node: node.map(DeviceNumber::from_huge),
        offset: number(24),
        size_limit: number(32),
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
        assert_eq!((status.inode, status.node, status.offset, status.size_limit), (7, None, 0, 0));
        info[16..24].copy_from_slice(&0x700_u64.to_ne_bytes());
        info[24..32].copy_from_slice(&512_u64.to_ne_bytes());
        info[32..40].copy_from_slice(&4096_u64.to_ne_bytes());
        let status = parse(&info).unwrap();
        assert_eq!(status.node, Some(DeviceNumber { major: 7, minor: 0 }));
        assert_eq!((status.offset, status.size_limit), (512, 4096));
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
