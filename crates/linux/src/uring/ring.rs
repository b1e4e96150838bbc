//! A ring with as many features as the kernel supports, bound to the thread that first uses it.
//!
//! A ring with SINGLE_ISSUER belongs to one thread, but a queue is created on one thread and used on another.
//! The ring is therefore created disabled, and enabled by the thread that first polls. A queue that moves
//! later gets a new ring if nothing is in flight in the old one; the kernel reports this with EEXIST. The
//! ring of a shared target has no SINGLE_ISSUER: any thread may poll it.

#![expect(unsafe_code, reason = "the kernel gets the addresses of buffers")]

use std::cell::OnceCell;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use plumb_block::Pool;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::ReadWriteFlags;

use crate::file::Target;

/// Maximum size of one registered buffer.
const REGISTERED_MAX: usize = 1 << 30;

type Uring = IoUring<squeue::Entry, cqueue::Entry>;
type Builder = io_uring::Builder<squeue::Entry, cqueue::Entry>;

/// Ways to set up a ring, best first, with the kernel version that introduced the newest feature of each. The
/// first two bind it to one thread.
///
/// The first two are also used where the kernel cannot try a request without waiting (zram, tmpfs): worker
/// threads of the ring then execute it, and each completion wakes a thread that waits with DEFER_TASKRUN.
/// Without DEFER_TASKRUN workers post completions themselves, but 4 KiB reads of zram were a third slower
/// (410,000 against 600,000 IOPS, 32 in flight, 16 waited for).
///
/// The workers' processors need not be set (IORING_REGISTER_IOWQ_AFF): they are threads of the ring's user
/// and inherit its affinity. With a pinned user, all samples of the workers were on its processor (Linux
/// 6.18, tmpfs).
const WAYS: [fn(&mut Builder); 4] = [
    // 6.6: no indirection between queue and entries.
    |ring| {
        owned_by_one_thread(ring);
        ring.setup_no_sqarray();
    },
    // 6.1: completions run only when the owning thread asks for them.
    owned_by_one_thread,
    // 5.19: completions do not interrupt the submitting thread; if it sleeps, it is woken for them.
    |ring| {
        ring.setup_submit_all().setup_coop_taskrun().setup_taskrun_flag();
    },
    |_| {},
];

/// Number of ways that bind a ring to one thread.
const OWNED: usize = 2;

fn owned_by_one_thread(ring: &mut Builder) {
    ring.setup_submit_all()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_r_disabled();
}

/// A ring with its registered file and memory.
pub(super) struct Ring {
    uring: Uring,
    is_disabled: bool,
    is_claimed: bool,
    target: Arc<Target>,
    file: OwnedFd,
    has_fixed_file: bool,
    /// Flags of every entry.
    flags: squeue::Flags,
    memory: Option<RegisteredMemory>,
    depth: u32,
    pool: Pool,
    /// Descriptor that signals completions, created on first use.
    wake: OnceCell<Option<OwnedFd>>,
}

/// Reference to a file in submission entries.
#[derive(Clone, Copy)]
pub(super) enum OwnFd {
    /// Index among the ring's registered files.
    Registered(types::Fixed),
    /// Descriptor number.
    Raw(types::Fd),
}

/// Memory of the pool, registered in pieces of `piece` bytes.
#[derive(Clone, Copy)]
struct RegisteredMemory {
    start: usize,
    length: usize,
    piece: usize,
}

impl Ring {
    /// Creates a ring for `depth` requests to `file`, a separate description of `target`, with buffers from
    /// `pool`. Resources that cannot be registered, for lack of lockable memory or in an old kernel, are used
    /// unregistered.
    pub(super) fn new(target: Arc<Target>, file: OwnedFd, depth: u32, pool: Pool) -> io::Result<Self> {
        let (uring, is_disabled) = set_up(depth, target.options.is_shared)?;
        let has_fixed_file = uring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
        let flags = flags_for(&file, &target);
        let memory = register(&uring, &pool);
        let is_claimed = false;
        let wake = OnceCell::new();
        Ok(Self {
            uring,
            is_disabled,
            is_claimed,
            target,
            file,
            has_fixed_file,
            flags,
            memory,
            depth,
            pool,
            wake,
        })
    }

    /// Replaces the ring by an empty one for the calling thread. Only while nothing is in flight.
    pub(super) fn renew(&mut self) -> io::Result<()> {
        let file = self.file.try_clone()?;
        *self = Self::new(Arc::clone(&self.target), file, self.depth, self.pool.clone())?;
        Ok(())
    }

    /// Binds the ring to the calling thread at first use.
    #[inline]
    pub(super) fn claim(&mut self) -> io::Result<()> {
        if self.is_claimed { Ok(()) } else { self.claim_now() }
    }

    #[cold]
    fn claim_now(&mut self) -> io::Result<()> {
        be_punctual();
        self.is_claimed = true;
        if self.is_disabled {
            self.uring.submitter().register_enable_rings()?;
            self.is_disabled = false;
        }
        Ok(())
    }

    /// Returns the queue's own description of the target, in the form for submission entries.
    #[inline]
    pub(super) fn own_fd(&self) -> OwnFd {
        if self.has_fixed_file {
            OwnFd::Registered(types::Fixed(0))
        } else {
            OwnFd::Raw(types::Fd(self.file.as_raw_fd()))
        }
    }

    /// Returns the device's description of the target, which claims a block device. It is never registered.
    pub(super) fn claiming_fd(&self) -> types::Fd {
        types::Fd(self.target.file().as_raw_fd())
    }

    /// Returns the index of the registered buffer that contains all `length` bytes at `address`, if any.
    #[inline]
    pub(super) fn buffer_index(&self, address: *const u8, length: usize) -> Option<u16> {
        let memory = self.memory?;
        let offset = address.addr().checked_sub(memory.start)?;
        let end = offset.checked_add(length).filter(|end| length > 0 && *end <= memory.length)?;
        if memory.length <= memory.piece {
            return Some(0);
        }
        let index = offset / memory.piece;
        if (end - 1) / memory.piece == index { u16::try_from(index).ok() } else { None }
    }

    /// Returns the flags of every entry.
    #[inline]
    pub(super) fn entry_flags(&self) -> squeue::Flags {
        self.flags
    }

    /// Adds an entry. Returns false if the ring is full, which cannot happen with the right depth.
    ///
    /// # Safety
    /// The memory that the entry refers to must stay valid, and otherwise unused if the kernel writes it,
    /// until the entry's completion was seen.
    pub(super) unsafe fn push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { self.uring.submission().push(entry) }.is_ok()
    }

    /// Returns true if the kernel has completions that only a system call fetches.
    pub(super) fn has_deferred(&mut self) -> bool {
        let queue = self.uring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Submits pushed entries and waits for `want` completions, at most for `timeout`. Returns the number of
    /// entries that the kernel took; a timeout is not an error.
    pub(super) fn enter(&self, want: usize, timeout: Option<Duration>) -> io::Result<usize> {
        let submitter = self.uring.submitter();
        let entered = match timeout {
            Some(timeout) if want > 0 => {
                let timespec = Timespec::from(timeout);
                submitter.submit_with_args(want, &SubmitArgs::new().timespec(&timespec))
            }
            _ => submitter.submit_and_wait(want),
        };
        match entered {
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(0),
            other => other,
        }
    }

    /// Returns the available completions.
    pub(super) fn completions(&mut self) -> cqueue::CompletionQueue<'_, cqueue::Entry> {
        self.uring.completion()
    }

    /// Returns the descriptor that becomes readable when there are completions: an eventfd from the first
    /// call on. The first wait for it returns at once. With DEFER_TASKRUN a completion does not wake a thread
    /// that polls the ring itself (Linux 6.18), although a poll finds completions that already exist.
    pub(super) fn wake_fd(&self) -> BorrowedFd<'_> {
        let made = self.wake.get_or_init(|| {
            let made = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
            self.uring.submitter().register_eventfd(made.as_raw_fd()).ok().map(|()| made)
        });
        if let Some(made) = made {
            return made.as_fd();
        }
        // SAFETY: the ring's descriptor is open as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.uring.as_raw_fd()) }
    }

    /// Resets [`wake_fd`](Self::wake_fd), so that later completions make it readable again.
    #[inline]
    pub(super) fn clear_wake(&self) {
        if let Some(Some(made)) = self.wake.get() {
            // An empty eventfd is fine, too.
            rustix::io::read(made, &mut [0; 8]).unwrap_or_default();
        }
    }
}

/// Unregisters the file and the memory at once. The kernel does that only some time after a ring is closed,
/// and until then the file system cannot be unmounted and the memory stays locked.
impl Drop for Ring {
    fn drop(&mut self) {
        let submitter = self.uring.submitter();
        // Only the ring's own thread may unregister. For other threads the kernel refuses and does it later,
        // which is acceptable.
        if self.has_fixed_file {
            submitter.unregister_files().unwrap_or_default();
        }
        if self.memory.is_some() {
            submitter.unregister_buffers().unwrap_or_default();
        }
    }
}

/// Makes timers of the calling thread precise. By default the kernel ends a thread's waits up to 50 us late
/// to save interrupts (prctl(2), PR_SET_TIMERSLACK), and a wait for a batch is hardly longer than that.
fn be_punctual() {
    const NANOSECONDS: libc::c_ulong = 1;
    // SAFETY: takes a number, and changes only the timer slack of this thread. It fails only for real-time
    // threads, which have none.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, NANOSECONDS) };
}

/// Creates the best ring that this kernel supports, for one thread or for several. The flag is true if it
/// must still be enabled.
fn set_up(depth: u32, is_shared: bool) -> io::Result<(Uring, bool)> {
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for (index, way) in WAYS.iter().enumerate().skip(if is_shared { OWNED } else { 0 }) {
        let mut builder = Uring::builder();
        builder.dontfork();
        way(&mut builder);
        match builder.build(depth) {
            // Timeouts of waits came with 5.11; without them deadlines cannot be kept.
            Ok(uring) if uring.params().is_feature_ext_arg() => return Ok((uring, index < OWNED)),
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "this kernel's io_uring is older than 5.11",
                ));
            }
            // A flag that this kernel does not know.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// Returns the flags of entries for `file`, a description of `target`.
///
/// A request that the kernel cannot try without waiting (`FMODE_NOWAIT` in fs/open.c, which tmpfs lacks, as
/// do disks whose driver executes requests itself, like zram) goes to worker threads in any case. Setting
/// IOSQE_ASYNC saves the kernel a futile attempt: for 4 KiB reads of tmpfs a fifth of all processor time, for
/// zram nothing measurable (Linux 6.18, one processor, 8 to 16 waited for at once, with and without in turn).
///
/// The test reads one byte past the end, for which no file system has to look anything up.
fn flags_for(file: &OwnedFd, target: &Target) -> squeue::Flags {
    let mut byte = [0];
    let end = target.size().0;
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], end, ReadWriteFlags::NOWAIT) {
        Err(rustix::io::Errno::OPNOTSUPP) => squeue::Flags::ASYNC,
        Ok(_) | Err(_) => squeue::Flags::empty(),
    }
}

fn register(uring: &Uring, pool: &Pool) -> Option<RegisteredMemory> {
    let (start, length): (NonNull<u8>, usize) = pool.region();
    let stride = usize::try_from(pool.buffer_size().0).ok()?;
    // Pieces of whole buffers, so that no buffer crosses two.
    let piece = REGISTERED_MAX - REGISTERED_MAX % stride.clamp(1, REGISTERED_MAX);
    let pieces: Vec<libc::iovec> = (0..length)
        .step_by(piece)
        .map(|offset| libc::iovec {
            iov_base: start.as_ptr().wrapping_add(offset).cast(),
            iov_len: piece.min(length - offset),
        })
        .collect();
    // SAFETY: the region is valid as long as the pool lives, which the ring keeps alive; the kernel pins the
    // pages.
    let registered = unsafe { uring.submitter().register_buffers(&pieces) };
    registered.ok().map(|()| RegisteredMemory { start: start.as_ptr().addr(), length, piece })
}

/// Checks that io_uring works: creates a ring and sends an empty request through it.
///
/// # Errors
/// Fails with the answer of the kernel or a seccomp filter.
pub(crate) fn try_ring() -> io::Result<()> {
    let (mut uring, is_disabled) = set_up(2, false)?;
    if is_disabled {
        uring.submitter().register_enable_rings()?;
    }
    let nothing = opcode::Nop::new().build();
    // SAFETY: a NOP refers to no memory.
    unsafe { uring.submission().push(&nothing) }.map_err(|full| io::Error::other(full.to_string()))?;
    uring.submit_and_wait(1)?;
    uring.completion().next().map(|_| ()).ok_or_else(|| io::Error::other("an empty request got no answer"))
}

#[cfg(test)]
mod tests {
    use plumb_block::{Bytes, PoolShape};

    use super::*;
    use crate::file::FileOptions;

    #[test]
    fn every_way_down_gives_a_ring_or_is_not_known_to_this_kernel() {
        for (index, way) in WAYS.iter().enumerate() {
            let mut builder = Uring::builder();
            way(&mut builder);
            match builder.build(8) {
                Ok(ring) => assert!(ring.params().sq_entries() >= 8),
                Err(error) => plumb_testkit::skip(&format!("way {index} is refused here: {error}")),
            }
        }
    }

    #[test]
    fn memory_is_found_by_address_and_only_as_a_whole() {
        if let Err(error) = try_ring() {
            plumb_testkit::skip(&format!("no io_uring here: {error}"));
            return;
        }
        let pool = Pool::new(PoolShape { buffer: Bytes(4096), count: 4, alignment: Bytes(4096) }).unwrap();
        let clock = Arc::new(plumb_block::RealClock::start());
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let open = || OwnedFd::from(std::fs::File::open(file.path()).unwrap());
        let target = Target::new(open(), "file".to_owned(), FileOptions::read_buffered(), clock).unwrap();
        let mut ring = Ring::new(Arc::new(target), open(), 4, pool.clone()).unwrap();
        let start = pool.region().0.as_ptr().cast_const();
        ring.memory = Some(RegisteredMemory { start: start.addr(), length: 16384, piece: 8192 });
        assert_eq!(ring.buffer_index(start, 4096), Some(0));
        assert_eq!(ring.buffer_index(start.wrapping_add(8192), 8192), Some(1));
        assert_eq!(ring.buffer_index(start.wrapping_add(4096), 8192), None, "across two pieces");
        assert_eq!(ring.buffer_index(start.wrapping_add(12288), 8192), None, "past the end");
        assert_eq!(ring.buffer_index(start.wrapping_sub(1), 1), None);
    }

    #[test]
    fn only_what_cannot_be_tried_is_left_to_worker_threads_at_once() {
        let flags_in = |directory: &str| {
            let file = tempfile::NamedTempFile::new_in(directory).ok()?;
            file.as_file().set_len(4096).unwrap();
            let clock = Arc::new(plumb_block::RealClock::start());
            let open = || OwnedFd::from(std::fs::File::open(file.path()).unwrap());
            let target = Target::new(open(), "file".to_owned(), FileOptions::read_buffered(), clock).unwrap();
            let kind = rustix::fs::fstatfs(file.as_file()).unwrap().f_type;
            Some((kind as u64, flags_for(&open(), &target)))
        };
        const EXT4: u64 = 0xEF53;
        const TMPFS: u64 = 0x0102_1994;
        let places = ["/dev/shm", "/tmp", "/var/tmp"].map(flags_in);
        for (kind, flags) in places.into_iter().flatten() {
            match kind {
                TMPFS => assert_eq!(flags, squeue::Flags::ASYNC),
                EXT4 => assert_eq!(flags, squeue::Flags::empty()),
                other => plumb_testkit::skip(&format!("nothing is known of file system {other:#x}")),
            }
        }
    }
}
