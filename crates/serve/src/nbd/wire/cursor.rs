//! [`Cursor`]: reader of integers and strings from untrusted bytes.

use super::error::WireError;

/// Unread rest of a message called `what`.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, what }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let short = WireError::Short { what: self.what, length: self.rest.len() };
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let short = WireError::Short { what: self.what, length: self.rest.len() };
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(short)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns a string of `length` bytes; the protocol says UTF-8 without NUL.
    pub(super) fn string(&mut self, length: usize) -> Result<String, WireError> {
        let what = self.what;
        text(what, self.bytes(length)?)
    }

    /// Returns a string preceded by its length.
    pub(super) fn counted_string(&mut self) -> Result<String, WireError> {
        let length = self.u32()? as usize;
        self.string(length)
    }

    pub(super) fn magic(&mut self, expected: u64) -> Result<(), WireError> {
        let found = self.u64()?;
        if found == expected { Ok(()) } else { Err(WireError::Magic { what: self.what, expected, found }) }
    }

    pub(super) fn magic32(&mut self, expected: u32) -> Result<(), WireError> {
        let found = u64::from(self.u32()?);
        let expected = u64::from(expected);
        if found == expected { Ok(()) } else { Err(WireError::Magic { what: self.what, expected, found }) }
    }

    pub(super) const fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that the message is completely read.
    pub(super) fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError::Long { what: self.what, excess: self.rest.len() })
        }
    }
}

/// Returns `bytes` as a string; the protocol demands UTF-8 without NUL.
pub(super) fn text(what: &'static str, bytes: &[u8]) -> Result<String, WireError> {
    if bytes.len() > super::STRING_MAX_BYTES {
        return Err(WireError::String { what });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(WireError::String { what }),
    }
}
