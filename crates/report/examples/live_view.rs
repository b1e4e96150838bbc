//! The live view with made-up figures, to look at: `cargo run --example live_view`, until q, for a minute, or with the
//! argument `panic` until it panics.

use std::time::{Duration, Instant};

use plumb_report::Style;
use plumb_report::tui::{
    LiveApplication, LivePercentiles, LivePhase, LiveSample, LiveStorage, LiveTarget, LiveTerminal, LiveView,
};

/// One disk behind a write-back cache that fills up, beside a plain one.
fn sample(elapsed: f64) -> LiveSample {
    let target = |name: &str, operations: f64| LiveTarget {
        name: name.to_owned(),
        application: LiveApplication {
            operations: operations as u64,
            bytes: operations as u64 * 65_536,
            flushes: operations as u64 / 10,
            latency: LivePercentiles {
                p50: Some(700e-6),
                p99: Some(5e-3),
                p999: Some(20e-3),
                max: Some(80e-3),
            },
            sync: LivePercentiles { p50: Some(4e-3), p99: Some(30e-3), ..LivePercentiles::default() },
        },
        storage: Some(LiveStorage {
            reads: 0,
            writes: operations as u64,
            bytes: operations as u64 * 65_536,
            flushes: Some(operations as u64 / 10),
        }),
        shares_devices: false,
    };
    let cached =
        1254.0 * elapsed.min(30.0) + 220.0 * (elapsed - 30.0).max(0.0) + 300.0 * (elapsed / 2.0).sin();
    let phase = if elapsed < 5.0 { LivePhase::WarmUp } else { LivePhase::Measuring };
    let targets = vec![target("tiered + cache", cached.max(0.0)), target("plain HDD", 200.0 * elapsed)];
    LiveSample { elapsed, expected: Some(60.0), phase, targets, remarks: Vec::new() }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let panics = std::env::args().any(|argument| argument == "panic");
    let style = Style { width: 80, colour: true, unicode: true, ..Style::PLAIN };
    let start = Instant::now();
    let mut terminal = LiveTerminal::open()?;
    let mut view = LiveView::new("plumb load", style);
    while start.elapsed() < Duration::from_secs(60) {
        let now = sample(start.elapsed().as_secs_f64());
        view.feed(now.clone());
        terminal.draw(&view)?;
        assert!(!panics || now.elapsed < 1.0, "a panic, as asked");
        if terminal.asks_to_stop(Duration::from_millis(100))? {
            break;
        }
    }
    drop(terminal);
    Ok(())
}
