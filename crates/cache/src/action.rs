//! Actions that the state machine requests from its driver: requests to members, each with its purpose.

use plumb_block::{LbaRange, Op, Payload, Request};

/// A device below the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// Log device with this number.
    Leg(usize),
    /// Slow device that is cached.
    Backing,
}

/// Identifier of an action until its completion. Never reused by one [`Cache`](crate::Cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u64);

/// A request to a member. Incomplete actions are not ordered.
#[derive(Debug)]
pub struct Action {
    /// Identifier for [`Cache::completed`](crate::Cache::completed).
    pub id: ActionId,
    /// Device that the request goes to.
    pub member: Member,
    /// Purpose of the request.
    pub purpose: Purpose,
    /// Request in the member's logical blocks. The tag is the number of the action.
    pub request: Request,
}

/// Request to a member that has not been sent yet.
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
    /// Creates the command that flushes a member.
    pub(crate) fn flush(member: Member, purpose: Purpose) -> Self {
        Self { member, purpose, op: Op::Flush, range: LbaRange::EMPTY, payload: Payload::None }
    }
}

/// Purpose of an action. A test of the cache may answer all actions of one purpose without executing them,
/// and must then detect the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Recovery: read of a copy of the superblock.
    ReadSuperblock,
    /// Recovery: read of the first record of a segment.
    ReadHead,
    /// Recovery: read of the records of a live segment.
    ReadSegment,
    /// Recovery: write of blocks to a leg that only another one holds, before the cache serves.
    Equalise,
    /// Recovery: flush of the legs after the last [`Equalise`](Self::Equalise), order (f).
    EqualiseFlush,
    /// Write of superblocks with the number of a new session.
    Session,
    /// Flush of the superblocks of a new session, before its first record.
    SessionFlush,
    /// Write of a record of the log.
    LogRecord,
    /// Flush of a leg, for a flush or a FUA write.
    LogFlush,
    /// Client's read of data in the log.
    LogRead,
    /// Client's read of data that is not in the log.
    BackingRead,
    /// Rewrite of blocks that this leg returned damaged, with intact ones from another leg.
    ReadRepair,
    /// Read of the log's contents, to copy them to a replacement leg.
    ResilverRead,
    /// Write of the log's contents to a replacement leg.
    Resilver,
    /// Flush of a replacement leg after everything was copied, before it counts: order (g).
    ResilverFlush,
    /// Write, discard or zeroing that bypasses the log.
    BypassWrite,
    /// Flush of the backing device for a client's flush after writes that bypassed the log: order (d).
    BypassFlush,
    /// Flush of the legs before the destaging of data that is not known to be durable there.
    LogFlushBeforeDestage,
    /// Flush of the backing device before a session destages anything, and again after a failed destage
    /// write, which then can no longer land.
    BackingFlushBeforeDestage,
    /// Destaging: read of the log.
    DestageRead,
    /// Destaging: write to the backing device.
    BackingDestage,
    /// Flush of the backing device before the tail advances past destaged data.
    BackingFlushBeforeTail,
    /// Flush of the legs before the tail advances past overwritten data: order (b).
    LogFlushBeforeTail,
    /// Flush of the backing device before a mark states the contents of witnesses there: see
    /// [`Mark`](crate::Mark).
    BackingFlushBeforeMark,
    /// Write of superblocks with a later tail.
    TailAdvance,
    /// Flush of the superblocks with a later tail, before segments are reused: order (c).
    TailFlush,
    /// Write of superblocks with a new epoch: a leg no longer counts, is being copied to, or counts again, or
    /// the log has grown; orders (e) and (g).
    EpochOnSurvivors,
    /// Flush of the superblocks with a new epoch, before anything is acknowledged.
    EpochFlush,
    /// Write of the superblocks of a stopped cache.
    Stop,
    /// Flush of the superblocks of a stopped cache.
    StopFlush,
    /// Flush of the legs of a sealed log before the mark states where it ends.
    SealFlush,
}

/// A condition that the cache waits for. These are the orders (a) to (g) of `docs/ON_DISK_FORMAT.md` and
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// (a) A write is acknowledged after the records of all lower sequence numbers.
    LowerSequences,
    /// (b) The tail advances after a flush of the legs has made the successors of overwritten records
    /// durable.
    SuccessorsDurable,
    /// Only data that is durable in the log is destaged.
    DurableBeforeDestage,
    /// The tail advances after the flush of the backing device.
    BackingDurable,
    /// (c) Segments are free, and writes may bypass their extents, once the new tail is durable.
    TailDurable,
    /// (d) A flush waits for a round of flushes that starts after its arrival; without this it joins the
    /// current round.
    FlushCovers,
    /// (e) Nothing is acknowledged before the epoch that excludes a leg is durable. A grown log is used in
    /// its new shape once two versions of the superblock with that shape are durable.
    EpochDurable,
    /// (f) Recovery serves once the legs are equal and flushed.
    LegsEqual,
    /// (g) A replacement leg counts once everything has been copied to it and flushed.
    LegCopied,
    /// A write bypasses the log only if nothing in the log overlaps it.
    LogBeforeBypass,
    /// A segment is reused after all reads of its old contents.
    SegmentUnread,
    /// The mark names a tail once the superblocks with that tail are durable: otherwise a power cut could
    /// leave a log older than the mark, which would be refused.
    MarkedTailDurable,
    /// A witness is written back once the mark no longer states its contents: otherwise the cache's own write
    /// would be mistaken for a foreign one.
    WitnessReleased,
    /// Writes bypass a failed log once the mark states where it ends: otherwise a failed record that landed
    /// after all would be replayed over them.
    SealMarked,
}

/// The conditions in force: all of them, except one that a test disables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    left_out: Option<Wait>,
}

impl Waits {
    /// All conditions in force.
    pub const ALL: Self = Self { left_out: None };

    /// Returns all conditions except `wait`, whose absence the tests must detect.
    pub const fn without(wait: Wait) -> Self {
        Self { left_out: Some(wait) }
    }

    /// Returns true if this condition is in force.
    pub(crate) fn hold(self, wait: Wait) -> bool {
        self.left_out != Some(wait)
    }
}
