//! Guards against costs that are quadratic in the hosts: a thousand hosts in one process start together, with
//! clock errors within the bound, and the controller's work grows linearly.

use plumb_block::Nanos;
use plumb_fleet::controller::Phase;

use crate::world::{World, in_phase};

fn run(hosts: usize) -> World {
    let mut world = World::new(hosts as u64, hosts, Vec::new());
    world.length = Nanos::secs(5);
    world.run();
    assert_eq!(in_phase(&world, Phase::Done), hosts);
    world
}

#[test]
fn a_thousand_hosts_start_together_and_their_clocks_are_known_within_the_bound() {
    let world = run(1000);
    let started_at = world.controller.started_at().unwrap();
    let mut lateness: Vec<u64> = Vec::new();
    for (host, seen) in world.hosts.iter().zip(world.seen()) {
        let offset = seen.clock.unwrap();
        let wrong = (host.ahead_at(started_at) - offset.ahead_ns).unsigned_abs();
        assert!(wrong <= u128::from(offset.error.0), "{}: {wrong} ns beyond {}", seen.name, offset.error);
        let started = host.started.unwrap();
        let off = started.0.abs_diff(started_at.0);
        assert!(
            off <= offset.error.0 + 10_000_000,
            "{}: {off} ns off, known within {}",
            seen.name,
            offset.error
        );
        lateness.push(off);
    }
    lateness.sort_unstable();
    assert!(lateness[990] <= 20_000_000, "p99 of the start is {} ns off", lateness[990]);
}

#[test]
fn the_messages_grow_with_the_hosts_and_no_faster() {
    let (few, many) = (run(50).arrived as f64, run(500).arrived as f64);
    assert!(many / few < 15.0, "{few} messages of 50 hosts, {many} of 500");
}
