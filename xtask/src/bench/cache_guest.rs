//! Write-back cache compared with those of the kernel, in a guest whose backing device QEMU throttles.

use std::path::Path;

use anyhow::{Context, Result};

use crate::guest;

/// Figures of one subject: operations per second, and the 99th percentiles of writes and of their syncs in
/// milliseconds.
#[derive(Clone, Copy)]
struct Figures {
    rate: f64,
    p99: f64,
}

/// Prints the table.
pub(super) fn run(plumb: &Path) -> Result<()> {
    println!(
        "in a guest, 8 GiB with 150 operations and 150 MiB a second: 64 KiB random writes at depth 8 for 30 s; then synced 4 KiB \
         writes, then 4 KiB reads, 10 s each; /s (times, p99 in ms)"
    );
    let mut alone = None;
    for (name, notes) in guest::cache_speed(plumb)? {
        let parsed: Vec<_> = notes.iter().map(|note| parsed(note).context(note.clone())).collect();
        let figures = parsed.into_iter().collect::<Result<Vec<_>>>();
        let figures = match figures {
            Ok(figures) => figures,
            Err(error) => {
                println!("{name:<22} {error:#}");
                continue;
            }
        };
        let alone = alone.get_or_insert_with(|| figures.clone());
        let columns = figures
            .iter()
            .zip(&*alone)
            .map(|(got, own)| format!("{:>8.0} ({:>5.2}, {:>6.1})", got.rate, got.rate / own.rate, got.p99));
        println!("{name:<22} {}", columns.collect::<Vec<_>>().join("  "));
    }
    Ok(())
}

/// Parses `NAME RATE P99 P99-OF-SYNC`.
fn parsed(note: &str) -> Result<Figures> {
    let mut numbers = note.split_whitespace().skip(1).map(str::parse::<f64>);
    let mut next = || numbers.next().context("too few figures")?.context("no figure");
    let (rate, p99, sync) = (next()?, next()?, next()?);
    Ok(Figures { rate, p99: p99 + sync })
}
