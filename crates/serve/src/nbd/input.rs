//! Receive buffer for unprocessed data.

/// A buffer that is filled at the end and consumed at the front. Memory is touched only when data is received
/// into it, so an idle connection costs almost nothing.
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], start: 0, end: 0 }
    }

    /// Returns the available bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes `count` bytes from the front, at most all.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count.min(self.end - self.start);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Returns the space for the next data, at most `count` bytes. Moves the contents to the front when there
    /// is little space left.
    pub(super) fn space(&mut self, count: usize) -> &mut [u8] {
        if self.end == self.bytes.len() || self.bytes.len() - self.end < self.start {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let end = self.bytes.len().min(self.end.saturating_add(count));
        &mut self.bytes[self.end..end]
    }

    /// Records that `count` bytes were put into the space.
    pub(super) fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Appends bytes, which must fit.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.space(bytes.len()).copy_from_slice(bytes);
        self.received(bytes.len());
    }
}
