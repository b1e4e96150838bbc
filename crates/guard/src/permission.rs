//! The user's intent for a target, and the permission that the user has given.

use plumb_block::Bytes;
use plumb_linux::inventory::single_spaced;
use plumb_linux::range_lock::LockKind;

use crate::byte_extent::ByteExtent;

/// Intended use of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intent {
    /// True if it is to be written. Without it the target is opened read-only.
    pub writes: bool,
    /// The user asks for a file of this size: it is made if it is missing, and made longer if it is shorter.
    /// For a block device it is the size that it must have at least.
    pub size: Option<Bytes>,
    /// A longer file is cut to the size.
    pub cuts: bool,
    /// The part of what is there that is meant, which is neither made nor made longer; `None`: all of it.
    pub part: Option<ByteExtent>,
    /// Lock that is kept on a file that is written, until the target is closed: shared with other runs, or
    /// exclusive, because another run's writes would be reported as wrong data. `None`: no lock is kept.
    pub lock: Option<LockKind>,
}

impl Intent {
    /// Permission to read existing data.
    pub const READ: Self = Self { writes: false, size: None, cuts: false, part: None, lock: None };
    /// Permission to overwrite existing data.
    pub const WRITE: Self = Self { writes: true, size: None, cuts: false, part: None, lock: None };

    /// Returns the intent with a file of `size` made if need be.
    #[must_use]
    pub const fn sized(mut self, size: Bytes) -> Self {
        self.size = Some(size);
        self
    }

    /// Returns the intent for a part of what is there.
    #[must_use]
    pub const fn within(mut self, part: Option<ByteExtent>) -> Self {
        self.part = part;
        self
    }
}

/// Permission that the user has given, for all targets of a run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// `--overwrite`: files that plumb did not make, and block devices, may be written if they show no sign
    /// of use.
    pub overwrite: bool,
    /// `--destroy ID`: what the user typed, each naming one target by what does not change: the serial of a
    /// disk, the absolute path of a file. For that target it implies `overwrite`, and that signs of use do
    /// not matter.
    pub destroy: Vec<String>,
    /// How a size is typed in the language that was used, for what the user is told to give.
    pub size_words: &'static str,
}

impl Default for Permission {
    fn default() -> Self {
        Self { overwrite: false, destroy: Vec::new(), size_words: "its size, such as --size 1G" }
    }
}

impl Permission {
    /// Returns true if one of `identities` was typed to be destroyed. White space at the ends and runs of it
    /// do not matter; everything else does.
    pub fn destroys(&self, identities: &[String]) -> bool {
        self.destroy.iter().any(|typed| Self::is_one_of(typed, identities))
    }

    /// Returns true if `typed` is one of `identities`.
    pub fn is_one_of(typed: &str, identities: &[String]) -> bool {
        let typed = single_spaced(typed);
        !typed.is_empty() && identities.iter().any(|identity| single_spaced(identity) == typed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_identity_destroys() {
        let permission = Permission { destroy: vec![" WD-123  45 ".to_owned()], ..Permission::default() };
        assert!(permission.destroys(&["x".to_owned(), "WD-123 45".to_owned()]));
        for other in ["WD-123", "WD-123 45-part1", "wd-123 45", "WD-12345", ""] {
            assert!(!permission.destroys(&[other.to_owned()]), "{other}");
        }
        let empty = Permission { overwrite: true, destroy: vec![" ".to_owned()], ..Permission::default() };
        assert!(!empty.destroys(&[String::new(), " ".to_owned()]), "nothing typed names nothing");
    }
}
