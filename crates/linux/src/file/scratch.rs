//! Buffers for requests that have none: reads that discard the data, and patterns that are expanded.
//!
//! A buffer comes from the queue's pool, so it is registered with the kernel, and stays with its slot for
//! reuse. Slots are reused in last-in, first-out order, which keeps the same few buffers in the processor's
//! cache. If the pool is empty or its buffers are too small, separate memory is allocated; this is rare, and
//! slow only the first time.

use plumb_block::{BufferMut, Bytes, Errno, Op, Payload, Pool, PoolShape};

/// Alignment of memory that does not come from the pool: suits any device with blocks of at most 4 KiB.
const ALIGNMENT: Bytes = Bytes::kib(4);

/// Buffer of one slot of a queue, once it needed one.
#[derive(Default)]
pub(crate) struct Scratch(Option<BufferMut>);

impl Scratch {
    /// Provides memory from `pool` for a request of `length` bytes that has no buffer but moves data, and
    /// expands its pattern.
    ///
    /// # Errors
    /// ENOMEM.
    #[inline]
    pub(crate) fn lend(
        &mut self,
        op: Op,
        payload: &Payload,
        length: Bytes,
        block: Bytes,
        pool: &Pool,
    ) -> Result<(), Errno> {
        match (op, payload) {
            (Op::Read, Payload::None) => self.at_least(length, pool).map(drop),
            (Op::Write { .. }, Payload::Pattern(pattern)) => {
                let bytes = self.at_least(length, pool)?;
                pattern.fill(block.0 as usize, &mut bytes[..length.0 as usize]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns at least `length` bytes; takes them from `pool` if the slot has none.
    #[inline]
    fn at_least(&mut self, length: Bytes, pool: &Pool) -> Result<&mut [u8], Errno> {
        if self.0.as_ref().is_none_or(|buffer| (buffer.len() as u64) < length.0) {
            self.0 = Some(allocate(length, pool).ok_or(Errno(libc::ENOMEM))?);
        }
        self.bytes().ok_or(Errno(libc::ENOMEM))
    }

    /// Returns the slot's memory, if any.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Option<&mut [u8]> {
        self.0.as_deref_mut()
    }
}

#[cold]
fn allocate(length: Bytes, pool: &Pool) -> Option<BufferMut> {
    let whole = pool.buffer_size().max(length);
    pool.take(whole).or_else(|| {
        let own = Pool::new(PoolShape { buffer: whole, count: 1, alignment: ALIGNMENT }).ok()?;
        own.take(whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pool_and_a_large_request_are_served_too() {
        let pool = Pool::new(PoolShape { buffer: Bytes(4096), count: 1, alignment: Bytes(4096) }).unwrap();
        let [mut first, mut second, mut large] = [Scratch::default(), Scratch::default(), Scratch::default()];
        assert_eq!(first.at_least(Bytes(512), &pool).unwrap().len(), 4096, "a whole buffer of the pool");
        assert_eq!(pool.available(), 0);
        assert_eq!(second.at_least(Bytes(4096), &pool).unwrap().len(), 4096);
        assert!(large.at_least(Bytes::mib(1), &pool).unwrap().len() as u64 >= Bytes::MIB);
        let address = first.at_least(Bytes(4096), &pool).unwrap().as_ptr();
        assert_eq!(first.bytes().unwrap().as_ptr(), address, "what was lent is used again");
        drop(first);
        assert_eq!(pool.available(), 1);
    }
}
