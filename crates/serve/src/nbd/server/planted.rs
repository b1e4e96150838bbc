//! Bugs to be planted, one at a time, so that the tests of the server can be tested.
//!
//! Without the feature `planted-bugs` there is no way to plant one, and every question whether one is planted is
//! answered "no" by the compiler.

macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// One way to break what the server promises.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(
            not(feature = "planted-bugs"),
            expect(unreachable_pub, reason = "it can be named only where it can be planted")
        )]
        pub enum Bug {
            $($(#[doc = $doc])+ $name,)+
        }

        #[cfg(feature = "planted-bugs")]
        impl Bug {
            /// Every bug.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

bugs! {
    /// A flush is answered when it was handed to the device, not when the device has done it.
    FlushAnsweredEarly,
    /// A flush is sent to the device only if this connection has written.
    FlushOfOwnWritesOnly,
    /// The FUA flag of a write is not passed on.
    FuaOfWriteDropped,
    /// The FUA flag of a write of zeroes is not passed on.
    FuaOfZeroesDropped,
    /// A trim with FUA is answered without the flush.
    FuaOfTrimDropped,
    /// A failed flush is answered as done.
    FlushErrorSwallowed,
    /// Flushes after a failed one go to the device, and are answered as it answers.
    LatchForgotten,
    /// Some replies carry another cookie.
    CookieWrong,
    /// A write in several pieces is answered when the first is done.
    SplitAnsweredAtFirstPiece,
    /// Only the first piece of a write in several pieces can fail it.
    SplitErrorForgotten,
    /// The last block is taken for outside.
    LastBlockRefused,
    /// Zeroes that must keep the space are discarded instead.
    ZeroesAsDiscard,
    /// FAST_ZERO is not passed on.
    FastZeroIgnored,
    /// The reply to a read carries a buffer into which nothing was read.
    ReadFromStaleBuffer,
    /// A request of which nobody knows how it ended is answered as done.
    UnknownAnsweredAsDone,
    /// The payload of a refused write is taken for requests.
    RefusedPayloadKept,
    /// Writes to a read-only export are carried out.
    ReadOnlyIgnored,
}

/// The bug that is planted, if any.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Planted(#[cfg(feature = "planted-bugs")] pub(super) Option<Bug>);

impl Planted {
    /// Whether it is this one.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn is(self, bug: Bug) -> bool {
        self.0 == Some(bug)
    }

    /// Whether it is this one: never.
    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "the same question as with the feature")]
    pub(super) const fn is(self, _bug: Bug) -> bool {
        false
    }
}
