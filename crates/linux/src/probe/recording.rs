//! A probe that records every answer of another one.

use std::sync::{Mutex, PoisonError};

use super::{Probe, ProbedDevice, RecordedProbe, Reply, Request};

/// Forwards every question to another probe and records the answers, including refusals.
#[derive(Debug)]
pub struct RecordingProbe<'a, P: ?Sized> {
    probe: &'a P,
    record: Mutex<RecordedProbe>,
}

impl<'a, P: Probe + ?Sized> RecordingProbe<'a, P> {
    /// Creates a recorder for `probe` with an empty recording.
    pub fn new(probe: &'a P) -> Self {
        Self { probe, record: Mutex::new(RecordedProbe::new()) }
    }

    /// Returns the recording.
    pub fn into_recorded(self) -> RecordedProbe {
        self.record.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Probe + ?Sized> Probe for RecordingProbe<'_, P> {
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply {
        let reply = self.probe.ask(device, request);
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.put(device.name, request, reply.clone());
        reply
    }
}
