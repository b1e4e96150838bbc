//! The whole stack in one process, in virtual time, from one seed: NBD client, NBD server, serving core,
//! cache and simulated drives, without threads and without descriptors.
//!
//! ```text
//!   history (from a seed) ──► client: NbdDevice, its queues ◄──────► oracle (must and may)
//!                                  │ network: streams in memory, in pieces, late, broken
//!                             server: Connection, serving core
//!                                  │ planted: faults that have to be found
//!                             cache: CachedDevice ──► drives: log, its mirror, backing (errors, cuts)
//! ```
//!
//! `PLUMB_SEED` is the first seed, `PLUMB_WORLDS` the number of seeds; the default is 400 from seed 1 on.
//! With `PLUMB_TRACE` a world prints its events.
//!
//! Not modelled: TLS, several clients with separate writes, and the operator's orders to a cache (which are
//! in the histories of `plumb_cache`).

mod client;
mod network;
mod planted;
mod server;
mod stack;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use planted::PlantedFault;
use stack::World;

/// Number of seeds in the test run.
const WORLDS: u64 = 400;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

/// Returns the digest of the history of `seed`.
///
/// # Errors
/// Fails with a description of what went wrong, with the seed.
fn run(seed: u64, planted: Option<PlantedFault>) -> Result<u64, String> {
    let run = std::panic::AssertUnwindSafe(|| World::new(seed, planted).and_then(World::run));
    let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| Err("a panic".to_owned()));
    outcome.map_err(|why| format!("seed {seed}: {why}"))
}

#[test]
fn no_seed_shows_what_a_client_must_not_see() {
    let (first, count) = (number("PLUMB_SEED", 1), number("PLUMB_WORLDS", WORLDS));
    let (next, failed, began) = (AtomicU64::new(first), Mutex::new(None), Instant::now());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().unwrap().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    if let Err(why) = run(seed, None) {
                        let why = format!("{why}; repeat: cargo xtask soak world --seeds 1 --seed {seed}");
                        *failed.lock().unwrap() = Some(why);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_none(), "{}", failed.unwrap_or_default());
    eprintln!("{count} worlds from seed {first} in {:.1} s", began.elapsed().as_secs_f64());
}

#[test]
fn one_seed_gives_one_history() {
    let first = number("PLUMB_SEED", 1);
    for seed in first..first + 12 {
        assert_eq!(run(seed, None), run(seed, None), "seed {seed}");
    }
}

#[test]
fn every_planted_fault_is_found() {
    let first = number("PLUMB_SEED", 1);
    let find = |planted: &PlantedFault| {
        let found = (first..first + WORLDS).find_map(|seed| run(seed, Some(*planted)).err());
        eprintln!("{planted:?}: {}", found.as_deref().unwrap_or("not found"));
        found.is_none()
    };
    let unseen: Vec<_> = PlantedFault::ALL.iter().filter(|planted| find(planted)).collect();
    assert!(unseen.is_empty(), "no seed of {WORLDS} shows {unseen:?}");
}
