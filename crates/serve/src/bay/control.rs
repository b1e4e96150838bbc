//! The orders that a bay takes, and its answers: one line of JSON each way on a unix socket.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use plumb_sim::contents::CutReport;
use serde::{Deserialize, Serialize};

use super::{place, remains};

/// The longest line that is read.
const LINE_MAX: u64 = 1 << 16;
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The same for taking the drive away: everything is made durable first, by a drive that may be slow or not answer.
const DETACHED_WITHIN: Duration = Duration::from_secs(600);
/// How long whoever connected may take to say what is to be done: meanwhile nobody else is heard.
const ORDER_WITHIN: Duration = Duration::from_secs(2);

/// What a bay is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Say how the drive is.
    Status,
    /// Cut the power: now, or when this says ([`CutWhen`](plumb_sim::cut::CutWhen)).
    Cut {
        /// `now`, `write=7`, `flush:3:submitted..flush:3:completed`.
        when: String,
    },
    /// Take back a cut that waits for its moment; nothing is done if none does.
    Disarm,
    /// Turn the power on again.
    PowerOn,
    /// Switch the write cache.
    Set {
        /// On or off.
        wce: bool,
    },
    /// Set a fault.
    Fault {
        /// As [`Fault`](plumb_sim::fault::Fault) is written.
        fault: String,
    },
    /// Take all faults away.
    ClearFaults,
    /// Take the drive out of its bay: no more exports.
    Detach {
        /// Even from those who use it.
        cut_off: bool,
    },
}

/// How a drive is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Always [`Status::SCHEMA`].
    pub schema: String,
    /// The name of the drive.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Whether it has power.
    pub power: bool,
    /// Whether its write cache is on; null if there is none to switch.
    pub wce: Option<bool>,
    /// Seconds since the bay was opened.
    pub now: f64,
    /// Capacity in bytes.
    pub size: u64,
    /// Bytes that a power cut now would put at risk.
    pub dirty_bytes: u64,
    /// Reads done.
    pub reads: u64,
    /// Writes and write-zeroes done.
    pub writes: u64,
    /// Flushes that reached the drive and were answered.
    pub flushes: u64,
    /// Flushes that a driver in front of the drive answered itself.
    pub flushes_dropped: u64,
    /// Writes with FUA.
    pub fua_writes: u64,
    /// Discards done.
    pub discards: u64,
    /// Power cuts until now.
    pub cuts: u64,
    /// When the power will be cut, as it was asked for; null if no cut waits for its moment.
    pub cut_armed: Option<String>,
    /// Blocks whose acknowledged contents the last power cut took away; null before the first.
    pub lost_at_last_cut_blocks: Option<u64>,
    /// Of them, blocks that the drive had said were durable: zero for one that does not lie.
    pub lost_although_durable_blocks: Option<u64>,
    /// What else the last power cut did; null before the first.
    pub last_cut: Option<LastCut>,
    /// Whether a flush has failed since the power came on, so that no later one succeeds.
    pub latched: bool,
    /// The faults that are set.
    pub faults: Vec<String>,
    /// The first NBD URI, if it is exported so.
    pub nbd: Option<String>,
    /// All of them.
    pub nbd_uris: Vec<String>,
    /// How many NBD clients are connected.
    pub nbd_clients: u64,
    /// The loop device, if it is attached.
    pub device: Option<String>,
    /// The control socket.
    pub control: String,
    /// The process that holds it.
    pub pid: u32,
}

/// What a power cut did to the commands that it met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCut {
    /// Commands that were in flight.
    pub in_flight: u64,
    /// Commands that were answered and not durable.
    pub at_risk: u64,
    /// Of both, those of which all blocks survived.
    pub survived: u64,
    /// Of both, those of which some blocks survived.
    pub torn: u64,
    /// Blocks that cannot be read any more.
    pub unreadable_blocks: u64,
    /// Blocks torn inside.
    pub torn_inside_blocks: u64,
    /// Writes of which the ends of each 4 KiB are missing.
    pub shorn: u64,
    /// Writes that landed elsewhere.
    pub misdirected: u64,
    /// Blocks that held something and over which those landed.
    #[serde(default)]
    pub misdirected_over_blocks: u64,
}

impl From<&CutReport> for LastCut {
    fn from(report: &CutReport) -> Self {
        Self {
            in_flight: report.in_flight,
            at_risk: report.at_risk,
            survived: report.survived,
            torn: report.torn,
            unreadable_blocks: report.unreadable_blocks,
            torn_inside_blocks: report.torn_inside_blocks,
            shorn: report.shorn,
            misdirected: report.misdirected,
            misdirected_over_blocks: report.misdirected_over_blocks,
        }
    }
}

impl Status {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/drive-status/1";
    /// The same of the document that says how a drive is that has just been made.
    pub const SCHEMA_SERVE: &str = "plumb/drive-serve/1";
}

/// What a bay answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done; the drive is like this now.
    Done(Box<Status>),
    /// It is not.
    Refused(Refused),
}

/// An order that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What kind of reason.
    pub kind: RefusedKind,
    /// The reason.
    pub why: String,
}

/// What kind of reason there is not to carry out an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedKind {
    /// It makes no sense for this drive, whenever it is given.
    Senseless,
    /// Not as the drive is now.
    UnsafeNow,
    /// It was tried.
    Failed,
}

impl Refused {
    pub(crate) fn senseless(why: String) -> Self {
        Self { kind: RefusedKind::Senseless, why }
    }

    pub(crate) fn unsafe_now(why: String) -> Self {
        Self { kind: RefusedKind::UnsafeNow, why }
    }

    pub(crate) fn failed(why: String) -> Self {
        Self { kind: RefusedKind::Failed, why }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no such drive.
    #[error("there is no drive `{name}`{}; `plumb drive serve` makes one", there_are(.known))]
    NoSuchDrive {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Its process is gone: it was killed.
    #[error(
        "the process that served `{name}` is gone, and what its drive held in memory is lost as in a power cut; \
         `plumb drive detach {name}` clears up after it"
    )]
    Gone {
        /// The drive.
        name: String,
    },
    /// It is there and says nothing.
    #[error(
        "the drive `{name}` did not answer within {within:?}: its process hangs or is held up, and whether the order was \
         carried out is not known"
    )]
    Silent {
        /// The drive.
        name: String,
        /// How long was waited.
        within: Duration,
    },
    /// The conversation failed.
    #[error("cannot talk to the drive `{name}`")]
    Io {
        /// The drive.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The bay said no.
    #[error("{name}: {}", refused.why)]
    Refused {
        /// The drive.
        name: String,
        /// Why.
        refused: Refused,
    },
}

fn there_are(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(", but {}", known.join(", ")) }
}

/// Gives an order to the drive `name` in `directory`.
///
/// # Errors
/// If there is no such drive, it does not answer, or it refuses.
pub fn give(directory: &Path, name: &str, order: &Order) -> Result<Status, ControlError> {
    let within = if matches!(order, Order::Detach { .. }) { DETACHED_WITHIN } else { ANSWER_WITHIN };
    give_within(directory, name, order, within)
}

/// The same with patience of another length.
fn give_within(
    directory: &Path,
    name: &str,
    order: &Order,
    within: Duration,
) -> Result<Status, ControlError> {
    let io = |source: io::Error| match source.kind() {
        // What a socket says whose time is over.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            ControlError::Silent { name: name.to_owned(), within }
        }
        _ => ControlError::Io { name: name.to_owned(), source },
    };
    let mut stream = match UnixStream::connect(place::socket(directory, name)) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if remains::is_there(name) {
                return Err(ControlError::Gone { name: name.to_owned() });
            }
            let known = place::names(directory).map_err(io)?;
            return Err(ControlError::NoSuchDrive { name: name.to_owned(), known });
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(ControlError::Gone { name: name.to_owned() });
        }
        Err(error) => return Err(io(error)),
    };
    stream.set_read_timeout(Some(within)).map_err(io)?;
    write_line(&mut stream, order).map_err(io)?;
    match read_line(&stream).map_err(io)? {
        Answer::Done(status) => Ok(*status),
        Answer::Refused(refused) => Err(ControlError::Refused { name: name.to_owned(), refused }),
    }
}

/// Takes one order from `stream`. Somebody who says nothing only looks whether this is alive.
///
/// # Errors
/// If the other side does not keep to the protocol or goes away.
pub(crate) fn hear(stream: &mut UnixStream) -> io::Result<Option<Order>> {
    stream.set_read_timeout(Some(ORDER_WITHIN))?;
    stream.set_write_timeout(Some(ORDER_WITHIN))?;
    match read_line(stream) {
        Ok(order) => Ok(Some(order)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => {
            let why = format!("this is no order: {error}");
            write_line(stream, &Answer::Refused(Refused::senseless(why)))?;
            Err(error)
        }
    }
}

/// Answers the order that came through `stream`.
///
/// # Errors
/// If the other side is gone.
pub(crate) fn answer(stream: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    write_line(stream, answer)
}

fn write_line(stream: &mut UnixStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn read_line<T: for<'a> Deserialize<'a>>(stream: &UnixStream) -> io::Result<T> {
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
        let listener = UnixListener::bind(place::socket(at, "one")).unwrap();
        let silent = give_within(at, "one", &Order::Status, Duration::from_millis(20)).unwrap_err();
        let said = in_one_line(&silent);
        assert!(said.contains("`one` did not answer within 20ms") && !said.contains("os error"), "{said}");
        let hangs_up = std::thread::spawn(move || {
            // The first one has given up.
            listener.accept().and_then(|_| listener.accept()).unwrap();
        });
        let gone = give_within(at, "one", &Order::Status, Duration::from_secs(10)).unwrap_err();
        hangs_up.join().unwrap();
        let said = in_one_line(&gone);
        let cause = std::error::Error::source(&gone).unwrap().to_string();
        assert_eq!(said.matches(&cause).count(), 1, "{said}");
    }
}
