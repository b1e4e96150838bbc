//! Runs a load on a simulated drive in virtual time: synced writes, with the drive's write cache on and off.
//!
//! ```sh
//! cargo run -p plumb-examples --bin load_drive
//! ```

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Nanos, Time, VirtualClock};
use plumb_load::{Event, LoadOutcome, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::kernel::{self, Flushes};
use plumb_sim::model::Model;
use plumb_workload::{ByteRange, Durability, Stop, Workload};

/// Returns how many synced writes a second the drive takes for ten seconds of its own time.
///
/// # Errors
/// If there is no such model, or the load fails.
fn writes_per_second(model: &str, wce: bool) -> Result<f64, Box<dyn Error>> {
    let time = Time::Virtual(Arc::new(VirtualClock::new()));
    let model = Model::named(model)?;
    let drive = Drive::new(&model, DriveOptions { wce: Some(wce), ..DriveOptions::default() })?;
    // Linux sends a flush only where it knows of a volatile cache.
    let handle = Handle::new(drive, time.clone());
    let device = kernel::above(handle.device(), &time, Flushes::AsLinux);

    let range = ByteRange { offset: Bytes(0), length: Bytes::gib(1) };
    let workload = Workload {
        write_percent: 100,
        durability: Durability { flush_every: NonZeroU32::new(1), ..Durability::default() },
        stop: Stop::after(Nanos::secs(10)),
        ..Workload::over(range, Bytes::kib(4))
    };
    let worker = Worker::new(&*device, &workload, WorkerOptions::default())?;

    let never = AtomicBool::new(false);
    let mut ignored = |_: &Event<'_>| {};
    let teams = run_teams(vec![Team::single(worker)], &RunOptions::whole(time, &never), &mut ignored)?;
    let outcomes = teams.iter().flat_map(|team| &team.workers).map(|worker| &worker.outcome);
    Ok(LoadOutcome::together(outcomes).application().iops)
}

fn main() -> Result<(), Box<dyn Error>> {
    for (words, wce) in [("on", true), ("off", false)] {
        let rate = writes_per_second("he8-media-cache", wce)?;
        println!("he8-media-cache, write cache {words}: {rate:.1} synced writes a second");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::writes_per_second;

    #[test]
    fn a_drive_that_saves_its_memory_with_its_spindle_is_faster_without_its_volatile_cache() {
        let on = writes_per_second("he8-media-cache", true).expect("a load");
        let off = writes_per_second("he8-media-cache", false).expect("a load");
        assert!(off > on * 1.5, "{on} and {off}");
    }
}
