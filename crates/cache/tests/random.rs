//! Random histories of operations, power cuts, kills and faults, each from its own seed.
//!
//! `PLUMB_SEED` is the first seed, `PLUMB_HISTORIES` the number of seeds; the default is 20,000 from seed 1
//! on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::history::History;

/// Number of histories in the test run.
const HISTORIES: u64 = 20_000;

pub(crate) fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

#[test]
fn no_history_shows_what_the_user_must_not_see() {
    let (first, count) = (number("PLUMB_SEED", 1), number("PLUMB_HISTORIES", HISTORIES));
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let failed = std::sync::Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || !failed.lock().unwrap().is_empty() {
                        return;
                    }
                    let history = History::from_seed(seed);
                    // A panic in the cache is a failure of this seed, too.
                    let run = std::panic::AssertUnwindSafe(|| history.run().map(drop));
                    let ended = std::panic::catch_unwind(run);
                    if !matches!(ended, Ok(Ok(()))) {
                        failed.lock().unwrap().push(history);
                    }
                }
            });
        }
    });
    if let Some(history) = failed.into_inner().unwrap().first() {
        panic!("{}", history.told());
    }
    eprintln!("{count} histories from seed {first} in {:.1} s", began.elapsed().as_secs_f64());
}
