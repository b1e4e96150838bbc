//! The calling thread: its processors, its I/O priority, and its processor time.
//!
//! All of these belong to a single thread, so each worker calls these functions on its own thread.

#![expect(unsafe_code, reason = "ioprio_set and getrusage have no safe form")]

use std::mem::MaybeUninit;

use plumb_block::{Errno, Error, ErrorKind, Nanos, Priority, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// `IOPRIO_WHO_PROCESS` of include/uapi/linux/ioprio.h; with id 0 it means the calling thread.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// `IOPRIO_CLASS_BE` and `IOPRIO_CLASS_IDLE`.
const BEST_EFFORT: libc::c_int = 2;
const IDLE: libc::c_int = 3;
/// `IOPRIO_CLASS_SHIFT`: position of the class above the level.
const CLASS_SHIFT: libc::c_int = 13;

/// Processor time of a thread since it began. The kernel assigns it all to one of the two fields, by ticks or
/// exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Time in the program.
    pub user: Nanos,
    /// Time in the kernel on the program's behalf.
    pub system: Nanos,
}

impl CpuTimes {
    /// Returns the processor time used since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self { user: self.user.since(earlier.user), system: self.system.since(earlier.system) }
    }
}

/// Restricts the calling thread, and threads that it starts later, to `processors`, by the kernel's numbers.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) if the list is empty or a number is too large; EINVAL if none of them
/// exists or is allowed (a cpuset). The thread then stays as it was.
pub fn pin_to(processors: &[u32]) -> Result<()> {
    let failed = |kind| Error::new(kind, "keep a thread on", format!("processors {processors:?}"));
    let mut set = CpuSet::new();
    for processor in processors {
        let number = *processor as usize;
        if number >= CpuSet::MAX_CPU {
            let detail = format!("processor {number}: the largest number is {}", CpuSet::MAX_CPU - 1);
            return Err(failed(ErrorKind::Invalid).because(detail));
        }
        set.set(number);
    }
    if processors.is_empty() {
        return Err(failed(ErrorKind::Invalid).because("name at least one"));
    }
    sched_setaffinity(None, &set).map_err(|errno| {
        let error = failed(ErrorKind::Os(Errno(errno.raw_os_error())));
        match errno {
            rustix::io::Errno::INVAL => {
                error.because(format!("those allowed here are {:?}", self::processors()))
            }
            _ => error,
        }
    })
}

/// Returns the processors on which the calling thread may run, in ascending order; empty if the kernel does
/// not report them or has more than 1024.
pub fn processors() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU)
        .filter(|number| set.is_set(*number))
        .filter_map(|number| number.try_into().ok())
        .collect()
}

/// Sets the priority of the I/O that the calling thread submits from now on. io_uring's worker threads use
/// the submitter's priority.
///
/// # Errors
/// Fails as ioprio_set(2) does; a seccomp filter may forbid it.
pub fn set_io_priority(priority: Priority) -> Result<()> {
    let value = match priority {
        Priority::Idle => IDLE << CLASS_SHIFT,
        Priority::Low => BEST_EFFORT << CLASS_SHIFT | 7,
        Priority::Normal => BEST_EFFORT << CLASS_SHIFT | 4,
    };
    // SAFETY: takes only numbers.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, value) };
    if answer == 0 {
        return Ok(());
    }
    Err(Error::io(&std::io::Error::last_os_error(), "set the I/O priority of", "a thread"))
}

/// Returns the processor time of the calling thread so far; zero if the kernel does not report it.
pub fn cpu_times() -> CpuTimes {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is valid for writing, and all zeroes is a valid value, so it stays valid even on
    // failure.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    CpuTimes { user: nanos(usage.ru_utime), system: nanos(usage.ru_stime) }
}

/// Converts a time. Elapsed time is never negative, so neither field is.
fn nanos(time: libc::timeval) -> Nanos {
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the I/O priority that the kernel has for the calling thread.
    fn io_priority() -> libc::c_long {
        // SAFETY: takes numbers only.
        unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) }
    }

    #[test]
    fn a_pinned_thread_runs_where_it_was_told_and_nowhere_else() {
        std::thread::spawn(|| {
            let all = processors();
            let last = *all.last().unwrap();
            pin_to(&[last]).unwrap();
            assert_eq!(processors(), [last]);
            assert_eq!(rustix::thread::sched_getcpu(), last as usize);
            pin_to(&all).unwrap();
            assert_eq!(processors(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn processors_that_are_not_there_are_refused_and_nothing_changes() {
        let before = processors();
        assert_eq!(pin_to(&[]).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(pin_to(&[u32::MAX]).unwrap_err().kind, ErrorKind::Invalid);
        if before.contains(&1023) {
            return plumb_testkit::skip("this machine has every processor");
        }
        let error = pin_to(&[1023]).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::EINVAL));
        assert!(error.to_string().contains(&format!("{before:?}")), "{error}");
        assert_eq!(processors(), before);
    }

    #[test]
    fn the_kernel_knows_the_priority_that_was_set() {
        std::thread::spawn(|| {
            for (priority, expected) in
                [(Priority::Idle, 3 << 13), (Priority::Low, 2 << 13 | 7), (Priority::Normal, 2 << 13 | 4)]
            {
                if let Err(error) = set_io_priority(priority) {
                    return plumb_testkit::skip(&format!("{error}"));
                }
                assert_eq!(io_priority(), expected, "{priority:?}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn work_costs_this_thread_time_and_no_other() {
        std::thread::spawn(|| {
            let begin = cpu_times();
            let mut sum = 0_u64;
            // By the clock that is tested, so that a slow machine cannot fail it.
            while cpu_times().since(begin).user < Nanos::millis(5) {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            let used = cpu_times().since(begin);
            assert!(used.user >= Nanos::millis(5));
            let idle = std::thread::spawn(cpu_times).join().unwrap();
            assert!(idle.user < used.user, "another thread's time: {idle:?} of {used:?}");
        })
        .join()
        .unwrap();
    }
}
