//! Parallel map for work on many disks, most of which is waiting for drives.

use std::num::NonZero;
use std::thread;

/// Minimum number of items for each thread.
const WORTH_A_THREAD: usize = 64;
/// Maximum number of threads, so that a common controller is not overloaded.
const THREADS_MAX: usize = 4;

/// Returns the results of `work` for all items, in order.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = processors.min(THREADS_MAX).min(items.len() / WORTH_A_THREAD).max(1);
    if threads == 1 {
        return items.iter().map(work).collect();
    }
    let (mine, others) = items.split_at(items.len().div_ceil(threads));
    let work = &work;
    thread::scope(|scope| {
        let shares: Vec<_> = others
            .chunks(mine.len())
            .map(|share| scope.spawn(move || share.iter().map(work).collect::<Vec<R>>()))
            .collect();
        let mut done: Vec<R> = Vec::with_capacity(items.len());
        done.extend(mine.iter().map(work));
        for share in shares {
            done.extend(share.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked)));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept_however_many_there_are() {
        for count in [0, 1, 63, 64, 127, 128, 129, 255, 256, 1001] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(map(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
    }
}
