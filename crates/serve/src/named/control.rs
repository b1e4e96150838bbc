//! Control protocol of a service: one order and one answer, each a frame on a unix socket.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use plumb_block::FailureKind;
use plumb_state::frame::{Decoder, send};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::registry;

/// Timeout for most answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for an order that requires no work, so that an unresponsive device is reported soon.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for detaching, which first makes everything durable on a device that may be slow or unresponsive.
const DETACH_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout for receiving an order after connecting; other clients are not served meanwhile.
const ORDER_TIMEOUT: Duration = Duration::from_secs(2);

/// Order to a service. `O` is the type of orders specific to its kind of device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order<O> {
    /// Report the status.
    Status,
    /// Stop serving.
    Detach {
        /// True if even users of the device are disconnected.
        cut_off: bool,
        /// [Identity](super::Controls::identity) of the device that is meant: a device with another one
        /// refuses.
        #[serde(skip_serializing_if = "Option::is_none")]
        identity: Option<String>,
    },
    /// Order specific to the device's [`Controls`](super::Controls).
    #[serde(untagged)]
    Own(O),
}

impl<'de, O: DeserializeOwned> Deserialize<'de> for Order<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Detach {
            cut_off: bool,
            identity: Option<String>,
        }
        let order = Value::deserialize(deserializer)?;
        let wrong = |error: serde_json::Error| D::Error::custom(error);
        Ok(match order.get("order").and_then(Value::as_str) {
            Some("status") => Self::Status,
            Some("detach") => {
                let Detach { cut_off, identity } = serde_json::from_value(order).map_err(wrong)?;
                Self::Detach { cut_off, identity }
            }
            _ => Self::Own(serde_json::from_value(order).map_err(wrong)?),
        })
    }
}

/// Answer of a service: the status if the order was executed.
pub type Answer<S> = Result<S, RefusedOrder>;

/// An order that was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedOrder {
    /// Kind of reason.
    pub kind: RefusedKind,
    /// The reason.
    pub why: String,
}

/// Reason category of a refused order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedKind {
    /// The order is never valid for this drive.
    Invalid,
    /// The order is not possible in the present state.
    UnsafeNow,
    /// The order was executed and failed.
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
        /// Names of existing drives.
        known: Vec<String>,
    },
    /// The drive's process was killed.
    #[error(
        "the process that served `{name}` is gone, and what its drive held in memory is lost as in a power cut; \
         `plumb drive detach {name}` clears up after it"
    )]
    Gone {
        /// The drive.
        name: String,
    },
    /// The drive's process is unreachable, or sent no answer.
    #[error("`{name}` gave no answer, so it is not known to have carried out the command")]
    NoAnswer {
        /// The drive.
        name: String,
        /// Error of the connection.
        source: io::Error,
    },
    /// The service refused.
    #[error("{name}: {}", refused.why)]
    Refused {
        /// The drive.
        name: String,
        /// Refusal.
        refused: RefusedOrder,
    },
}

impl ControlError {
    /// Returns the category of the failure.
    pub const fn failure(&self) -> FailureKind {
        match self {
            Self::NoSuchDrive { .. } => FailureKind::Usage,
            Self::Refused { refused, .. } => match refused.kind {
                RefusedKind::Invalid => FailureKind::Usage,
                RefusedKind::UnsafeNow => FailureKind::Refused,
                RefusedKind::Failed => FailureKind::Failed,
            },
            Self::Gone { .. } | Self::NoAnswer { .. } => FailureKind::Failed,
        }
    }
}

/// Maximum number of drives named in a message.
const NAMED_MAX: usize = 5;

/// Lists some of the existing drives, and counts the others.
fn there_are(known: &[String]) -> String {
    let named = known[..known.len().min(NAMED_MAX)].join(", ");
    match known.len().saturating_sub(NAMED_MAX) {
        _ if known.is_empty() => String::new(),
        0 => format!(", but {named}"),
        more => format!(", but {named} and {more} more (`plumb drive status` lists all)"),
    }
}

/// Sends an order to the device `name` in `directory`. Returns its status afterwards.
///
/// # Errors
/// If there is no such device, or it does not answer or refuses.
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

/// Sends an order as [`give`] does, with another timeout.
fn give_within<O: Serialize, S: DeserializeOwned>(
    directory: &Path,
    name: &str,
    order: &Order<O>,
    timeout: Duration,
) -> Result<S, ControlError> {
    let no_answer = |source| ControlError::NoAnswer { name: name.to_owned(), source };
    let mut stream = match UnixStream::connect(registry::socket(directory, name)) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if registry::unserved(directory).iter().any(|unserved| unserved == name) {
                return Err(ControlError::Gone { name: name.to_owned() });
            }
            let known = registry::names(directory).map_err(no_answer)?;
            return Err(ControlError::NoSuchDrive { name: name.to_owned(), known });
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(ControlError::Gone { name: name.to_owned() });
        }
        Err(error) => return Err(no_answer(error)),
    };
    stream.set_read_timeout(Some(timeout)).map_err(no_answer)?;
    send(&mut stream, order).map_err(no_answer)?;
    let answer: Answer<S> = Decoder::default().receive(&mut stream).map_err(no_answer)?;
    answer.map_err(|refused| ControlError::Refused { name: name.to_owned(), refused })
}

/// Receives one order from `stream`; `None` if the client only checks whether the service is alive.
///
/// # Errors
/// If the client violates the protocol or disconnects.
pub(super) fn receive_order<O: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<Option<Order<O>>> {
    stream.set_read_timeout(Some(ORDER_TIMEOUT))?;
    stream.set_write_timeout(Some(ORDER_TIMEOUT))?;
    match Decoder::default().receive(stream) {
        Ok(order) => Ok(Some(order)),
        Err(ended) if ended.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => {
            let why = format!("this is not an order: {error}");
            send(stream, &Answer::<()>::Err(RefusedOrder::invalid(why)))?;
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;
    use std::os::unix::net::UnixListener;

    use plumb_block::in_one_line;

    use super::*;

    #[test]
    fn whatever_is_wrong_with_an_answer_is_said_once_with_the_name_of_the_drive() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let listener = UnixListener::bind(registry::socket(at, "one")).unwrap();
        let asked = |timeout| {
            let error = give_within::<_, ()>(at, "one", &Order::<()>::Status, timeout).unwrap_err();
            let (said, cause) = (in_one_line(&error), std::error::Error::source(&error).unwrap().to_string());
            assert!(
                said.starts_with("`one` gave no answer, so it is not known to") && said.ends_with(&cause),
                "{said}"
            );
            assert_eq!(said.matches(&cause).count(), 1, "{said}");
            cause
        };
        // A busy machine hears late of the end of the time.
        let silent = asked(Duration::from_millis(20));
        assert!(silent.starts_with("it was silent for ") && silent.ends_with(" s"), "{silent}");
        let answers: [(&[u8], &str); 4] = [
            (
                b"{\"refused\":1}\n",
                "it does not speak plumb's protocol: `{\"refused\":1}` came, expected the length",
            ),
            (b"\0\0\0\x03{1}", "it sent a message that this version does not know"),
            (b"\0\0\0\x03{1", "the connection ended within a message, of which 6 bytes had arrived"),
            (b"", "the connection ended"),
        ];
        let server = std::thread::spawn(move || {
            // The first client has given up.
            listener.accept().unwrap();
            for (answer, _) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                Decoder::default().receive::<Value>(&mut stream).unwrap();
                stream.write_all(answer).unwrap();
            }
        });
        for (_, expected) in answers {
            let cause = asked(Duration::from_secs(60));
            assert!(cause.starts_with(expected), "{cause}");
        }
        server.join().unwrap();
    }

    #[test]
    fn whatever_is_no_order_is_refused_with_the_reason() {
        let long = u32::MAX.to_be_bytes();
        let orders: [(&[u8], &str); 4] = [
            (b"{\"order\":\"status\"}\n", "it does not speak plumb's protocol"),
            (&long, "it does not speak plumb's protocol"),
            (b"\0\0\0\x12{\"order\":\"detach\"}", "does not know: missing field `cut_off`"),
            (b"\0\0\0\x12{\"order\":", "within a message, of which 13 bytes had arrived"),
        ];
        for (sent, expected) in orders {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            ours.write_all(sent).unwrap();
            ours.shutdown(Shutdown::Write).unwrap();
            let error = receive_order::<Value>(&mut theirs).unwrap_err().to_string();
            drop(theirs);
            let mut answer = Vec::new();
            ours.read_to_end(&mut answer).unwrap();
            let answer = String::from_utf8_lossy(&answer).into_owned();
            assert!(error.contains(expected), "{error}");
            assert!(answer.contains("this is not an order: ") && answer.contains(expected), "{answer}");
        }
    }
}
