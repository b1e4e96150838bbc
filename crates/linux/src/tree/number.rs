//! Device numbers: the kernel's major and minor.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Tree;

/// Number of bits of the minor number, below the major number, in the kernel's encoding.
const MINOR_BITS: u32 = 20;

/// A device number. Major 0 is anonymous: a file system without a single block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Number of the driver.
    pub major: u32,
    /// Number among the driver's devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// Returns true if the number does not identify a block device.
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }

    /// Decodes the encoding of stat(2).
    pub fn from_stat(encoded: u64) -> Self {
        Self { major: rustix::fs::major(encoded), minor: rustix::fs::minor(encoded) }
    }

    /// Returns the encoding of stat(2).
    pub fn to_stat(self) -> u64 {
        rustix::fs::makedev(self.major, self.minor)
    }

    /// Decodes the encoding of events and the kernel: `MKDEV` of include/linux/kdev_t.h.
    pub const fn from_kernel(encoded: u32) -> Self {
        Self { major: encoded >> MINOR_BITS, minor: encoded & ((1 << MINOR_BITS) - 1) }
    }

    /// Returns the encoding of events and the kernel.
    pub const fn to_kernel(self) -> u32 {
        self.major << MINOR_BITS | self.minor
    }

    /// Returns the kernel's name of the block device.
    pub fn name(self, tree: &dyn Tree) -> Option<String> {
        tree.link(&format!("/sys/dev/block/{self}")).ok()?.rsplit('/').next().map(str::to_owned)
    }

    /// Returns the kernel's 64-bit encoding in ioctl structures: `huge_encode_dev`, include/linux/kdev_t.h.
    pub(crate) fn to_huge(self) -> u64 {
        let (major, minor) = (u64::from(self.major), u64::from(self.minor));
        (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12)
    }

    /// Decodes the encoding of [`DeviceNumber::to_huge`]: `huge_decode_dev`.
    pub(crate) fn from_huge(encoded: u64) -> Self {
        let major = ((encoded >> 8) & 0xfff) as u32;
        let minor = ((encoded & 0xff) | ((encoded >> 12) & 0xffff_ff00)) as u32;
        Self { major, minor }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Error for text that is not a device number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a device number: expected MAJOR:MINOR, such as 8:0")]
pub struct ParseNumberError {
    /// Text that could not be parsed.
    pub text: String,
}

impl FromStr for DeviceNumber {
    type Err = ParseNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseNumberError { text: text.to_owned() };
        let (major, minor) = text.trim().split_once(':').ok_or_else(fail)?;
        Ok(Self { major: major.parse().map_err(|_| fail())?, minor: minor.parse().map_err(|_| fail())? })
    }
}

impl Serialize for DeviceNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_and_print_as_the_kernel_writes_them() {
        let number: DeviceNumber = "254:16\n".parse().unwrap();
        assert_eq!(number, DeviceNumber { major: 254, minor: 16 });
        assert_eq!(number.to_string(), "254:16");
        assert!("8".parse::<DeviceNumber>().is_err());
        assert!("8:x".parse::<DeviceNumber>().is_err());
    }

    proptest::proptest! {
        #[test]
        fn each_encoding_is_reversible(major in 0..0x1000_u32, minor in 0..0x10_0000_u32) {
            let number = DeviceNumber { major, minor };
            proptest::prop_assert_eq!(DeviceNumber::from_huge(number.to_huge()), number);
            proptest::prop_assert_eq!(DeviceNumber::from_stat(number.to_stat()), number);
            proptest::prop_assert_eq!(DeviceNumber::from_kernel(number.to_kernel()), number);
        }
    }
}
