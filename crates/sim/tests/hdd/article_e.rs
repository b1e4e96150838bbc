//! Tests of the 40 GB disk of 2002: flushed small writes are 10 to 100 times slower than unflushed ones, but
//! copies are not.
use crate::hdd::hosts::{Flushes, accounting, copy, log};
use plumb_block::Nanos;
use plumb_sim::model::Model;
use plumb_sim::timing::Timing;

use crate::hdd::shipped::drive;

/// The three states of the cache in the article: off, on with flushes, and on with flushes dropped.
const STATES: [(bool, Flushes); 3] =
    [(false, Flushes::NotSent), (true, Flushes::Sent), (true, Flushes::NotSent)];

#[test]
fn flushes_make_small_writes_slow_and_large_copies_not() {
    let disk = Model::named("ata-40gb").unwrap();
    println!("{:<12} {:>8} {:>8} {:>10} {:>14}", "seconds", "off", "on", "protected", "on / protected");
    let row = |name: &str, work: fn(&mut dyn Timing, Flushes) -> Nanos| {
        let [off, on, protected] =
            STATES.map(|(wce, flushes)| work(&mut drive(&disk, wce), flushes).as_secs_f64());
        println!("{name:<12} {off:>8.2} {on:>8.2} {protected:>10.2} {:>14.2}", on / protected);
        on / protected
    };
    let slow = [row("accounting", accounting), row("log", log)];
    let same = row("copy", copy);
    assert!(slow.iter().all(|factor| (10.0..=100.0).contains(factor)), "{slow:?}");
    assert!((0.9..=1.1).contains(&same), "{same}");
}
