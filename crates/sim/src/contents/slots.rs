//! Pages of real bytes, by number, in large allocations.

/// Pages in one allocation: a mebibyte or more, of which the system gives what is touched.
const PER_CHUNK: u32 = 256;

/// Pages of bytes. Numbers start at 1; 0 says "none".
#[derive(Debug)]
pub(super) struct Slots {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
    page_bytes: usize,
}

impl Slots {
    pub(super) const fn new(page_bytes: usize) -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), page_bytes }
    }

    /// A page whose bytes are whatever was there.
    pub(super) fn take(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        let first = self.chunks.len() as u32 * PER_CHUNK + 1;
        self.chunks.push(vec![0; self.page_bytes * PER_CHUNK as usize].into_boxed_slice());
        self.free.extend((first + 1..first + PER_CHUNK).rev());
        first
    }

    /// Gives a page back; 0 is none.
    pub(super) fn give_back(&mut self, slot: u32) {
        if slot != 0 {
            self.free.push(slot);
        }
    }

    pub(super) fn bytes(&self, slot: u32) -> &[u8] {
        let (chunk, at) = self.place(slot);
        &self.chunks[chunk][at..at + self.page_bytes]
    }

    pub(super) fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        let (chunk, at) = self.place(slot);
        &mut self.chunks[chunk][at..at + self.page_bytes]
    }

    /// Copies a part of one page to the same part of another.
    pub(super) fn copy(&mut self, from: u32, to: u32, part: std::ops::Range<usize>) {
        let (from_chunk, from_at) = self.place(from);
        let (to_chunk, to_at) = self.place(to);
        let length = part.len();
        let (source, target) = (from_at + part.start, to_at + part.start);
        if from_chunk == to_chunk {
            self.chunks[from_chunk].copy_within(source..source + length, target);
        } else if let Ok([from, to]) = self.chunks.get_disjoint_mut([from_chunk, to_chunk]) {
            to[target..target + length].copy_from_slice(&from[source..source + length]);
        }
    }

    /// How many pages are in use.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.chunks.len() * PER_CHUNK as usize - self.free.len()
    }

    const fn place(&self, slot: u32) -> (usize, usize) {
        let number = slot - 1;
        ((number / PER_CHUNK) as usize, (number % PER_CHUNK) as usize * self.page_bytes)
    }
}
