//! Messages to the driver about a device, and its descriptions of requests: structures of
//! include/uapi/linux/ublk_cmd.h in native byte order.
//!
//! ```text
//! struct ublksrv_ctrl_dev_info, 64   0 queues u16 | 2 depth u16 | 4 state u16 | 8 request_max u32 | 12 number u32
//!                                    16 pid i32 | 24 flags u64 | 32 the server's own u64
//! struct ublk_params                 0 len u32 | 4 types u32 | 8 basic, 32 | 40 discard, 20
//!   basic    0 attrs u32 | 4 logical, physical, io_opt, io_min as shifts u8 | 8 max_sectors u32 | 12 chunk_sectors u32
//!            16 dev_sectors u64 | 24 virt_boundary_mask u64
//!   discard  0 alignment u32 | 4 granularity u32 | 8 max_discard u32 | 12 max_write_zeroes u32 | 16 segments u16
//! struct ublksrv_io_desc, 24         0 operation u8, flags above it u32 | 4 sectors u32 | 8 start sector u64 | 16 address u64
//! ```

pub(super) const INFO_BYTES: usize = 64;
/// Length without the part after the discards, which is read-only or for unsupported features (devt, zones,
/// DMA, segments).
pub(super) const PARAMETERS_BYTES: usize = 60;

/// `UBLK_F_USER_RECOVERY`: the device outlives its server, and requests wait for the next one.
pub(super) const USER_RECOVERY: u64 = 1 << 3;
/// `UBLK_F_USER_RECOVERY_REISSUE`: unanswered requests are sent again.
pub(super) const REISSUE: u64 = 1 << 4;
/// `UBLK_F_UPDATE_SIZE`: the block device can be resized.
pub(super) const UPDATE_SIZE: u64 = 1 << 10;

/// `UBLK_S_DEV_LIVE`.
pub(super) const LIVE: u16 = 1;
/// `UBLK_S_DEV_QUIESCED`.
pub(super) const QUIESCED: u16 = 2;

/// `UBLK_ATTR_ROTATIONAL`.
pub(super) const ROTATIONAL: u32 = 1 << 1;
/// `UBLK_ATTR_VOLATILE_CACHE`.
pub(super) const VOLATILE_CACHE: u32 = 1 << 2;
/// `UBLK_ATTR_FUA`.
pub(super) const FUA: u32 = 1 << 3;

const BASIC: u32 = 1;
const DISCARD: u32 = 1 << 1;

/// `UBLK_IO_F_FUA`, in the flags of a request.
const REQUEST_FUA: u32 = 1 << 13;
/// `UBLK_IO_F_NOUNMAP`.
const REQUEST_NOUNMAP: u32 = 1 << 15;

/// The kernel's unit of sizes and positions, independent of the logical block.
pub(super) const SECTOR: u64 = 512;

/// Declares a structure of the driver, with the offsets of its fields, and its encoding.
macro_rules! structure {
    ($(#[$about:meta])* $name:ident, $bytes:ident: $($(#[$of_field:meta])* $field:ident $kind:ident @ $at:literal,)+) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub(super) struct $name {
            $($(#[$of_field])* pub(super) $field: $kind,)+
        }

        impl $name {
            fn fields(&self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                $(put(&mut bytes, $at, self.$field.to_ne_bytes());)+
                bytes
            }

            pub(super) fn parse(bytes: &[u8; $bytes]) -> Self {
                Self { $($field: <$kind>::from_ne_bytes(bytes_at(bytes, $at)),)+ }
            }
        }
    };
}

structure! {
    /// The driver's information about a device, except its parameters.
    Info, INFO_BYTES:
    queues u16 @ 0,
    depth u16 @ 2,
    state u16 @ 4,
    request_max u32 @ 8,
    number u32 @ 12,
    pid i32 @ 16,
    flags u64 @ 24,
    /// `ublksrv_flags`: stored by the driver but not interpreted.
    mark u64 @ 32,
}

structure! {
    /// Parameters of the block device. Sizes are in sectors of 512 bytes, block sizes are powers of two.
    Parameters, PARAMETERS_BYTES:
    attributes u32 @ 8,
    logical_shift u8 @ 12,
    physical_shift u8 @ 13,
    io_opt_shift u8 @ 14,
    io_min_shift u8 @ 15,
    request_sectors_max u32 @ 16,
    sectors u64 @ 24,
    discard_granularity u32 @ 44,
    discard_sectors_max u32 @ 48,
    write_zeroes_sectors_max u32 @ 52,
}

impl Info {
    pub(super) fn bytes(&self) -> [u8; INFO_BYTES] {
        self.fields()
    }
}

impl Parameters {
    pub(super) fn bytes(&self) -> [u8; PARAMETERS_BYTES] {
        let mut bytes = self.fields();
        put(&mut bytes, 0, (PARAMETERS_BYTES as u32).to_ne_bytes());
        put(&mut bytes, 4, (BASIC | DISCARD).to_ne_bytes());
        // The driver accepts zero segments or one.
        put(&mut bytes, 56, u16::from(self.discard_sectors_max > 0).to_ne_bytes());
        bytes
    }

    /// Returns the buffer for querying the parameters: the driver fills as many bytes as its length field
    /// states.
    pub(super) fn question() -> [u8; PARAMETERS_BYTES] {
        let mut bytes = [0; PARAMETERS_BYTES];
        put(&mut bytes, 0, (PARAMETERS_BYTES as u32).to_ne_bytes());
        bytes
    }
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Flush,
    Discard,
    WriteZeroes,
    /// Zones, and operations of later kernels.
    Other,
}

/// A request described by the kernel; not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) kind: Kind,
    pub(super) fua: bool,
    /// True if zeroed blocks must stay allocated.
    pub(super) no_unmap: bool,
    pub(super) sectors: u32,
    pub(super) start: u64,
}

impl Descriptor {
    pub(super) fn parse(bytes: &[u8; plumb_linux::ublk::DESCRIPTOR_BYTES]) -> Self {
        let word = u32::from_ne_bytes(bytes_at(bytes, 0));
        let kind = match word & 0xFF {
            0 => Kind::Read,
            1 => Kind::Write,
            2 => Kind::Flush,
            3 => Kind::Discard,
            5 => Kind::WriteZeroes,
            _ => Kind::Other,
        };
        Self {
            kind,
            fua: word & REQUEST_FUA != 0,
            no_unmap: word & REQUEST_NOUNMAP != 0,
            sectors: u32::from_ne_bytes(bytes_at(bytes, 4)),
            start: u64::from_ne_bytes(bytes_at(bytes, 8)),
        }
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&field);
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects the layout of the header's structures in a C program on a little-endian machine.
    #[cfg(target_endian = "little")]
    #[test]
    fn structures_lie_as_in_the_header() {
        let info = Info {
            queues: 2,
            depth: 0x40,
            state: 1,
            request_max: 0x8_0000,
            number: u32::MAX,
            pid: 4242,
            flags: USER_RECOVERY | REISSUE,
            mark: 0x1122_3344_5566_7788,
        };
        let golden = "0200400001000000000008 00ffffffff92100000 00000000 1800000000000000 8877665544332211";
        assert_eq!(hex(&info.bytes()[..40]), golden.replace(' ', ""));
        assert!(info.bytes()[40..].iter().all(|byte| *byte == 0));
        assert_eq!(Info::parse(&info.bytes()), info);

        let parameters = Parameters {
            attributes: VOLATILE_CACHE | FUA,
            logical_shift: 9,
            physical_shift: 12,
            io_opt_shift: 13,
            io_min_shift: 12,
            request_sectors_max: 1024,
            sectors: 0x2_0000_0000,
            discard_granularity: 4096,
            discard_sectors_max: 65536,
            write_zeroes_sectors_max: 131_072,
        };
        let golden = concat!(
            "3c000000",
            "03000000", // len, types
            "0c000000",
            "090c0d0c",
            "00040000",
            "00000000",
            "0000000002000000",
            "0000000000000000", // basic
            "00000000",
            "00100000",
            "00000100",
            "00000200",
            "0100",
            "0000", // discard
        );
        assert_eq!(hex(&parameters.bytes()), golden);
        assert_eq!(Parameters::parse(&parameters.bytes()), parameters);
    }

    #[test]
    fn a_device_without_discards_has_no_segments() {
        assert_eq!(Parameters::default().bytes()[56..58], [0, 0]);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_request_is_read_as_the_kernel_writes_it() {
        let mut bytes = [0; 24];
        // A write of 8 sectors at 0x123456789, META and FUA, and an address that is not used.
        bytes[..16].copy_from_slice(&[1, 0x28, 0, 0, 8, 0, 0, 0, 0x89, 0x67, 0x45, 0x23, 1, 0, 0, 0]);
        bytes[16..].fill(0xEE);
        let expected =
            Descriptor { kind: Kind::Write, fua: true, no_unmap: false, sectors: 8, start: 0x1_2345_6789 };
        assert_eq!(Descriptor::parse(&bytes), expected);
        bytes[..4].copy_from_slice(&[5, 0x80, 0, 0]);
        let zeroes = Descriptor::parse(&bytes);
        assert_eq!((zeroes.kind, zeroes.no_unmap, zeroes.fua), (Kind::WriteZeroes, true, false));
        for (operation, kind) in
            [(0, Kind::Read), (2, Kind::Flush), (3, Kind::Discard), (4, Kind::Other), (18, Kind::Other)]
        {
            bytes[0] = operation;
            assert_eq!(Descriptor::parse(&bytes).kind, kind);
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
