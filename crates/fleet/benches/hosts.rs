//! Processor time and memory of a controller with growing numbers of hosts, whose agents run in the same
//! process. Each count runs in a process of its own, so that memory is measured separately.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "../tests/world/mod.rs"]
#[expect(dead_code, reason = "a bench needs less of the world than the tests do")]
mod world;

use std::process::Command;

use plumb_block::Nanos;
use plumb_fleet::merge;
use rustix::time::{ClockId, clock_gettime};
use world::{World, outcome};

const COUNTS: [usize; 4] = [125, 250, 500, 1000];

fn main() {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    if let Some(hosts) = asked {
        return one(hosts);
    }
    // Skipped when run as a test.
    let counts = if std::env::args().any(|word| word == "--bench") { &COUNTS[..] } else { &[] };
    for hosts in counts {
        let program = std::env::current_exe().unwrap();
        assert!(Command::new(program).arg(hosts.to_string()).status().unwrap().success());
    }
}

/// Runs and merges a load of one minute on `hosts` hosts, each of which sends the figures of 5,000
/// operations.
fn one(hosts: usize) {
    let measured = (0..16).map(|seed| outcome(seed, 5000)).collect();
    let mut world = World::new(hosts as u64, hosts, measured);
    world.length = Nanos::secs(60);
    world.run();
    let ran = processor_ms();
    let document = merge::document(&mut merge::answers(&mut world.controller));
    assert!(!document.partial);
    let merged = processor_ms() - ran;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok())
        .unwrap();
    let each = |all: u64| all as f64 / hosts as f64;
    println!(
        "{hosts:>5} hosts: {ran:>6} ms running and {merged:>5} ms merging ({:.2} ms a host), {:>4} MiB at most ({:.0} KiB a host)",
        each(ran + merged),
        peak >> 10,
        each(peak)
    );
}

/// Returns the processor time of this process in milliseconds.
fn processor_ms() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
