//! Bugs that the tests plant, one at a time, to prove that they would be seen. In the product there are none.

/// One way to get it wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A flush covers what had been submitted before it, answered or not.
    FlushCoversSubmitted,
    /// A flush covers nothing.
    FlushCoversNothing,
    /// A flush covers only the last two commands that were answered.
    FlushCoversLatestOnly,
    /// A flush covers what was answered before the flush was answered.
    FlushCoversUntilItsAnswer,
    /// FUA is a plain write.
    FuaIsPlain,
    /// FUA makes everything before it durable too.
    FuaIsBarrier,
    /// A cut may bring an older version over a durable newer one.
    OlderOverDurable,
    /// A durable version is forgotten as soon as it is on the medium, though an older one is still at risk.
    DurableForgottenEarly,
    /// A logical block may be torn inside.
    TearInsideBlock,
    /// An atomic write may be torn.
    AtomicTorn,
    /// The boundary of atomic writes is not looked at: what crosses it is never torn.
    BoundaryIgnored,
    /// A discard is durable when it is answered.
    DiscardDurableEarly,
    /// A discard reaches the medium over newer writes.
    DiscardOverNewer,
    /// Destaging one write also drops another one of the same block that is in flight.
    PersistDropsInFlight,
    /// A destaged older write goes over a newer durable one.
    PersistOverNewer,
    /// Answered overwrites of a block survive in any order.
    OverwritesReordered,
    /// The last flush but `k` takes effect one flush too early.
    LyingOneTooFew,
    /// Write-zeroes does nothing.
    ZeroesIgnored,
    /// A read returns what is durable, not what was answered.
    ReadsMedium,
    /// Extents know only what is durable.
    ExtentsOfMedium,
    /// A command in flight never survives.
    InFlightNeverSurvives,
    /// A cut takes all that is at risk or nothing.
    AllOrNothing,
    /// A write of several blocks never tears.
    NeverTorn,
    /// A failed write never lands.
    FailedNeverLands,
    /// A discard of a long run leaves its last page.
    WideDiscardTooShort,
    /// A pattern written over part of a page is taken for the whole page.
    PartIsWhole,
    /// What was said of a page last is not seen before it is in the tables.
    RecentUnseen,
    /// What was said of a page last comes over a discard of a long run that is newer.
    RecentOverRun,
    /// What a flush that is ignored has said is not in the account of a cut.
    IgnoredFlushUnaccounted,
    /// What FUA that is ignored has said is not in the account of a cut.
    IgnoredFuaUnaccounted,
    /// Of what was said to be durable only the version that was visible is in the account.
    OlderPromiseUnaccounted,
    /// The flash that FUA data goes to takes what was written before it along.
    FuaCarriesAlong,
    /// A flush leaves in the buffer of flash what is gathered there.
    FlushLeavesGathered,
    /// A flash drive programs a unit as soon as it is full.
    NothingGathered,
}

/// Every bug of contents and of the rules.
#[cfg(test)]
pub(crate) const ALL: &[Bug] = &[
    Bug::FlushCoversSubmitted,
    Bug::FlushCoversNothing,
    Bug::FlushCoversLatestOnly,
    Bug::FlushCoversUntilItsAnswer,
    Bug::FuaIsPlain,
    Bug::FuaIsBarrier,
    Bug::OlderOverDurable,
    Bug::DurableForgottenEarly,
    Bug::TearInsideBlock,
    Bug::AtomicTorn,
    Bug::BoundaryIgnored,
    Bug::DiscardDurableEarly,
    Bug::DiscardOverNewer,
    Bug::PersistDropsInFlight,
    Bug::PersistOverNewer,
    Bug::OverwritesReordered,
    Bug::LyingOneTooFew,
    Bug::ZeroesIgnored,
    Bug::ReadsMedium,
    Bug::ExtentsOfMedium,
    Bug::InFlightNeverSurvives,
    Bug::AllOrNothing,
    Bug::NeverTorn,
    Bug::FailedNeverLands,
    Bug::WideDiscardTooShort,
    Bug::PartIsWhole,
    Bug::RecentUnseen,
    Bug::RecentOverRun,
    Bug::IgnoredFlushUnaccounted,
    Bug::IgnoredFuaUnaccounted,
    Bug::OlderPromiseUnaccounted,
];

/// Every bug of the write buffer of flash.
#[cfg(test)]
pub(crate) const OF_FLASH: &[Bug] = &[Bug::FuaCarriesAlong, Bug::FlushLeavesGathered, Bug::NothingGathered];

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug for the rest of the test, or none.
#[cfg(test)]
pub(crate) fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this bug is planted.
#[cfg(test)]
pub(crate) fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether this bug is planted: never, outside tests.
#[cfg(not(test))]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}
