//! What a loop device is set up over: `struct loop_info64`, linux/loop.h. In the byte order of the machine.

use crate::tree::DeviceNumber;

/// The state of a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopStatus {
    /// The device that the backing file's file system is on: `lo_device`, bytes 0-7.
    pub device: DeviceNumber,
    /// The backing file's inode: `lo_inode`, bytes 8-15.
    pub inode: u64,
}

/// Reads the structure; `None` if it is shorter than its 232 bytes.
pub fn parse(bytes: &[u8]) -> Option<LoopStatus> {
    let info = bytes.get(..232)?;
    let number = |at: usize| info[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
    Some(LoopStatus { device: DeviceNumber::from_huge(number(0)), inode: number(8) })
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
        assert_eq!(status.inode, 7);
        assert_eq!(parse(&info[..231]), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            parse(&bytes);
        }
    }
}
