//! Choices that are fixed when a cache is made ([`Settings`]), and those that are made each time that it is
//! opened ([`Options`]).

use std::fmt;
use std::str::FromStr;

use plumb_block::{Bytes, LbaRange, Nanos, Pool};
use serde::{Deserialize, Serialize};

use crate::action::Waits;

/// The unit of the log: headers are one of these, and payloads whole numbers of them.
pub const LOG_BLOCK: u64 = 4096;
/// The size of each buffer in [`Options::memory`].
pub const BUFFER: Bytes = Bytes::mib(1);
/// Number of buffers that the memory of a cache has to hold at least.
pub const BUFFERS_MIN: u32 = 16;
/// Number of legs that a log may have.
pub const LEGS_MAX: usize = 16;

/// Largest number of witnesses: one for each bit of [`Mark::witnesses`].
pub const WITNESSES_MAX: usize = 32;

/// Names a cache, or a backing device, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Uuid(pub [u8; 16]);

/// Error for text that is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a UUID: expected 32 hexadecimal digits, such as 01234567-89ab-cdef-0123-456789abcdef")]
pub struct ParseUuidError(String);

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.replace('-', "");
        let is_whole = digits.len() == 32 && matches!(text.len(), 32 | 36);
        let value = u128::from_str_radix(&digits, 16).ok();
        // `from_str_radix` would accept a sign in place of a digit.
        let value = value.filter(|_| is_whole && !digits.starts_with('+'));
        value.map(|value| Self(value.to_be_bytes())).ok_or_else(|| ParseUuidError(text.to_owned()))
    }
}

impl From<Uuid> for String {
    fn from(uuid: Uuid) -> Self {
        uuid.to_string()
    }
}

impl TryFrom<String> for Uuid {
    type Error = ParseUuidError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Writes the form of RFC 9562: `01234567-89ab-cdef-0123-456789abcdef`.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", u128::from_be_bytes(self.0));
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

/// How several legs share the log. One leg is either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Every leg holds all of it.
    Mirror,
    /// Segment after segment goes to leg after leg.
    Stripe,
}

/// Settings that a cache is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The name of the cache.
    pub cache: Uuid,
    /// The name of the backing device, as whoever opens it knows it again.
    pub backing: Uuid,
    /// How much of each leg is used.
    pub size: Bytes,
    /// The unit in which log space becomes free: a multiple of 4096, 32 KiB to 64 MiB; 4 MiB unless there is
    /// a reason.
    pub segment: Bytes,
    /// Layout of the log over the legs.
    pub layout: Layout,
}

/// When a write is acknowledged, and where it is then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Acknowledge once the data is in the log; durable after a flush of the legs.
    #[default]
    WriteBack,
    /// Acknowledge once the data is on the backing device; durable after a flush of it. Only writes that
    /// overlap data in the log go through the log.
    WriteThrough,
    /// Acknowledge once the data is in the log, which counts as durable without a flush: the user states that
    /// the legs survive a loss of power.
    Protected,
    /// Acknowledged as in write-back, and the backing device gets writes in the order of the flushes between
    /// them, so that without its log it is old but consistent. Nothing goes past the log.
    Ordered,
}

impl Mode {
    /// Returns the word that stands for it in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::WriteBack => "write-back",
            Self::WriteThrough => "write-through",
            Self::Protected => "protected",
            Self::Ordered => "ordered",
        }
    }
}

/// Legs of a mirror that may be missing when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingLegs {
    /// Only those that the log says are lost.
    No,
    /// This one, too.
    Without(usize),
    /// Any but the last.
    Any,
}

impl MissingLegs {
    pub(crate) fn allows(self, leg: usize) -> bool {
        self == Self::Any || self == Self::Without(leg)
    }
}

/// Mark on the backing device, which describes the log that belongs to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// Number of the last session. A log of an earlier one is an old copy, or a leg that was lost since.
    pub session: u64,
    /// Sequence number of the first record that may still be needed: everything before it is on the backing
    /// device. 0 if unknown.
    pub tail: u64,
    /// Sequence number up to which all records of the session were durable in the log; 0 if unknown.
    pub durable: u64,
    /// Witnesses ([`Options::witnesses`]) whose contents the mark states, one bit for each.
    pub witnesses: u32,
    /// Witnesses that were discarded and not written since, on a device that does not promise zeroes: what
    /// they hold may change by itself, so no mark states it.
    pub discarded: u32,
    /// True if the log of this session takes no more writes: only its records from `tail` to `durable` count.
    pub is_sealed: bool,
}

/// Identity that the devices of a cache have to state. Whoever gives this has to mark the backing device as
/// the cache requests: nothing is acknowledged or written back before [`Cache::marked`](crate::Cache::marked)
/// has answered for the first [`Cache::to_mark`](crate::Cache::to_mark).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The cache.
    pub cache: Uuid,
    /// The backing device.
    pub backing: Uuid,
    /// The mark on the backing device: a log that is older is refused.
    pub marked: Mark,
}

/// How a cache runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// When a write is acknowledged.
    pub mode: Mode,
    /// Buffers of [`BUFFER`] bytes, at least [`BUFFERS_MIN`] of them, which nobody else takes while the cache
    /// is open.
    pub memory: Pool,
    /// Name of the cache in the commands that refusals print.
    pub name: String,
    /// Identity that is expected of the devices, as known to whoever opens them; `None`: any identity is
    /// accepted.
    pub identity: Option<Identity>,
    /// Blocks of the backing device whose contents its mark states where it can, at most
    /// [`WITNESSES_MAX`]; none without an identity.
    pub witnesses: Vec<LbaRange>,
    /// Legs that may be missing though the log does not say that they are lost. What only they hold is lost.
    pub degraded: MissingLegs,
    /// True if recovery takes what comes before the first durable record that is damaged or gone, and gives
    /// up all that comes after it. Without, such a log is refused.
    pub gives_up_lost: bool,
    /// True if a backing device that is larger than the log says is taken, all of it: the log says so before
    /// it is served. What is beyond the old end was never in the cache.
    pub grows_backing: bool,
    /// The largest payload of a record: a multiple of 4096, 4 KiB to 512 KiB.
    pub record_max: Bytes,
    /// A sequential stream goes past the log after this much; `None`: never.
    pub bypass_after: Option<Bytes>,
    /// When and how much is destaged.
    pub destage: DestageOptions,
    /// True if only to look: recovery reads everything and writes nothing, and the cache is
    /// [`Stopped`](crate::State::Stopped) then, with a [`status`](crate::Cache::status).
    pub dry_run: bool,
    /// Waits that hold: all, except in tests.
    pub waits: Waits,
}

/// When and how much is destaged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DestageOptions {
    /// Share of the log in use from which data is destaged, 0 to 1.
    pub start: f64,
    /// Whatever the share, when the oldest record is older than this.
    pub age: Nanos,
    /// Whatever the share, when no request came for this long.
    pub idle: Nanos,
    /// True if the backing device is left alone for as long as possible: once destaging begins, it writes
    /// back everything that the log holds at that time, and nothing goes past the log.
    pub rests: bool,
    /// Time without a request after which the backing device is taken to have spun down, to count how often
    /// it spins up.
    pub spin_down: Nanos,
}

impl DestageOptions {
    /// Thresholds for devices: 30 %, 10 s, 1 s; a spin-down after 10 minutes.
    pub const DEFAULT: Self = Self {
        start: 0.3,
        age: Nanos::secs(10),
        idle: Nanos::secs(1),
        rests: false,
        spin_down: Nanos::secs(600),
    };
}

impl Options {
    /// Creates settings for write-back that suit devices.
    pub fn new(memory: Pool) -> Self {
        Self {
            mode: Mode::WriteBack,
            memory,
            name: "NAME".to_owned(),
            identity: None,
            witnesses: Vec::new(),
            degraded: MissingLegs::No,
            gives_up_lost: false,
            grows_backing: false,
            dry_run: false,
            record_max: Bytes::kib(512),
            bypass_after: Some(Bytes::mib(2)),
            destage: DestageOptions::DEFAULT,
            waits: Waits::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_reads_back_with_dashes_and_without_and_has_all_its_digits() {
        let text = "01234567-89ab-cdef-0123-456789abcdef";
        let uuid = Uuid([1, 35, 69, 103, 137, 171, 205, 239, 1, 35, 69, 103, 137, 171, 205, 239]);
        assert_eq!((uuid.to_string(), text.parse()), (text.to_owned(), Ok(uuid)));
        assert_eq!(text.replace('-', "").to_uppercase().parse(), Ok(uuid));
        assert_eq!(Uuid([0; 16]).to_string().parse(), Ok(Uuid([0; 16])));
        let wrong = [
            "",
            "0123456789abcdef0123456789abcde",
            "0123456789abcdef0123456789abcde-",
            "01234567-89ab-cdef-0123-456789abcde-",
            "0123456789abcdef0123456789abcdefa",
            "+123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdeg",
        ];
        for text in wrong {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError(text.to_owned())));
        }
    }
}
