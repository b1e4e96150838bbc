//! Exports of a server, with the state shared by all connections.

use std::sync::Arc;

use plumb_block::Nanos;

use super::buffers::Budget;
use super::connection::{Connection, Setting};
use super::export::{Export, ServedExport};
use super::handshake::{Encryption, Terms};
use super::transmission::Limits;
use super::{Options, ServeError};
use crate::nbd::wire::STRING_MAX_BYTES;

/// Timeout for sending a refusal to a client.
const REFUSAL_TIMEOUT: Nanos = Nanos::secs(2);

/// Exports for connections over any transport.
pub struct Exports {
    pub(super) served: Arc<[Arc<ServedExport>]>,
    pub(super) options: Options,
    budget: Arc<Budget>,
}

impl Exports {
    /// Creates the exports with the depth, memory, clock, certificates and handshake timeout of `options`.
    ///
    /// # Errors
    /// If there are none, or two have the same name.
    pub fn new(exports: Vec<Export>, options: Options) -> Result<Self, ServeError> {
        check_names(&exports)?;
        let served = |export| Arc::new(ServedExport::new(export, Arc::clone(&options.clock)));
        Ok(Self {
            served: exports.into_iter().map(served).collect(),
            budget: Budget::new(options.memory_max),
            options,
        })
    }

    /// Creates a connection for a new client.
    pub fn connect(&self) -> Connection {
        self.connection(None, self.options.handshake_timeout.into())
    }

    /// Creates a connection that only refuses its client.
    pub(super) fn refuse(&self) -> Connection {
        let limit = self.options.connections_max;
        let refusal = format!("the server has all of its {limit} connections: try again later");
        self.connection(Some(refusal), REFUSAL_TIMEOUT)
    }

    fn connection(&self, refusal: Option<String>, timeout: Nanos) -> Connection {
        let encryption =
            if self.options.tls.is_some() { Encryption::Required } else { Encryption::Unavailable };
        Connection::new(Setting {
            terms: Terms { exports: Arc::clone(&self.served), encryption, refusal },
            limits: Limits { depth: self.options.depth.max(1), budget: Arc::clone(&self.budget) },
            tls: self.options.tls.as_ref().map(|tls| Arc::clone(&tls.config)),
            until: self.options.clock.now().saturating_add(timeout),
        })
    }
}

fn check_names(exports: &[Export]) -> Result<(), ServeError> {
    let fail = |name: &str, why| Err(ServeError::Export { name: name.to_owned(), why });
    if exports.is_empty() {
        return fail("", "there are no exports");
    }
    for (index, export) in exports.iter().enumerate() {
        let name = &export.name;
        if name.len() > STRING_MAX_BYTES || name.contains('\0') {
            return fail(name, "the name is longer than 4096 bytes or has a NUL in it");
        }
        if exports[..index].iter().any(|other| other.name == *name) {
            return fail(name, "there are two exports of this name");
        }
    }
    Ok(())
}
