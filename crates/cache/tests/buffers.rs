//! Memory that the successive histories of a test thread share.

use plumb_block::{BufferMut, Bytes, Pool, PoolShape};
use plumb_cache::{BUFFER, BUFFERS_MIN};

/// The pools of a thread.
#[derive(Clone)]
pub(crate) struct Buffers {
    /// Buffers for requests of the client.
    small: Pool,
    large: Pool,
    /// Buffers for caches, of which a few may be open at a time.
    caches: [Pool; 3],
}

thread_local! {
    static BUFFERS: Buffers = Buffers::new();
}

impl Buffers {
    fn new() -> Self {
        let pool = |buffer, count| {
            let shape = PoolShape { buffer, count, alignment: Bytes(4096) };
            Pool::new(shape).expect("memory for the tests")
        };
        Self {
            small: pool(Bytes(65536), 64),
            large: pool(Bytes::mib(1), 4),
            caches: [0; 3].map(|_| pool(BUFFER, BUFFERS_MIN)),
        }
    }

    /// Returns the buffers of this thread.
    pub(crate) fn of_this_thread() -> Self {
        BUFFERS.with(Self::clone)
    }

    /// Returns the memory for a cache that is opened now.
    pub(crate) fn for_cache(&self) -> Pool {
        let free = self.caches.iter().find(|pool| pool.available() == BUFFERS_MIN as usize);
        free.expect("a cache that is gone gives its memory back").clone()
    }

    /// Returns a buffer for a request; none if too many are in flight.
    pub(crate) fn take(&self, length: u64) -> Option<BufferMut> {
        let pool = if length <= self.small.buffer_size().0 { &self.small } else { &self.large };
        pool.take(Bytes(length))
    }
}
