//! Ways in which the model can break the contract.

macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// One way to break the contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Bug {
            /// Every bug.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

bugs! {
    /// A flush makes only the writes of its own queue durable.
    FlushCoversOwnQueueOnly,
    /// A flush does nothing.
    FlushDropped,
    /// FUA is taken for a plain write.
    FuaIsPlainWrite,
    /// FUA of write-zeroes is not carried out.
    FuaZeroesArePlain,
    /// A power cut may bring back a version from before the last durable one.
    OlderOverDurable,
    /// A power cut mixes two versions within a logical block.
    TearInsideBlock,
    /// A completed discard goes past the cache to the medium, over newer durable data.
    DiscardOverNewerDurable,
    /// A discarded block reads as neither old nor zero.
    DiscardReadsGarbage,
    /// A discarded block may read as before, though zeroes are promised.
    DiscardPromiseBroken,
    /// Write-zeroes is acknowledged and not carried out.
    ZeroesIgnored,
    /// Zeroes that cannot be written fast fail, but with another error number.
    FastOnlyWrongErrno,
    /// Write-zeroes gives the space back although it was told not to.
    NoHoleUnmaps,
    /// The extents do not cover the requested range.
    ExtentsWithGaps,
    /// Flushes on other queues succeed after a failed flush.
    LatchForgottenOnOtherQueue,
    /// Flushes succeed again after a failed flush and another write.
    LatchForgottenAfterWrite,
    /// The failed flush is not reported as a latch.
    LatchNotReported,
    /// A full queue takes the request and forgets it.
    FullQueueDropsRequest,
    /// A full queue returns another request than the one submitted.
    FullQueueChangesRequest,
    /// A queue holds fewer requests than its depth.
    QueueTooShallow,
    /// Some requests never complete.
    RequestForgotten,
    /// Some requests complete twice.
    TagTwice,
    /// Some completions carry a tag without a request.
    TagInvented,
    /// Completions come out of another queue.
    AnswerOnOtherQueue,
    /// The answer that came after the deadline is delivered too.
    LateAnswerDelivered,
    /// Deadlines are not kept.
    DeadlineIgnored,
    /// Requests with a deadline are abandoned at once.
    DeadlineEarly,
    /// Addresses outside the device wrap around.
    RangeWraps,
    /// Addresses outside the device fail as if the medium were broken.
    RangeWrongErrno,
    /// The length of the payload is not checked.
    LengthIgnored,
    /// A dropped queue does not free the buffers of its requests.
    DropLeaksBuffers,
    /// Completions come without the payload.
    PayloadForgotten,
    /// Completions come with other bytes.
    PayloadOverwritten,
    /// Every block of a pattern is generated like the first.
    PatternRepeats,
    /// Writes of one queue are visible on others only after a flush.
    StaleReadAcrossQueues,
    /// Some writes land on the next block.
    WriteMisdirected,
    /// Completion times are before submission times.
    TimeRunsBackwards,
    /// Poll returns another number than it appended.
    PollMiscounts,
    /// The physical block is smaller than the logical.
    InfoNonsense,
    /// The properties change and the generation stays.
    GenerationStands,
    /// The volatile cache is denied.
    CacheHidden,
    /// Requests that were in flight at a power cut are reported as done.
    CutReportsDone,
}
