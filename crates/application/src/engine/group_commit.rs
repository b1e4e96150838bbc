//! Group commit: clients that want their records durable share one flusher.
//!
//! As in PostgreSQL (XLogFlush, LWLockAcquireOrWait): a client whose record is not durable yet becomes the
//! flusher if nobody flushes, and flushes all records that are there by then; otherwise it waits, and when
//! the flush is over looks again. A flush covers only records that were there when it began. How many
//! transactions share a sync is not set anywhere: it comes from how long clients compute between commits and
//! how long a flush takes.

use std::sync::{Condvar, Mutex, PoisonError};

use plumb_block::Nanos;

use super::halt::{Halt, Halts, Step};
use super::recording::lock;

/// State that decides who may flush what, as plain data.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    inserted: u64,
    durable: u64,
    flushing: bool,
    failed: bool,
}

/// Next step of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The client may go on: its record is durable.
    Go,
    /// Wait until the flush that runs is over, and ask again.
    Wait,
    /// Flush all records up to this one.
    Flush(u64),
    /// Give up: a flush failed, and no later one can be trusted.
    GiveUp,
}

impl Rounds {
    /// Returns a client adds its record; its number.
    pub(crate) fn insert(&mut self) -> u64 {
        self.inserted += 1;
        self.inserted
    }

    /// Returns what the client of a record does next.
    pub(crate) fn next(&mut self, record: u64) -> Next {
        if self.durable >= record {
            Next::Go
        } else if self.failed {
            Next::GiveUp
        } else if self.flushing {
            Next::Wait
        } else {
            self.flushing = true;
            Next::Flush(self.inserted)
        }
    }

    /// Notes that the flush up to a record is over; `None` if it failed.
    pub(crate) fn flushed(&mut self, up_to: Option<u64>) {
        self.flushing = false;
        match up_to {
            Some(up_to) => self.durable = up_to,
            None => self.failed = true,
        }
    }
}

/// Rounds that threads share.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    rounds: Mutex<Rounds>,
    flush_over: Condvar,
}

impl GroupCommit {
    /// Returns when the record that is added now is durable, flushed by this thread with `flush` or by
    /// another one. `halts` end the waiting.
    pub(crate) fn commit(&self, halts: &Halts<'_>, flush: impl FnOnce() -> Step<()>) -> Step<()> {
        let mut flush = Some(flush);
        let mut rounds = lock(&self.rounds);
        let record = rounds.insert();
        loop {
            halts.check()?;
            match rounds.next(record) {
                Next::Go => return Ok(()),
                Next::GiveUp => return Err(Halt::Stopped),
                Next::Wait => {
                    // Every flush ends with a notice, also if it fails.
                    rounds = self.flush_over.wait(rounds).unwrap_or_else(PoisonError::into_inner);
                }
                Next::Flush(up_to) => {
                    drop(rounds);
                    let flushed = flush.take().map_or(Ok(()), |flush| flush());
                    rounds = lock(&self.rounds);
                    rounds.flushed(flushed.is_ok().then_some(up_to));
                    self.flush_over.notify_all();
                    flushed?;
                }
            }
        }
    }
}

/// The mean time that a client computes between two commits: an estimate, from which the traced 0.82 syncs a
/// transaction come out with eight clients and flushes of 60 us. A slower flush is shared by more.
pub(crate) const THINK_MEAN: Nanos = Nanos::micros(525);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn a_flush_covers_what_was_there_when_it_began_and_no_more() {
        let mut rounds = Rounds::default();
        let (a, b) = (rounds.insert(), rounds.insert());
        assert_eq!(rounds.next(a), Next::Flush(b), "the first to ask flushes for both");
        let c = rounds.insert();
        assert_eq!(rounds.next(b), Next::Wait);
        assert_eq!(rounds.next(c), Next::Wait);
        rounds.flushed(Some(b));
        assert_eq!(rounds.next(a), Next::Go);
        assert_eq!(rounds.next(b), Next::Go);
        assert_eq!(rounds.next(c), Next::Flush(c), "came after the flush began");
        rounds.flushed(None);
        let d = rounds.insert();
        assert_eq!(
            [rounds.next(c), rounds.next(d)],
            [Next::GiveUp; 2],
            "nobody flushes after a failed flush"
        );
        assert_eq!(rounds.next(b), Next::Go, "what was durable remains so");
    }

    /// Eight clients in virtual time; syncs per transaction.
    fn ratio(flush: Nanos, transactions: u64) -> f64 {
        #[derive(Clone, Copy)]
        enum Client {
            Thinks(Nanos),
            Wants(u64),
        }
        let mut chance = Chance::from_seed(1, 0);
        let mut clients: Vec<Client> =
            (0..8).map(|_| Client::Thinks(chance.exponential(THINK_MEAN))).collect();
        let (mut rounds, mut flush_ends, mut now) = (Rounds::default(), None, Nanos::ZERO);
        let (mut flushes, mut done) = (0, 0);
        while done < transactions {
            for client in &mut clients {
                if let Client::Thinks(until) = *client
                    && until <= now
                {
                    *client = Client::Wants(rounds.insert());
                }
                if let Client::Wants(record) = *client {
                    match rounds.next(record) {
                        Next::Go => {
                            done += 1;
                            *client = Client::Thinks(now + chance.exponential(THINK_MEAN));
                        }
                        Next::Wait => {}
                        Next::GiveUp => panic!("no flush fails here"),
                        Next::Flush(up_to) => {
                            flushes += 1;
                            flush_ends = Some((now + flush, up_to));
                        }
                    }
                }
            }
            let thought = clients.iter().filter_map(|client| match client {
                Client::Thinks(until) => Some(*until),
                Client::Wants(_) => None,
            });
            now = thought.chain(flush_ends.map(|(at, _)| at)).min().unwrap().max(now);
            if let Some((at, up_to)) = flush_ends
                && at <= now
            {
                rounds.flushed(Some(up_to));
                flush_ends = None;
            }
        }
        flushes as f64 / done as f64
    }

    #[test]
    fn clients_wait_for_one_flusher() {
        let group = GroupCommit::default();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let halts = Halts::new(&stop);
        let flushes = std::sync::atomic::AtomicU64::new(0);
        let flush = || flushes.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                group.commit(&halts, || {
                    flush();
                    begun.send(()).unwrap();
                    while lock(&group.rounds).inserted < 8 {
                        std::thread::yield_now();
                    }
                    Ok(())
                })
            });
            has_begun.recv().unwrap();
            let others = (0..7).map(|_| {
                scope.spawn(|| {
                    group.commit(&halts, || {
                        flush();
                        Ok(())
                    })
                })
            });
            let others: Vec<_> = others.collect();
            assert!(others.into_iter().chain([first]).all(|client| client.join().unwrap().is_ok()));
        });
        // The first client's flush covers itself, and one more covers all who came while it ran.
        assert_eq!(flushes.into_inner(), 2);
    }

    #[test]
    fn eight_clients_share_syncs_as_was_traced_and_more_on_a_slow_disk() {
        let traced = ratio(Nanos::micros(60), 100_000);
        assert!((traced - 0.82).abs() < 0.02, "{traced} syncs a transaction");
        // Half of the clients wait while the others' flush runs, and the other way round.
        let slow = ratio(Nanos::millis(8), 10_000);
        assert!((0.24..0.27).contains(&slow), "{slow} syncs a transaction with flushes of 8 ms");
    }
}
