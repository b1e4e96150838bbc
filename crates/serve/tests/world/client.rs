//! The client of a world: the real one, over streams in memory.

use std::sync::Arc;

use plumb_block::{Completion, Device as _, Nanos, Pool, Queue, QueueOptions, Request, Time, Wait};
use plumb_serve::nbd::client::{NbdDevice, NegotiatedConnection, Negotiation, Options};
use plumb_serve::nbd::uri::Uri;

use super::network::Network;
use super::server::Server;

/// Depth of a queue.
const DEPTH: u32 = 12;

/// A client, first negotiating, then with queues.
pub(super) struct Client {
    time: Time,
    uri: Uri,
    negotiations: Vec<Negotiation>,
    negotiated: Vec<NegotiatedConnection>,
    queues: Vec<Box<dyn Queue>>,
}

impl Client {
    /// Connects to `server`, `connections` times.
    pub(super) fn connect(
        time: &Time,
        network: &Arc<Network>,
        server: &mut Server,
        connections: u64,
    ) -> Self {
        let uri: Uri = "nbd://world/disk".parse().unwrap();
        let negotiate = |_| {
            let (own, peer) = network.stream();
            server.accept(peer);
            Negotiation::new(uri.clone(), Box::new(own))
        };
        let negotiations = (0..connections).map(negotiate).collect();
        Self { time: time.clone(), uri, negotiations, negotiated: Vec::new(), queues: Vec::new() }
    }

    /// Returns true if requests can be submitted.
    pub(super) fn is_ready(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Returns the number of queues, one for each connection.
    pub(super) fn queues(&self) -> u64 {
        self.queues.len() as u64
    }

    /// Continues to negotiate; opens the queues once all connections are made.
    ///
    /// # Errors
    /// If a negotiation fails.
    pub(super) fn negotiate(&mut self, pool: &Pool) -> Result<bool, String> {
        let before = self.negotiations.len();
        let mut waiting = Vec::new();
        for mut negotiation in self.negotiations.drain(..) {
            match negotiation.advance() {
                None => waiting.push(negotiation),
                Some(outcome) => self.negotiated.push(outcome.map_err(|error| error.to_string())?),
            }
        }
        self.negotiations = waiting;
        if before > 0 && self.negotiations.is_empty() {
            let (count, connections) = (self.negotiated.len(), std::mem::take(&mut self.negotiated));
            let options =
                Options { time: self.time.clone(), drop_patience: Nanos::ZERO, ..Options::default() };
            let device =
                NbdDevice::over(&self.uri, options, connections).map_err(|error| error.to_string())?;
            let open = |_| device.open_queue(QueueOptions { depth: DEPTH, pool: pool.clone() });
            self.queues =
                (0..count).map(open).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        }
        Ok(self.negotiations.len() < before)
    }

    /// Submits a request; false if the queue is full.
    pub(super) fn submit(&mut self, queue: u64, request: Request) -> bool {
        self.queues[queue as usize].submit(request).is_ok()
    }

    /// Lets each queue send and receive, and returns the completions.
    ///
    /// # Errors
    /// If a queue breaks.
    pub(super) fn poll(&mut self) -> Result<Vec<Completion>, String> {
        let mut completions = Vec::new();
        for queue in &mut self.queues {
            queue.poll(Wait::NONE, &mut completions).map_err(|error| error.to_string())?;
        }
        Ok(completions)
    }
}
