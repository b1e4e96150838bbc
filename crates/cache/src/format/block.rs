//! A block of 4096 bytes with a magic number at its start and a checksum at its end, written and read field
//! by field.

/// Length of a block in bytes.
pub(crate) const BLOCK: usize = 4096;
const CRC_AT: usize = BLOCK - 4;

/// Writer of fields into a block.
pub(crate) struct Put<'a> {
    into: &'a mut [u8],
    at: usize,
}

impl<'a> Put<'a> {
    /// Starts a block in `into`, which must have the length of one.
    pub(crate) fn new(into: &'a mut [u8], magic: [u8; 8]) -> Self {
        into.fill(0);
        let mut put = Self { into, at: 0 };
        put.bytes(&magic);
        put
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.into[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Ends the block with its checksum and returns the checksum.
    pub(crate) fn seal(self) -> u32 {
        let crc = crc32c::crc32c(&self.into[..CRC_AT]);
        self.into[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        crc
    }
}

/// Returns true if a log block has this checksum, computed over the whole block, or for a header block stored
/// at its end.
pub(crate) fn has_checksum(block: &[u8], checksum: u32) -> bool {
    let is_header =
        |(fields, crc): (&[u8], &[u8])| *crc == checksum.to_le_bytes() && crc32c::crc32c(fields) == checksum;
    crc32c::crc32c(block) == checksum || block.split_at_checked(CRC_AT).is_some_and(is_header)
}

/// Reader of fields from a block. Every read returns `None` past the end.
pub(crate) struct Take<'a> {
    from: &'a [u8],
    pub(crate) crc: u32,
}

impl<'a> Take<'a> {
    /// Opens a block with this magic number; `None` if its checksum is wrong.
    pub(crate) fn new(block: &'a [u8], magic: [u8; 8]) -> Option<Self> {
        let (fields, crc) = block.split_at_checked(CRC_AT)?;
        let crc = u32::from_le_bytes(crc.try_into().ok()?);
        let (found, from) = fields.split_first_chunk::<8>()?;
        (*found == magic && crc32c::crc32c(fields) == crc).then_some(Self { from, crc })
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.from.split_first_chunk::<N>()?;
        self.from = rest;
        Some(*found)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
