//! The exports of a server, with what all connections to them share.

use std::sync::Arc;

use plumb_block::Nanos;

use super::buffers::Budget;
use super::connection::{Connection, Setting};
use super::export::{Export, ServedExport};
use super::handshake::{Encryption, Terms};
use super::transmission::Limits;
use super::{Options, ServeError};
use crate::nbd::wire::STRING_MAX_BYTES;

/// Time that a refused client may take to hear it.
const REFUSAL_TIMEOUT: Nanos = Nanos::secs(2);

/// Exports that connections may be made to, by whichever transport.
pub struct Exports {
    pub(super) served: Arc<[Arc<ServedExport>]>,
    pub(super) options: Options,
    budget: Arc<Budget>,
}

impl Exports {
    /// Offers `exports`, with the depth, the memory, the clock, the certificates and the handshake timeout of
    /// `options`.
    ///
    /// # Errors
    /// If there are none, or two have one name.
    pub fn new(exports: Vec<Export>, options: Options) -> Result<Self, ServeError> {
        check_names(&exports)?;
        let served = |export| Arc::new(ServedExport::new(export, Arc::clone(&options.clock)));
        Ok(Self {
            served: exports.into_iter().map(served).collect(),
            budget: Budget::new(options.memory_max),
            options,
        })
    }

    /// Returns a connection of a client that has just come.
    pub fn connect(&self) -> Connection {
        self.connection(None, self.options.handshake_timeout.into())
    }

    /// Returns a connection of a client that is told that there is no room for it.
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
