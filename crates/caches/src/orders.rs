//! Orders to served caches, which are found by name.

use std::io;
use std::path::PathBuf;

use plumb_block::{FailureKind, in_one_line};
use plumb_guard::cache::config::{self, CacheConfig};
use plumb_serve::named::control::{ControlError, Order, give};
use plumb_serve::named::forget;
use plumb_serve::{attach, ublk};
use plumb_state::places;
use plumb_text::shell_word;

use crate::leg::is_there;
use crate::served::{CacheOrder, CacheStatus};

/// Reason why a served cache did not execute an order.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// Refusal by the server, or a failed exchange with it.
    #[error(transparent)]
    Control(ControlError),
    /// No answer from the server in time.
    #[error(
        "{}; if it is stopped (state T in `ps`), `kill -CONT` resumes it; if one of its devices does not answer, the \
         kernel log says so; otherwise ask again, since it may be waiting for a flush. If you kill it, what was \
         acknowledged is in its log, unless a file of that was deleted",
        in_one_line(.0)
    )]
    Silent(ControlError),
    /// The server has another cache under this name.
    #[error(
        "{name}: the cache that is served under this name is {uuid}, not the one of this state directory: \
         stop that one first"
    )]
    Other {
        /// Common name of both caches.
        name: String,
        /// UUID of the served cache.
        uuid: String,
    },
    /// The control socket of a killed server could not be removed.
    #[error("cannot clear up after {name}")]
    ClearUp {
        /// Name of the cache.
        name: String,
        /// Error of removing it.
        source: io::Error,
    },
    /// The block device of a killed server could not be examined.
    #[error(transparent)]
    Export(#[from] plumb_serve::ExportError),
}

impl OrderError {
    /// Returns how a command fails with this error.
    pub fn failure(&self) -> FailureKind {
        match self {
            Self::Control(error) | Self::Silent(error) => error.failure(),
            Self::Other { .. } => FailureKind::Refused,
            Self::ClearUp { .. } | Self::Export(_) => FailureKind::Failed,
        }
    }
}

/// Returns the directory of the control sockets of caches, which is not that of drives.
pub fn sockets() -> PathBuf {
    places::cache_sockets(&places::run())
}

/// Gives an order to a served cache; `None` if the cache is not served. A server is found by name: if it
/// serves the cache of another configuration, it refuses to detach, and gets no other order. A server that is
/// ending may not tell its status, and gets the order nevertheless. Leftovers of a killed server are removed,
/// and reported through `say`.
///
/// # Errors
/// See [`OrderError`].
pub fn order(
    name: &str,
    order: &Order<CacheOrder>,
    say: &dyn Fn(&str),
) -> Result<Option<CacheStatus>, OrderError> {
    let ours = CacheConfig::load(&config::directory(), name).ok();
    let is_ours =
        |status: &CacheStatus| ours.as_ref().is_none_or(|ours| ours.uuid.to_string() == status.uuid);
    let status = match order {
        Order::Detach { cut_off, .. } => {
            let identity = ours.as_ref().map(CacheConfig::block_device_identity);
            return ask(name, &Order::Detach { cut_off: *cut_off, identity }, say);
        }
        Order::Status => ask(name, order, say)?,
        _ => give(&sockets(), name, &Order::<CacheOrder>::Status).ok(),
    };
    match status {
        Some(other) if !is_ours(&other) => Err(OrderError::Other { name: name.to_owned(), uuid: other.uuid }),
        status if matches!(order, Order::Status) => Ok(status),
        _ => ask(name, order, say),
    }
}

/// Gives an order to the server of this name; `None` if there is none.
fn ask(name: &str, order: &Order<CacheOrder>, say: &dyn Fn(&str)) -> Result<Option<CacheStatus>, OrderError> {
    match give(&sockets(), name, order) {
        Ok(status) => Ok(Some(status)),
        Err(ControlError::NoSuchDrive { .. }) => Ok(None),
        Err(ControlError::Gone { .. }) => {
            say(&after_kill(name)?);
            Ok(None)
        }
        Err(ControlError::NoAnswer { source, name }) if source.kind() == io::ErrorKind::TimedOut => {
            Err(OrderError::Silent(ControlError::NoAnswer { source, name }))
        }
        Err(error) => Err(OrderError::Control(error)),
    }
}

/// Removes the leftovers of a killed server, and returns a message about what stays. Its devices are free,
/// and acknowledged data is in the log if its devices are present.
fn after_kill(name: &str) -> Result<String, OrderError> {
    let kept = attach::sweep_of(name)?;
    forget(&sockets(), name).map_err(|source| OrderError::ClearUp { name: name.to_owned(), source })?;
    let config = CacheConfig::load(&config::directory(), name).ok();
    let missing = config.iter().flat_map(|config| &config.legs).find(|leg| !is_there(leg));
    let kept_in = match missing {
        None => "everything acknowledged is in the log".to_owned(),
        Some(leg) => format!("what only its log held is there if {leg}, which is missing, comes back"),
    };
    // A ublk device needs root, so an error of `waiting` means that none is left.
    let waiting =
        config.as_ref().and_then(|config| ublk::waiting(&config.block_device_identity()).ok().flatten());
    let left = match (waiting, kept) {
        (Some(number), _) => format!(
            "/dev/ublkb{number} waits for the next server (`plumb cache serve {} --ublk`), and so do all requests to it",
            shell_word(name)
        ),
        (None, None) => "what it left behind was removed".to_owned(),
        (None, Some(why)) => {
            format!("its block device returns errors, and is removed when its last user closes it ({why})")
        }
    };
    Ok(format!("the process that served {name} was killed: {kept_in}; {left}"))
}
