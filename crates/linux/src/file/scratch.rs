//! Memory for requests that bring none: reads whose bytes nobody wants, and patterns that become bytes.
//!
//! It comes from the queue's pool, so that it is registered with the kernel, and stays where it was lent, to
//! be used again: slots are reused last used first, so the same few buffers stay in the processor's cache.
//! When the pool is empty, or its buffers are too small, memory of its own is allocated; that is rare, and
//! slower only the first time.

use plumb_block::{BufferMut, Bytes, Errno, Op, Payload, Pool, PoolShape};

/// The alignment of memory that does not come from the pool: what any device of 4 KiB blocks or smaller
/// accepts.
const ALIGNMENT: Bytes = Bytes::kib(4);

/// The memory lent to one slot of a queue, if any was yet.
#[derive(Default)]
pub(crate) struct Scratch(Option<BufferMut>);

impl Scratch {
    /// Lends memory from `pool` to a request of `length` bytes that brings none but moves bytes, and turns a
    /// pattern into them.
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

    /// At least `length` bytes, from `pool` if there are none yet.
    #[inline]
    fn at_least(&mut self, length: Bytes, pool: &Pool) -> Result<&mut [u8], Errno> {
        if self.0.as_ref().is_none_or(|buffer| (buffer.len() as u64) < length.0) {
            self.0 = Some(allocate(length, pool).ok_or(Errno(libc::ENOMEM))?);
        }
        self.bytes().ok_or(Errno(libc::ENOMEM))
    }

    /// Returns the memory that is lent, if there is any.
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
