//! The orders that a service takes, and its answers: one line of JSON each way on a unix socket.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use plumb_block::FailureKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::registry;

/// The longest line that is read.
const LINE_MAX: u64 = 1 << 16;
/// Time that an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for an order that requires no work: whoever looks at a device wants to know soon that it hangs.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for taking the device away: everything is made durable first, by a device that may be slow or not
/// answer.
const DETACH_TIMEOUT: Duration = Duration::from_secs(600);
/// Time that whoever connected may take to say what is to be done: meanwhile nobody else is heard.
const ORDER_TIMEOUT: Duration = Duration::from_secs(2);

/// Order to a service; `O` is an order that its device alone takes, marked in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order<O> {
    /// Say how the device is.
    Status,
    /// Serve it no longer.
    Detach {
        /// True if it ends even for those who use it.
        cut_off: bool,
    },
    /// An order that the device's [`Controls`](super::Controls) know.
    #[serde(untagged)]
    Own(O),
}

impl<O: DeserializeOwned> Order<O> {
    fn from_json(order: Value) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Detach {
            cut_off: bool,
        }
        Ok(match order.get("order").and_then(Value::as_str) {
            Some("status") => Self::Status,
            Some("detach") => {
                let Detach { cut_off } = serde_json::from_value(order)?;
                Self::Detach { cut_off }
            }
            _ => Self::Own(serde_json::from_value(order)?),
        })
    }
}

/// Answer of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer<S> {
    /// The order was carried out; the device is like this now.
    Done(S),
    /// The order was not carried out.
    Refused(RefusedOrder),
}

/// An order that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedOrder {
    /// Kind of reason.
    pub kind: RefusedKind,
    /// The reason.
    pub why: String,
}

/// Kind of reason not to carry out an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedKind {
    /// The order makes no sense for this drive, whenever it is given.
    Invalid,
    /// Not as the drive is now.
    UnsafeNow,
    /// The order was tried, and failed.
    Failed,
}

impl RefusedOrder {
    /// Creates an [`Invalid`](RefusedKind::Invalid).
    pub fn invalid(why: String) -> Self {
        Self { kind: RefusedKind::Invalid, why }
    }

    /// Creates an [`UnsafeNow`](RefusedKind::UnsafeNow).
    pub fn unsafe_now(why: String) -> Self {
        Self { kind: RefusedKind::UnsafeNow, why }
    }

    /// Creates a [`Failed`](RefusedKind::Failed).
    pub fn failed(why: String) -> Self {
        Self { kind: RefusedKind::Failed, why }
    }
}

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no such drive.
    #[error("there is no drive `{name}`{}; `plumb drive serve` makes one", there_are(.known))]
    NoSuchDrive {
        /// Name that was requested.
        name: String,
        /// Names of the drives that there are.
        known: Vec<String>,
    },
    /// The drive's process is gone: it was killed.
    #[error(
        "the process that served `{name}` is gone, and what its drive held in memory is lost as in a power cut; \
         `plumb drive detach {name}` clears up after it"
    )]
    Gone {
        /// The drive.
        name: String,
    },
    /// The drive's process exists but does not answer.
    #[error(
        "`{name}` did not answer within {timeout:?}: its process hangs or is delayed, and whether the \
         command was carried out is not known"
    )]
    Silent {
        /// The drive.
        name: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// The conversation failed.
    #[error("cannot talk to `{name}`")]
    Io {
        /// The drive.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The service said no.
    #[error("{name}: {}", refused.why)]
    Refused {
        /// The drive.
        name: String,
        /// Why.
        refused: RefusedOrder,
    },
}

impl ControlError {
    /// Returns the way in which a command fails that ends with it.
    pub const fn failure(&self) -> FailureKind {
        match self {
            Self::NoSuchDrive { .. } => FailureKind::Usage,
            Self::Refused { refused, .. } => match refused.kind {
                RefusedKind::Invalid => FailureKind::Usage,
                RefusedKind::UnsafeNow => FailureKind::Refused,
                RefusedKind::Failed => FailureKind::Failed,
            },
            Self::Gone { .. } | Self::Silent { .. } | Self::Io { .. } => FailureKind::Failed,
        }
    }
}

/// Largest number of drives that a message names.
const NAMED_MAX: usize = 5;

/// Names some of the drives that there are, and counts the others.
fn there_are(known: &[String]) -> String {
    let named = known[..known.len().min(NAMED_MAX)].join(", ");
    match known.len().saturating_sub(NAMED_MAX) {
        _ if known.is_empty() => String::new(),
        0 => format!(", but {named}"),
        more => format!(", but {named} and {more} more (`plumb drive status` lists all)"),
    }
}

/// Gives an order to the device `name` in `directory`; how it is then.
///
/// # Errors
/// If there is none of that name, it does not answer, or it refuses.
pub fn give<O: Serialize, S: DeserializeOwned>(
    directory: &Path,
    name: &str,
    order: &Order<O>,
) -> Result<S, ControlError> {
    let timeout = match order {
        Order::Status => STATUS_TIMEOUT,
        Order::Detach { .. } => DETACH_TIMEOUT,
        Order::Own(_) => ANSWER_TIMEOUT,
    };
    give_within(directory, name, order, timeout)
}

/// Gives an order as [`give`] does, with another timeout.
fn give_within<O: Serialize, S: DeserializeOwned>(
    directory: &Path,
    name: &str,
    order: &Order<O>,
    timeout: Duration,
) -> Result<S, ControlError> {
    let io = |source: io::Error| match source.kind() {
        // A socket reports an expired timeout with one of these kinds.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            ControlError::Silent { name: name.to_owned(), timeout }
        }
        _ => ControlError::Io { name: name.to_owned(), source },
    };
    let mut stream = match UnixStream::connect(registry::socket(directory, name)) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if registry::unserved().iter().any(|unserved| unserved == name) {
                return Err(ControlError::Gone { name: name.to_owned() });
            }
            let known = registry::names(directory).map_err(io)?;
            return Err(ControlError::NoSuchDrive { name: name.to_owned(), known });
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(ControlError::Gone { name: name.to_owned() });
        }
        Err(error) => return Err(io(error)),
    };
    stream.set_read_timeout(Some(timeout)).map_err(io)?;
    write_line(&mut stream, order).map_err(io)?;
    let answer: Answer<S> =
        serde_json::from_value(read_line(&stream).map_err(io)?).map_err(|error| io(error.into()))?;
    match answer {
        Answer::Done(status) => Ok(status),
        Answer::Refused(refused) => Err(ControlError::Refused { name: name.to_owned(), refused }),
    }
}

/// Receives one order from `stream`. Somebody who says nothing only looks whether this is alive.
///
/// # Errors
/// If the other side does not keep to the protocol or goes away.
pub(super) fn receive_order<O: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<Option<Order<O>>> {
    stream.set_read_timeout(Some(ORDER_TIMEOUT))?;
    stream.set_write_timeout(Some(ORDER_TIMEOUT))?;
    match read_line(stream).and_then(|order| Ok(Order::from_json(order)?)) {
        Ok(order) => Ok(Some(order)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => {
            let why = format!("this is not an order: {error}");
            write_line(stream, &Answer::<()>::Refused(RefusedOrder::invalid(why)))?;
            Err(error)
        }
    }
}

/// Writes an order or an answer as a line of JSON.
///
/// # Errors
/// If the other side is gone.
pub(super) fn write_line(stream: &mut UnixStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn read_line(stream: &UnixStream) -> io::Result<Value> {
    let mut line = String::new();
    BufReader::new(stream.take(LINE_MAX)).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other side hung up"));
    }
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use plumb_block::in_one_line;

    use super::*;

    #[test]
    fn a_drive_that_does_not_answer_is_told_from_one_that_hangs_up_and_no_cause_is_said_twice() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let listener = UnixListener::bind(registry::socket(at, "one")).unwrap();
        let silent =
            give_within::<_, ()>(at, "one", &Order::<()>::Status, Duration::from_millis(20)).unwrap_err();
        let said = in_one_line(&silent);
        assert!(said.contains("`one` did not answer within 20ms") && !said.contains("os error"), "{said}");
        let hangs_up = std::thread::spawn(move || {
            // The first one has given up.
            listener.accept().and_then(|_| listener.accept()).unwrap();
        });
        let gone =
            give_within::<_, ()>(at, "one", &Order::<()>::Status, Duration::from_secs(10)).unwrap_err();
        hangs_up.join().unwrap();
        let said = in_one_line(&gone);
        let cause = std::error::Error::source(&gone).unwrap().to_string();
        assert_eq!(said.matches(&cause).count(), 1, "{said}");
    }
}
