//! Programs on files of a simulated drive: one thread, the page cache and the file system of a host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{
    Bytes, Clock as _, FileStore as _, Nanos, OpenOptions, StorageSnapshot, Time, VirtualClock,
};
use plumb_linux::FileOptions;
use plumb_measure::{ApplicationSide, FlushWrites, storage_side};
use plumb_report::document::comparison::Counts;
use plumb_report::document::{CpuSeconds, Sides};
use plumb_sim::Handle;
use plumb_sim::files::{Host, SimulatedFiles};
use plumb_targets::{Intent, Name, TargetRequest, open_simulated};
use plumb_trial::TrialError;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::setting::failed;

/// Host of a simulated drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostName {
    Server,
    #[serde(rename = "desktop-2002")]
    Desktop2002,
}

/// A file on a simulated file system: written, synced, then accessed in passes, call by call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Passes {
    pub(crate) drive: String,
    pub(crate) host: HostName,
    #[serde(default)]
    pub(crate) cold: bool,
    pub(crate) file_mib: u64,
    /// Length of the calls that first write the file.
    pub(crate) piece_kib: u64,
    pub(crate) block_kib: u64,
    /// Requests that the field report had in flight.
    pub(crate) depth: u64,
    /// Passes in their order; the figures are those of the last.
    pub(crate) pass: Vec<Pass>,
}

/// One pass over the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pass {
    pub(crate) write: bool,
    /// Seconds of random access; without it, each block is accessed once, in steps of `step` blocks.
    pub(crate) random_seconds: Option<u64>,
    #[serde(default)]
    pub(crate) step: u64,
}

/// A file system on a simulated drive.
pub(crate) struct SimulatedHost {
    pub(crate) files: SimulatedFiles,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) handle: Handle,
}

impl SimulatedHost {
    /// Creates an empty file system on a simulated drive.
    ///
    /// # Errors
    /// If there is no such drive.
    pub(crate) fn new(drive: &str, host: HostName, cold_after_syncfs: bool) -> Result<Self, TrialError> {
        let host = match host {
            HostName::Server => Host::SERVER,
            HostName::Desktop2002 => Host::DESKTOP_2002,
        };
        let (name, options) = (Name::parse(drive)?, FileOptions::write_direct());
        let wanted = TargetRequest { name, intent: Intent::WRITE, options };
        let clock: Arc<VirtualClock> = Arc::default();
        let (opened, handle) = open_simulated(&wanted, &Time::Virtual(Arc::clone(&clock)))?;
        let files = SimulatedFiles::new(opened.device, &clock, Host { cold_after_syncfs, ..host });
        Ok(Self { files: files.map_err(|error| failed(&error))?, clock, handle })
    }

    /// Reads the counters of the drive.
    pub(crate) fn drive(&self) -> plumb_block::Result<StorageSnapshot> {
        self.handle.counters().read()
    }

    /// Makes passes over a file, one call at a time: memory answers before a second concurrent call could
    /// begin. Returns the counts of the last pass, and the bytes that are not on the drive at its end: those
    /// of dirty pages, and those that write-back has passed on.
    ///
    /// # Errors
    /// Fails with the error of the first failed call.
    pub(crate) fn passes(&self, of: &Passes, seed: u64, stop: &AtomicBool) -> plumb_block::Result<Value> {
        let (files, mut chance) = (&self.files, Xoshiro256PlusPlus::seed_from_u64(seed));
        let (size, piece, length) = (of.file_mib << 20, of.piece_kib << 10, of.block_kib << 10);
        let create = OpenOptions { create: true, ..OpenOptions::default() };
        let file = files.open("study.dat".as_ref(), create)?;
        for offset in (0..size).step_by(piece as usize) {
            files.write_at(file, Bytes(offset), &vec![0; piece as usize])?;
        }
        files.syncfs()?;
        let (blocks, mut block) = (size / length, vec![0_u8; length as usize]);
        let mut counts = Counts::default();
        for pass in &of.pass {
            let (before, mut operations) = (self.drive()?, 0_u64);
            let is_over = |operations| match pass.random_seconds {
                Some(seconds) => self.clock.now().since(before.at) >= Nanos::secs(seconds),
                None => operations == blocks,
            };
            while !(is_over(operations) || operations.is_multiple_of(1 << 20) && stop.load(Ordering::Relaxed))
            {
                let number = match pass.random_seconds {
                    Some(_) => chance.next_u64() % blocks,
                    None => operations * pass.step % blocks,
                };
                match pass.write {
                    true => drop(files.write_at(file, Bytes(number * length), &block)?),
                    false => drop(files.read_at(file, Bytes(number * length), &mut block)?),
                }
                operations += 1;
            }
            counts = counted(&before, &self.drive()?, operations, of.depth);
        }
        let (before, dirty) = (counted_writes(&self.drive()?), files.dirty_bytes().0);
        debug_assert!(dirty <= size, "{dirty} dirty bytes of a file of {size}");
        files.syncfs()?;
        // Pages that write-back has passed on, some of which may be dirty again.
        let under_way = (counted_writes(&self.drive()?) - before).saturating_sub(dirty);
        Ok(json!({ "counts": counts, "dirty_bytes": dirty, "under_way_bytes": under_way }))
    }
}

fn counted_writes(drive: &StorageSnapshot) -> u64 {
    drive.devices.iter().map(|device| device.write_bytes.0).sum()
}

/// Returns the counts of one thread and the drive between two readings of the drive's counters.
fn counted(before: &StorageSnapshot, after: &StorageSnapshot, operations: u64, depth: u64) -> Counts {
    let seconds = after.at.since(before.at).as_secs_f64();
    let application = ApplicationSide { operations, seconds, ..ApplicationSide::default() };
    let sides = Sides {
        storage: storage_side(before, after, FlushWrites::NotCounted).ok(),
        depth: Some(depth),
        threads: Some(1),
        cpu: Some(CpuSeconds { user: seconds, system: 0.0 }),
        ..Sides::of_application(application)
    };
    Counts { page_cache: true, operation_seconds: seconds, ..Counts::from_sides(&sides) }
}
