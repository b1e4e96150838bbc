//! The 40 GB disk of 2002: small writes that are flushed are 10 to 100 times slower than without, copies are not.
use plumb_block::{Nanos, Op};
use plumb_sim::Sectors;
use plumb_sim::model::Model;
use plumb_sim::timing::Timing;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::host::Host;
use crate::shipped::drive;

/// The three states of the cache that the article tells apart.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Off,
    /// Flushes are sent.
    On,
    /// "Power protected": no flush is sent.
    Protected,
}

impl State {
    fn flush(self, host: &mut Host<'_>) {
        if self == Self::On {
            host.flush();
        }
    }
}

/// 200 records of a table of 20 MB: the record, a node of the index, the header; each flushed.
fn accounting(host: &mut Host<'_>, state: State) {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(5);
    for _ in 0..200 {
        for place in [1000 + chance.next_u64() % 40_000, 60_000 + chance.next_u64() % 4000, 1000] {
            host.write(Sectors { first: place, count: 1 });
            state.flush(host);
        }
    }
}

/// 500 times 4 KiB into a log, each flushed.
fn log(host: &mut Host<'_>, state: State) {
    for index in 0..500 {
        host.write(Sectors { first: 100_000 + index * 8, count: 8 });
        state.flush(host);
    }
}

/// 20 files of 16 MiB, read here and written there; the file system flushes after each.
fn copy(host: &mut Host<'_>, state: State) {
    for file in 0..20_u64 {
        for piece in 0..16 {
            let from = (file * 16 + piece) * 2048;
            let pieces = |op, base: u64| {
                (0..8).map(move |part| (op, Sectors { first: base + from + part * 256, count: 256 }))
            };
            host.call(&pieces(Op::Read, 0).collect::<Vec<_>>());
            host.call(&pieces(Op::Write { fua: false }, 20_000_000).collect::<Vec<_>>());
        }
        state.flush(host);
    }
}

fn time(state: State, work: impl Fn(&mut Host<'_>, State)) -> f64 {
    let mut drive = drive(&Model::named("ata-40gb").unwrap(), state != State::Off);
    let drive: &mut dyn Timing = &mut drive;
    let mut host = Host::new(drive);
    host.think(Nanos::millis(3));
    let since = host.now;
    work(&mut host, state);
    host.now.since(since).as_secs_f64()
}

#[test]
fn flushes_make_small_writes_slow_and_large_copies_not() {
    println!("{:<12} {:>8} {:>8} {:>10} {:>14}", "seconds", "off", "on", "protected", "on / protected");
    let row = |name: &str, work: &dyn Fn(&mut Host<'_>, State)| {
        let [off, on, protected] = [State::Off, State::On, State::Protected].map(|state| time(state, work));
        println!("{name:<12} {off:>8.2} {on:>8.2} {protected:>10.2} {:>14.2}", on / protected);
        on / protected
    };
    let slow = [row("accounting", &accounting), row("log", &log)];
    let same = row("copy", &copy);
    assert!(slow.iter().all(|factor| (10.0..=100.0).contains(factor)), "{slow:?}");
    assert!((0.9..=1.1).contains(&same), "{same}");
}
