//! Self-test of whether this machine records concurrent requests as concurrent. It runs on a separate drive
//! before the recording.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Barrier;

use plumb_block::{Bytes, Op, Pool, PoolShape};
use plumb_linux::isolated_thread;
use rustix::fs::OFlags;

use super::drive::Drive;
use crate::error::{Result, cannot};
use crate::file_system::FileSystemOptions;
use crate::recording::{Event, Recording};

/// Number of concurrent writes.
const WRITES: usize = 8;
/// Number of attempts: threads may be late on a busy machine.
const ROUNDS: usize = 100;
const LENGTH: Bytes = Bytes::kib(4);

/// Returns the reason why requests may have been recorded one at a time; `None` if concurrent writes and a
/// concurrent flush were observed.
pub(super) fn serialised_because() -> Result<Option<String>> {
    let drive = Drive::blank(Bytes::mib(1), LENGTH, &FileSystemOptions::default(), None);
    let mut attachment = drive.attach(None)?;
    let path = &attachment.paths()[0];
    let written = isolated_thread::run(|| write_and_flush(path)).and_then(|written| written);
    written.map_err(cannot(format!("write to {} for the self-test", path.display())))?;
    attachment.detach()?;
    let InFlightPeak { writes, beside_flush } = InFlightPeak::from_recording(&drive.recorder.recording());
    if writes >= WRITES && beside_flush > 0 {
        return Ok(None);
    }
    Ok(Some(format!(
        "the self-test sent {WRITES} writes at once and a flush beside them, {ROUNDS} times: at most {writes} were in flight \
         together, and {beside_flush} beside a flush"
    )))
}

/// Maximum numbers of requests in flight.
#[derive(Debug, PartialEq, Eq)]
struct InFlightPeak {
    writes: usize,
    /// Writes in flight when a flush was submitted.
    beside_flush: usize,
}

impl InFlightPeak {
    fn from_recording(recording: &Recording) -> Self {
        let mut seen = Self { writes: 0, beside_flush: 0 };
        let mut in_flight = HashSet::new();
        for (_, event) in &recording.events {
            match event {
                Event::Submitted(id) => match recording.commands[id.0 as usize].op {
                    Op::Flush => seen.beside_flush = seen.beside_flush.max(in_flight.len()),
                    _ => {
                        in_flight.insert(*id);
                        seen.writes = seen.writes.max(in_flight.len());
                    }
                },
                Event::Completed(id) | Event::Failed(id) => {
                    in_flight.remove(id);
                }
                _ => {}
            }
        }
        seen
    }
}

fn write_and_flush(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)?;
    let shape = PoolShape { buffer: LENGTH, count: WRITES as u32, alignment: LENGTH };
    let pool = Pool::new(shape).map_err(io::Error::other)?;
    let start = Barrier::new(WRITES + 1);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITES as u64)
            .map(|index| {
                let (file, pool, start) = (&file, &pool, &start);
                scope.spawn(move || -> io::Result<()> {
                    let buffer = pool.take(LENGTH);
                    let mut outcome = Ok(());
                    // A failed thread still comes to the barrier, since the others wait for it.
                    for _ in 0..ROUNDS {
                        start.wait();
                        let bytes = buffer.as_deref().unwrap_or_default();
                        outcome = outcome.and(file.write_all_at(bytes, index * LENGTH.0));
                    }
                    outcome
                })
            })
            .collect();
        let mut outcome = Ok(());
        for _ in 0..ROUNDS {
            start.wait();
            outcome = outcome.and(file.sync_all());
        }
        writers.into_iter().fold(outcome, |outcome, writer| {
            outcome.and(writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}

#[cfg(test)]
mod tests {
    use plumb_block::{Lba, LbaRange, Nanos};

    use super::*;

    #[test]
    fn what_comes_one_by_one_is_told_from_what_comes_together() {
        let mut recording = Recording::of_blank(Bytes::mib(1), Bytes(512));
        let write = |recording: &mut Recording| {
            recording.submit(Nanos(0), Op::Write { fua: false }, LbaRange::new(Lba(0), 1), &[1; 512])
        };
        for _ in 0..3 {
            let id = write(&mut recording);
            recording.happened(Nanos(0), Event::Completed(id));
            recording.submit(Nanos(0), Op::Flush, LbaRange::EMPTY, &[]);
        }
        assert_eq!(InFlightPeak::from_recording(&recording), InFlightPeak { writes: 1, beside_flush: 0 });
        write(&mut recording);
        write(&mut recording);
        recording.submit(Nanos(0), Op::Flush, LbaRange::EMPTY, &[]);
        assert_eq!(InFlightPeak::from_recording(&recording), InFlightPeak { writes: 2, beside_flush: 2 });
    }
}
