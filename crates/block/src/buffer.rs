//! Aligned, reference-counted buffers from a pool.
//!
//! A pool is one allocation, so a device can register it with the kernel once. A buffer starts as a
//! [`BufferMut`] with one owner who may write it. Frozen, it is a [`Buffer`] that any number of owners may
//! read: two mirror legs and a recorder share one. The last owner returns the memory to the pool. The pool's
//! memory lives as long as any of its buffers, so dropping the pool early is harmless.
//!
//! Invariant: a slot is on the free list, owned by exactly one `BufferMut`, or shared by `owners` >= 1
//! `Buffer`s.

#![expect(unsafe_code, reason = "buffers hand out disjoint parts of one allocation")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Errno, Error, ErrorKind, Result};
use crate::units::Bytes;

/// The shape of a pool: `count` buffers of `buffer` bytes, each at a multiple of `alignment`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolShape {
    /// Size of one buffer, rounded up to `alignment`.
    pub buffer: Bytes,
    /// Number of buffers.
    pub count: u32,
    /// Alignment of every buffer: a power of two, at least the device's DMA alignment.
    pub alignment: Bytes,
}

/// A pool of buffers of equal size. A clone is another handle to the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Slab>);

struct Slab {
    /// First address in `memory` that has the alignment of the shape; the slots start here.
    base: NonNull<u8>,
    total: usize,
    memory: NonNull<u8>,
    layout: Layout,
    stride: usize,
    owners: Box<[AtomicU32]>,
    free: Mutex<Vec<u32>>,
}

// SAFETY: `base` and `memory` point to memory that the slab alone owns; access to each slot is governed by
// the ownership invariant of the module, the free list by its mutex.
unsafe impl Send for Slab {}
// SAFETY: shared access hands out disjoint slots only, and the free list is behind its mutex.
unsafe impl Sync for Slab {}

impl Pool {
    /// Allocates a pool filled with zeroes.
    ///
    /// # Errors
    /// If the shape is empty or too large for memory, or its alignment is not a power of two.
    pub fn new(shape: PoolShape) -> Result<Self> {
        let invalid = |what: &str| {
            Error::new(ErrorKind::Invalid, "allocate", "a buffer pool").because(format!("{what}: {shape:?}"))
        };
        let alignment = usize::try_from(shape.alignment.0).map_err(|_| invalid("alignment"))?;
        let stride = usize::try_from(shape.buffer.0)
            .ok()
            .and_then(|bytes| bytes.checked_next_multiple_of(alignment.max(1)))
            .filter(|stride| *stride > 0)
            .ok_or_else(|| invalid("buffer size"))?;
        let total = stride
            .checked_mul(shape.count as usize)
            .filter(|total| *total > 0)
            .ok_or_else(|| invalid("total size"))?;
        // `alloc_zeroed` itself clears memory of a large alignment, which makes all of it resident. Memory
        // that is aligned here instead becomes resident only when a buffer is used.
        let layout = Layout::from_size_align(total, alignment)
            .and_then(|aligned| Layout::array::<u8>(total + aligned.align() - 1))
            .map_err(|_| invalid("alignment"))?;
        // SAFETY: the layout has a non-zero size.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(|| {
            Error::new(ErrorKind::Os(Errno(12)), "allocate", format!("{total} bytes of buffers"))
        })?;
        // SAFETY: the offset is below `alignment`, and the layout has that many spare bytes.
        let base = unsafe { memory.add(memory.align_offset(alignment)) };
        let owners = (0..shape.count).map(|_| AtomicU32::new(0)).collect();
        let free = Mutex::new((0..shape.count).rev().collect());
        Ok(Self(Arc::new(Slab { base, total, memory, layout, stride, owners, free })))
    }

    /// Returns a buffer of `length` bytes, or `None` if all are in use or none is that large. The contents
    /// are whatever the last owner left.
    pub fn take(&self, length: Bytes) -> Option<BufferMut> {
        let length = usize::try_from(length.0).ok().filter(|length| *length <= self.0.stride)?;
        let slot = self.0.free_list().pop()?;
        Some(BufferMut { slab: Arc::clone(&self.0), slot, length })
    }

    /// Returns the size of each buffer.
    pub fn buffer_size(&self) -> Bytes {
        Bytes(self.0.stride as u64)
    }

    /// Returns the number of free buffers.
    pub fn available(&self) -> usize {
        self.0.free_list().len()
    }

    /// Returns the start and the length of the pool's memory, for a device to register. The memory stays
    /// valid as long as the pool or any of its buffers lives.
    pub fn region(&self) -> (NonNull<u8>, usize) {
        (self.0.base, self.0.total)
    }

    /// Returns true if both handles refer to the same pool.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} x {} B, {} free)", self.0.owners.len(), self.0.stride, self.available())
    }
}

impl Slab {
    fn free_list(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        // A panic elsewhere cannot leave the list half-changed: it is only pushed to and popped from.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address_of(&self, slot: u32) -> NonNull<u8> {
        // SAFETY: slot < count, so the offset stays within the allocation.
        unsafe { self.base.add(slot as usize * self.stride) }
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and the last buffer is gone, since each holds the slab.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

/// A buffer with one owner, who may write it.
pub struct BufferMut {
    slab: Arc<Slab>,
    slot: u32,
    length: usize,
}

impl BufferMut {
    /// Ends writing, so that the bytes can be shared.
    pub fn freeze(self) -> Buffer {
        let this = std::mem::ManuallyDrop::new(self);
        this.slab.owners[this.slot as usize].store(1, Ordering::Relaxed);
        // SAFETY: `this` is never dropped nor used again, so the handle to the slab moves out exactly once.
        let slab = unsafe { std::ptr::read(&raw const this.slab) };
        Buffer { slab, slot: this.slot, range: 0..this.length }
    }

    /// Returns the pool that the buffer came from.
    pub fn pool(&self) -> Pool {
        Pool(Arc::clone(&self.slab))
    }
}

impl Deref for BufferMut {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the slot is ours alone, within the allocation, and initialised since allocation.
        unsafe { std::slice::from_raw_parts(self.slab.address_of(self.slot).as_ptr(), self.length) }
    }
}

impl DerefMut for BufferMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the slot belongs to this buffer alone, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.slab.address_of(self.slot).as_ptr(), self.length) }
    }
}

impl Drop for BufferMut {
    fn drop(&mut self) {
        self.slab.free_list().push(self.slot);
    }
}

impl fmt::Debug for BufferMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferMut(#{}, {} B)", self.slot, self.length)
    }
}

/// A buffer that any number of owners may read.
pub struct Buffer {
    slab: Arc<Slab>,
    slot: u32,
    range: Range<usize>,
}

impl Buffer {
    /// Returns a part of this buffer that shares its memory. `range` is relative to this buffer.
    ///
    /// # Panics
    /// If the range does not lie within the buffer, which is a bug of the caller.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.range.len(), "{range:?} of {self:?}");
        let mut part = self.clone();
        part.range = self.range.start + range.start..self.range.start + range.end;
        part
    }

    /// Returns the pool that the buffer came from.
    pub fn pool(&self) -> Pool {
        Pool(Arc::clone(&self.slab))
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let start = self.slab.address_of(self.slot);
        // SAFETY: the range lies within the slot, and nobody writes a slot that has `Buffer` owners.
        unsafe { std::slice::from_raw_parts(start.as_ptr().add(self.range.start), self.range.len()) }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let owners = self.slab.owners[self.slot as usize].fetch_add(1, Ordering::Relaxed);
        // Arc has the same check: a count this large can only come from leaked handles, and it must not wrap.
        if owners > u32::MAX / 2 {
            std::process::abort();
        }
        Self { slab: Arc::clone(&self.slab), slot: self.slot, range: self.range.clone() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Arc uses the same ordering: the release pairs with the last owner's acquire fence, so all reads are
        // over before the slot can be written again.
        if self.slab.owners[self.slot as usize].fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            self.slab.free_list().push(self.slot);
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer(#{}, bytes {:?})", self.slot, self.range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(count: u32) -> Pool {
        Pool::new(PoolShape { buffer: Bytes(4096), count, alignment: Bytes(4096) }).unwrap()
    }

    #[test]
    fn buffers_are_aligned_disjoint_and_come_back() {
        let pool = pool(3);
        let mut held: Vec<BufferMut> = (0..3).map(|_| pool.take(Bytes(4096)).unwrap()).collect();
        assert!(pool.take(Bytes(512)).is_none(), "a fourth buffer of three");
        for (index, buffer) in held.iter_mut().enumerate() {
            assert!((buffer.as_ptr() as usize).is_multiple_of(4096));
            buffer.fill(index as u8);
        }
        for (index, buffer) in held.iter().enumerate() {
            assert!(buffer.iter().all(|byte| *byte == index as u8), "buffer {index} was overwritten");
        }
        drop(held);
        assert_eq!(pool.available(), 3);
    }

    #[test]
    fn the_last_of_several_owners_gives_the_memory_back() {
        let pool = pool(1);
        let mut buffer = pool.take(Bytes(1024)).unwrap();
        buffer[600] = 9;
        let frozen = buffer.freeze();
        let part = frozen.slice(512..1024);
        drop(frozen);
        assert_eq!(pool.available(), 0, "a part still owns it");
        assert_eq!((part.len(), part[88]), (512, 9));
        drop(part);
        assert_eq!(pool.available(), 1);
    }

    #[test]
    fn buffers_outlive_the_pool_and_cross_threads() {
        let buffer = {
            let mut buffer = pool(2).take(Bytes(4096)).unwrap();
            buffer.fill(7);
            buffer.freeze()
        };
        let owners: Vec<_> = (0..4)
            .map(|_| {
                let mine = buffer.clone();
                std::thread::spawn(move || mine.iter().all(|byte| *byte == 7))
            })
            .collect();
        drop(buffer);
        assert!(owners.into_iter().all(|owner| owner.join().unwrap()));
    }

    #[test]
    fn nonsense_shapes_are_refused() {
        for (buffer, count, alignment) in
            [(0, 1, 512), (512, 0, 512), (512, 1, 3), (512, 1, 0), (u64::MAX, 2, 4096)]
        {
            let shape = PoolShape { buffer: Bytes(buffer), count, alignment: Bytes(alignment) };
            assert!(Pool::new(shape).is_err(), "{shape:?}");
        }
    }
}
