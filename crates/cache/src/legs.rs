//! [`LegSet`]: a set of leg numbers; [`LegFailure`]: failure of a leg.

use crate::settings::LEGS_MAX;

/// Set of legs without heap memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LegSet(u16);

const _: () = assert!(LEGS_MAX <= u16::BITS as usize, "each leg has a bit");

impl LegSet {
    pub(crate) const EMPTY: Self = Self(0);

    /// Returns the set of one leg.
    pub(crate) const fn one(leg: usize) -> Self {
        Self(1 << leg)
    }

    pub(crate) const fn contains(self, leg: usize) -> bool {
        self.0 & 1 << leg != 0
    }

    /// Returns the legs of this set that are not in `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the legs of this set and of `other`.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the legs in ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..LEGS_MAX).filter(move |leg| self.contains(*leg))
    }
}

impl FromIterator<usize> for LegSet {
    fn from_iter<I: IntoIterator<Item = usize>>(legs: I) -> Self {
        legs.into_iter().fold(Self::EMPTY, |set, leg| set.with(Self::one(leg)))
    }
}

/// Failure of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LegFailure {
    Flush,
    Record,
    Superblock,
    /// Write of blocks copied from another leg.
    Copy,
    /// Read of blocks to be copied to the leg.
    CopyRead,
}

impl LegFailure {
    /// Describes the failure in words that follow the name of the leg.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Flush => "failed a flush",
            Self::Record => "could not write a record",
            Self::Superblock => "could not write its superblock",
            Self::Copy => "could not be given the data of another one",
            Self::CopyRead => "could not be copied to",
        }
    }
}
