//! Numbers and flags of the protocol as types.

/// Declares a number type of the protocol. A peer may also send values without a name.
macro_rules! codes {
    ($(#[$meta:meta])* $name:ident, $bits:ty; $($code:ident = $value:expr, $doc:literal;)*) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub $bits);

        impl $name {
            $(#[doc = $doc] pub const $code: Self = Self($value);)*
        }
    };
}
pub(super) use codes;

/// Declares a set of flags of the protocol.
macro_rules! flags {
    ($name:ident, $bits:ty, $doc:literal; $($flag:ident = $value:expr, $flag_doc:literal;)*) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $bits);

        impl $name {
            $(#[doc = $flag_doc] pub const $flag: Self = Self($value);)*

            /// Returns true if all of `flags` are set.
            pub const fn has(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// Returns these flags together with `flags`.
            #[must_use]
            pub const fn with(self, flags: Self) -> Self {
                Self(self.0 | flags.0)
            }

            /// Returns true if any flag outside of `known` is set.
            pub const fn has_beyond(self, known: Self) -> bool {
                self.0 & !known.0 != 0
            }
        }
    };
}
pub(super) use flags;
