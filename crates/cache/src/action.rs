//! Actions that the state machine requests from its driver: requests to its members, each with the purpose it
//! serves.

use plumb_block::{LbaRange, Op, Payload, Request};

/// A device beneath the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// A device that holds the log, by its number.
    Leg(usize),
    /// The slow device that is cached.
    Backing,
}

/// Names an action until it is completed. Never used twice by one [`Cache`](crate::Cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u64);

/// A request to a member. No order holds between actions that are not completed.
#[derive(Debug)]
pub struct Action {
    /// Identity of the action, for [`Cache::completed`](crate::Cache::completed).
    pub id: ActionId,
    /// Device that the request goes to.
    pub member: Member,
    /// Purpose of the request.
    pub purpose: Purpose,
    /// The request, in the member's logical blocks; its tag is the number of the action.
    pub request: Request,
}

/// Request to a member that was not sent yet.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) member: Member,
    pub(crate) purpose: Purpose,
    pub(crate) op: Op,
    /// Range in the member's logical blocks.
    pub(crate) range: LbaRange,
    pub(crate) payload: Payload,
}

impl Command {
    /// Returns the command that flushes a member.
    pub(crate) fn flush(member: Member, purpose: Purpose) -> Self {
        Self { member, purpose, op: Op::Flush, range: LbaRange::EMPTY, payload: Payload::None }
    }
}

/// Purpose of an action. Whoever tests the cache may answer all actions of one purpose without doing them,
/// and has to see the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Recovery reads the copies of the superblock.
    ReadSuperblock,
    /// Recovery reads the first record of a segment.
    ReadHead,
    /// Recovery reads the records of a live segment.
    ReadSegment,
    /// A leg gets what only another one holds, before the cache serves.
    Equalise,
    /// Flush of the legs after that: order (f).
    EqualiseFlush,
    /// Superblocks with the number of a new session.
    Session,
    /// Flush after that, before the first record of the session.
    SessionFlush,
    /// A record of the log.
    LogRecord,
    /// Flush of a leg, for a flush or a FUA write.
    LogFlush,
    /// A client reads what is in the log.
    LogRead,
    /// A client reads what is not in the log.
    BackingRead,
    /// Blocks that another leg read whole replace those that this leg read damaged.
    ReadRepair,
    /// The contents of the log are read, for a leg that replaces another.
    ResilverRead,
    /// The contents that were read are written to the leg that replaces another.
    Resilver,
    /// Flush of that leg after all of it, before it counts: order (g).
    ResilverFlush,
    /// A write, discard or zeroing that goes past the log.
    BypassWrite,
    /// Flush of the backing device, for a flush after such a write: order (d).
    BypassFlush,
    /// Flush of the legs, before what is not known to be durable there is destaged.
    LogFlushBeforeDestage,
    /// Flush of the backing device before a session destages anything, and again after a write of destaging
    /// failed: that write can no longer land.
    BackingFlushBeforeDestage,
    /// Destaging reads the log.
    DestageRead,
    /// Destaging writes the backing device.
    BackingDestage,
    /// Flush of the backing device, before the tail advances past what was destaged.
    BackingFlushBeforeTail,
    /// Flush of the legs, before the tail advances past what was overwritten: order (b).
    LogFlushBeforeTail,
    /// Flush of the backing device, before a mark states what witnesses hold there: see
    /// [`Mark`](crate::Mark).
    BackingFlushBeforeMark,
    /// Superblocks with a later tail.
    TailAdvance,
    /// Flush after that, before segments are used again: order (c).
    TailFlush,
    /// Superblocks with a new epoch: another leg no longer counts, is being copied to, or counts again, or
    /// the log has become larger; orders (e) and (g).
    EpochOnSurvivors,
    /// Flush after that, before anything is acknowledged.
    EpochFlush,
    /// Superblocks of a cache that was stopped.
    Stop,
    /// Flush after that.
    StopFlush,
    /// Flush of the legs of a log that is no longer written, before the mark says where it ends.
    SealFlush,
}

/// Something that the cache waits for before it goes on. Order (a) to (g) of `docs/ON_DISK_FORMAT.md` are
/// these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// (a) A write is acknowledged after the records of all lower sequence numbers.
    LowerSequences,
    /// (b) The tail advances after the flush of the legs that makes the successors of overwritten records
    /// durable.
    SuccessorsDurable,
    /// Only what is durable in the log is destaged.
    DurableBeforeDestage,
    /// The tail advances after the flush of the backing device.
    BackingDurable,
    /// (c) Segments are free, and their extents unknown to bypass, after the tail's advance is durable.
    TailDurable,
    /// (d) A flush waits for a round of flushes that began after it came; without this it joins one that is
    /// on its way.
    FlushCovers,
    /// (e) Nothing is acknowledged before the epoch that excludes a leg is durable, and a larger log is not
    /// used in its new shape before two versions of the superblock with that shape are.
    EpochDurable,
    /// (f) Recovery serves after the legs are equal and flushed.
    LegsEqual,
    /// (g) A leg that replaces another counts after everything has been copied to it and flushed.
    LegCopied,
    /// A write goes past the log only where nothing in the log overlaps.
    LogBeforeBypass,
    /// A segment is used again after the reads of its last contents.
    SegmentUnread,
    /// The backing device is marked with a tail once the superblocks with that tail are durable: else a power
    /// cut could leave a log that is older than the mark, and be refused.
    MarkedTailDurable,
    /// A witness is written back to once the mark on the backing device does not state any more what it
    /// holds: else what the cache itself has written would be taken for a write by somebody else.
    WitnessReleased,
    /// Writes go past a log that failed once the mark says where that ends: else a record that failed and
    /// landed all the same would be put over them.
    SealMarked,
}

/// Set of the waits that hold: all of them, but for one that a test leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    left_out: Option<Wait>,
}

impl Waits {
    /// Every wait holds.
    pub const ALL: Self = Self { left_out: None };

    /// Returns every wait but this one: what the tests of the cache must find.
    pub const fn without(wait: Wait) -> Self {
        Self { left_out: Some(wait) }
    }

    /// Returns true if the cache waits for this.
    pub(crate) fn hold(self, wait: Wait) -> bool {
        self.left_out != Some(wait)
    }
}
