//! A gateway that records queries and answers of drives, for `show --explain`.

use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::Nanos;
use plumb_linux::probe::{Probe, ProbedDevice, Reply, Request};
use plumb_linux::tree::Tree;

use super::{Change, Disk, Gateway, GatewayError, Query};

/// A query and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Name of the disk.
    pub disk: String,
    /// Query.
    pub question: String,
    /// Bytes of the answer, or the reason why there is none.
    pub answer: Result<Vec<u8>, String>,
}

/// Forwards everything, and records queries.
pub struct RecordingGateway {
    inner: Arc<dyn Gateway>,
    exchanges: Mutex<Vec<Exchange>>,
}

impl RecordingGateway {
    /// Creates a gateway that forwards to `inner`.
    pub fn new(inner: Arc<dyn Gateway>) -> Self {
        Self { inner, exchanges: Mutex::default() }
    }

    /// Records each query once, since survey and drive reading send the same ones.
    fn note(&self, exchange: Exchange) {
        let mut all = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&exchange) {
            all.push(exchange);
        }
    }

    /// Returns all queries in order.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Probe for RecordingGateway {
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply {
        let reply = self.inner.probe().ask(device, request);
        // The kernel log is not an answer of a drive.
        if request != Request::KernelLog {
            let answer = reply.clone().map_err(|error| error.to_string());
            self.note(Exchange { disk: device.name.to_owned(), question: request.to_string(), answer });
        }
        reply
    }
}

impl Gateway for RecordingGateway {
    fn tree(&self) -> &dyn Tree {
        self.inner.tree()
    }

    fn probe(&self) -> &dyn Probe {
        self
    }

    fn ask(&self, disk: &Disk, query: &Query) -> Result<Vec<u8>, GatewayError> {
        let reply = self.inner.ask(disk, query);
        let answer = reply.clone().map_err(|error| error.to_string());
        self.note(Exchange { disk: disk.name.clone(), question: in_words(query), answer });
        reply
    }

    fn carry_out(&self, disk: &Disk, change: &Change) -> Result<(), GatewayError> {
        self.inner.carry_out(disk, change)
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn sleep(&self, time: Nanos) {
        self.inner.sleep(time);
    }
}

fn in_words(query: &Query) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    match query {
        Query::Scsi { cdb, .. } => format!("SG_IO {}", hex(cdb)),
        Query::ScsiSense { cdb, .. } => format!("SG_IO {} (sense)", hex(cdb)),
        Query::NvmeAdmin { command, .. } => {
            let words: Vec<String> = command.cdw.iter().map(|word| format!("{word:08x}")).collect();
            format!(
                "NVMe admin {:02x} nsid {:08x} cdw10-15 {}",
                command.opcode,
                command.nsid,
                words.join(" ")
            )
        }
    }
}
