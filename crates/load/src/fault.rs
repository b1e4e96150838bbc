//! Errors of a load: before the start ([`Error`]) and during the run ([`Fault`]).

use plumb_block::{Bytes, LbaRange, Nanos, Outcome};
use plumb_workload::Invalid;

use crate::in_flight::Kind;

/// Reason why a worker cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The workload is invalid.
    #[error("the workload cannot be run")]
    Workload(#[from] Invalid),
    /// The workload does not fit this device.
    #[error("the workload does not fit {device}: {refused}")]
    Unfit {
        /// Name of the device.
        device: String,
        /// Part of the workload that does not fit.
        refused: UnsupportedRequest,
    },
    /// The content of writes needs more memory than there is.
    #[error("the content of writes takes {wanted}: expected at most 1 GiB")]
    Memory {
        /// Requested amount.
        wanted: Bytes,
    },
    /// The source file of the writes cannot be read.
    #[error("cannot read the content for writes: {path}")]
    Source {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The device cannot open a queue, or there is no memory for it.
    #[error("cannot open a queue")]
    Device(#[from] plumb_block::Error),
}

/// Part of a workload that a device does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedRequest {
    /// A size or an offset is not a multiple of the logical block.
    #[error(
        "{field} is {}: expected a multiple of the logical block, {logical_block}; use one, or open the file or disk \
         through the page cache, where any length goes", in_bytes(*value)
    )]
    OffGrid {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: Bytes,
        /// Logical block of the device.
        logical_block: Bytes,
    },
    /// A request of a trace is not aligned to the logical block.
    #[error(
        "request {number} of the trace is {length} bytes at {offset}: expected multiples of the logical block, \
         {logical_block}; go through the page cache, or, if only offsets are off, round them with --trace-align"
    )]
    EventOffGrid {
        /// Number of the event on this target, from 1.
        number: u64,
        /// Offset in bytes.
        offset: u64,
        /// Length of the event in bytes.
        length: u64,
        /// Logical block of the device.
        logical_block: Bytes,
    },
    /// The workload trims, but the device does not support it.
    #[error("it trims, but the device takes no discards; leave the trims out")]
    NoDiscard,
    /// The range ends after the end of the device.
    #[error("the range ends at {end} bytes: expected at most the device's size, {size}")]
    PastTheEnd {
        /// End of the range in bytes.
        end: u64,
        /// Size of the device.
        size: Bytes,
    },
    /// Verified blocks carry a stamp, for which the logical block is too small.
    #[error(
        "lengths and offsets are multiples of only {logical_block}: verification needs multiples of at \
         least {least}, so that each block holds a stamp; use multiples of {least}, or leave verification out"
    )]
    BlockTooSmall {
        /// Logical block of the device.
        logical_block: Bytes,
        /// Size of a stamp in bytes.
        least: Bytes,
    },
}

/// Failure of a running load. Earlier results are in the [`TeamsFailure`](crate::TeamsFailure).
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A read or a write failed.
    #[error("{kind} of {} failed {at} into the run: {}", place.words(*range), in_words(*outcome))]
    Request {
        /// Device of the request.
        place: FaultPlace,
        /// Kind of the request.
        kind: Kind,
        /// Blocks of the request.
        range: LbaRange,
        /// Outcome of the request.
        outcome: Outcome,
        /// Time of the failure since the start of the run.
        at: Nanos,
    },
    /// A flush failed.
    #[error(
        "a flush of {device} failed {at} into the run: {}; nothing written since the last good flush can be trusted",
        in_words(*outcome)
    )]
    Flush {
        /// Name of the device.
        device: String,
        /// Outcome of the request.
        outcome: Outcome,
        /// Time of the failure since the start of the run.
        at: Nanos,
    },
    /// A request had no answer long after its deadline.
    #[error("no answer to a {kind} of {} within {waited}", place.words(*range))]
    Unanswered {
        /// Device of the request.
        place: FaultPlace,
        /// Kind of the request.
        kind: Kind,
        /// Blocks of the request.
        range: LbaRange,
        /// Time that the run waited.
        waited: Nanos,
    },
    /// A call to a queue does not return. The measurements of its worker are lost.
    #[error("worker {worker} hangs in its device's queue since {waited}; its measurements are lost")]
    Hung {
        /// Number of the worker.
        worker: usize,
        /// Time that the run waited.
        waited: Nanos,
    },
    /// The queue broke.
    #[error("the queue of worker {worker} broke")]
    Queue {
        /// Number of the worker.
        worker: usize,
        /// Error that the queue returned.
        source: plumb_block::Error,
    },
    /// The queue answered a request that was not submitted, or refuses requests although none is in flight.
    #[error("the queue of worker {worker} breaks its contract: {how}")]
    Contract {
        /// Number of the worker.
        worker: usize,
        /// Description of the violation.
        how: &'static str,
    },
    /// Virtual time cannot advance: neither the clock nor a request makes progress.
    #[error("the simulation is deadlocked at {at}: requests are in flight, but no event is pending")]
    Standstill {
        /// Virtual time at that moment.
        at: Nanos,
    },
    /// A thread could not be started, or panicked.
    #[error("worker {worker} has no thread: {why}")]
    Thread {
        /// Number of the worker.
        worker: usize,
        /// Description of what happened.
        why: String,
    },
}

/// Device of a request. Blocks are shown in bytes, since files are not addressed in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultPlace {
    /// Name of the device.
    pub device: String,
    /// Logical block of the device.
    pub logical_block: Bytes,
}

impl FaultPlace {
    /// Returns `8 KiB at byte 4096 of /srv/f`; for a flush, which has no blocks, `/srv/f`.
    fn words(&self, range: LbaRange) -> String {
        let in_bytes = |blocks: u64| blocks.saturating_mul(self.logical_block.0);
        match range.nlb {
            0 => self.device.clone(),
            nlb => format!("{} at byte {} of {}", Bytes(in_bytes(nlb)), in_bytes(range.lba.0), self.device),
        }
    }
}

impl Fault {
    /// Returns true if the device may still hold memory of requests, so that a wait for it might never end.
    pub(crate) fn is_silence(&self) -> bool {
        match self {
            Self::Unanswered { .. } | Self::Hung { .. } => true,
            Self::Request { outcome, .. } | Self::Flush { outcome, .. } => *outcome == Outcome::Unknown,
            _ => false,
        }
    }
}

/// Returns the exact number of bytes: a rounded number might look aligned when it is not.
fn in_bytes(bytes: Bytes) -> String {
    format!("{} bytes", bytes.0)
}

fn in_words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Failed(errno) => errno.to_string(),
        Outcome::Unknown => "no answer came".to_owned(),
        Outcome::PowerLost => "the device lost power".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Errno, Lba};

    use super::*;

    #[test]
    fn a_failed_request_names_its_device_and_byte() {
        let place = FaultPlace { device: "/srv/f".to_owned(), logical_block: Bytes(512) };
        let range = LbaRange::new(Lba(16), 8);
        let outcome = Outcome::Failed(Errno::EIO);
        let fault = Fault::Request { place: place.clone(), kind: Kind::Write, range, outcome, at: Nanos(1) };
        assert!(fault.to_string().starts_with("write of 4 KiB at byte 8192 of /srv/f failed"), "{fault}");
        let waited = Nanos::secs(1);
        let fault = Fault::Unanswered { place, kind: Kind::Flush, range: LbaRange::EMPTY, waited };
        assert_eq!(fault.to_string(), "no answer to a flush of /srv/f within 1 s");
    }
}
