//! Settings fixed at the creation of a cache ([`Settings`]), and options of each opening ([`Options`]).

use std::fmt;
use std::str::FromStr;

use plumb_block::{Bytes, LbaRange, Nanos, Pool};
use serde::{Deserialize, Serialize};

use crate::action::Waits;

/// Unit of the log in bytes: a header takes one, and a payload a whole number of them.
pub const LOG_BLOCK: u64 = 4096;
/// Size of each buffer in [`Options::memory`].
pub const BUFFER: Bytes = Bytes::mib(1);
/// Minimum number of buffers in the memory of a cache.
pub const BUFFERS_MIN: u32 = 16;
/// Maximum number of legs.
pub const LEGS_MAX: usize = 16;

/// Largest number of witnesses: one for each bit of [`Mark::witnesses`].
pub const WITNESSES_MAX: usize = 32;

/// Permanent identifier of a cache or backing device.
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

/// Formats as in RFC 9562: `01234567-89ab-cdef-0123-456789abcdef`.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", u128::from_be_bytes(self.0));
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

/// Distribution of the log over several legs. A log on one leg is both a mirror and a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Every leg holds the whole log.
    Mirror,
    /// Segments are distributed over the legs in turn.
    Stripe,
}

/// Settings for creating a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Identifier of the cache.
    pub cache: Uuid,
    /// Identifier by which the backing device is recognised.
    pub backing: Uuid,
    /// Bytes to use of each leg.
    pub size: Bytes,
    /// Unit in which log space becomes free: a multiple of 4096, 32 KiB to 64 MiB; normally 4 MiB.
    pub segment: Bytes,
    /// Layout of the log over the legs.
    pub layout: Layout,
}

/// Condition for acknowledging a write, and the location of its data then.
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
    /// Acknowledge as in write-back; the backing device receives writes in the order of the flushes between
    /// them, so that without its log it is old but consistent. No write bypasses the log.
    Ordered,
}

impl Mode {
    /// Returns the mode's name in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::WriteBack => "write-back",
            Self::WriteThrough => "write-through",
            Self::Protected => "protected",
            Self::Ordered => "ordered",
        }
    }
}

/// Legs of a mirror that may be missing at opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingLegs {
    /// Only the legs that the log records as lost.
    No,
    /// The legs that the log records as lost, and this one.
    Without(usize),
    /// Any but the last complete one.
    Any,
}

impl MissingLegs {
    pub(crate) fn allows(self, leg: usize) -> bool {
        self == Self::Any || self == Self::Without(leg)
    }
}

/// Mark on the backing device, which describes its log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// Number of the last session. A log with an earlier one is an old copy, or a leg that was lost since.
    pub session: u64,
    /// Sequence number of the first record that may still be needed: all earlier ones are on the backing
    /// device. 0 if unknown.
    pub tail: u64,
    /// Sequence number up to which all records of the session were durable in the log; 0 if unknown.
    pub durable: u64,
    /// Witnesses ([`Options::witnesses`]) whose contents the mark states, one bit for each.
    pub witnesses: u32,
    /// Witnesses that were discarded and not written since, on a device that does not guarantee zeroes: their
    /// contents may change spontaneously, so no mark states them.
    pub discarded: u32,
    /// True if the log of this session is sealed: only its records from `tail` to `durable` count.
    pub is_sealed: bool,
}

/// Identity that the devices of a cache must have. If it is given, the backing device must be marked as the
/// cache requests: nothing is acknowledged or written back before [`Cache::marked`](crate::Cache::marked) was
/// called for the first [`Cache::to_mark`](crate::Cache::to_mark).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Identifier of the cache.
    pub cache: Uuid,
    /// Identifier of the backing device.
    pub backing: Uuid,
    /// Mark on the backing device; an older log is refused.
    pub marked: Mark,
}

/// Options for opening a cache.
#[derive(Debug, Clone)]
pub struct Options {
    /// Condition for acknowledging writes.
    pub mode: Mode,
    /// Buffers of [`BUFFER`] bytes, at least [`BUFFERS_MIN`], reserved for the cache while it is open.
    pub memory: Pool,
    /// Name of the cache in suggested commands.
    pub name: String,
    /// Expected identity of the devices; `None`: any identity is accepted.
    pub identity: Option<Identity>,
    /// Blocks of the backing device whose contents the mark states if possible, at most [`WITNESSES_MAX`];
    /// none without an identity.
    pub witnesses: Vec<LbaRange>,
    /// Legs that may be missing although the log does not record them as lost. Data that only they hold is
    /// lost.
    pub degraded: MissingLegs,
    /// True if recovery accepts everything before the first durable record that is damaged or missing, and
    /// gives up all after it. Otherwise such a log is refused.
    pub gives_up_lost: bool,
    /// True if a backing device larger than recorded in the log is adopted as a whole: the log records that
    /// before it is served. The part beyond the old end was never in the cache.
    pub grows_backing: bool,
    /// Maximum payload of a record: a multiple of 4096, 4 KiB to 512 KiB.
    pub record_max: Bytes,
    /// Length after which a sequential stream bypasses the log; `None`: never.
    pub bypass_after: Option<Bytes>,
    /// Thresholds of destaging.
    pub destage: DestageOptions,
    /// True for a dry run: recovery reads everything and writes nothing, and the cache is then
    /// [`Stopped`](crate::State::Stopped), with a [`status`](crate::Cache::status).
    pub dry_run: bool,
    /// Conditions in force: all, except in tests.
    pub waits: Waits,
}

/// Thresholds of destaging.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DestageOptions {
    /// Fill level of the log from which data is destaged, 0 to 1.
    pub start: f64,
    /// Age of the oldest record from which data is destaged at any fill level.
    pub age: Nanos,
    /// Time without requests after which data is destaged at any fill level.
    pub idle: Nanos,
    /// True if the backing device is left idle as long as possible. Once destaging starts, it writes back
    /// everything in the log at that time, and no write bypasses the log.
    pub rests: bool,
    /// Time without a request after which the backing device is assumed to have spun down, to count its
    /// spin-ups.
    pub spin_down: Nanos,
}

impl DestageOptions {
    /// Default thresholds: 30 %, 10 s, 1 s; a spin-down after 10 minutes.
    pub const DEFAULT: Self = Self {
        start: 0.3,
        age: Nanos::secs(10),
        idle: Nanos::secs(1),
        rests: false,
        spin_down: Nanos::secs(600),
    };
}

impl Options {
    /// Creates default options for write-back.
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
