//! Intended use of a target, and the user's permission for it.

use plumb_block::Bytes;
use plumb_linux::inventory::single_spaced;
use plumb_linux::range_lock::LockKind;

use crate::byte_extent::ByteExtent;

/// Intended use of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intent {
    /// True for reading and writing; false opens the target read-only.
    pub writes: bool,
    /// Required size: a missing file is created, a shorter one extended. A block device must have at least
    /// this size.
    pub size: Option<Bytes>,
    /// True if a longer file is cut to `size`.
    pub cuts: bool,
    /// Part of an existing target, which is neither created nor extended; `None` for all of it.
    pub part: Option<ByteExtent>,
    /// Lock on a written file, held until the target is closed: shared with other runs, or exclusive for a
    /// run that verifies its data. `None` for no lock.
    pub lock: Option<LockKind>,
}

impl Intent {
    /// Reading of all of the target.
    pub const READ: Self = Self { writes: false, size: None, cuts: false, part: None, lock: None };
    /// Writing of all of the target.
    pub const WRITE: Self = Self { writes: true, size: None, cuts: false, part: None, lock: None };

    /// Returns the intent with this required size.
    #[must_use]
    pub const fn sized(mut self, size: Bytes) -> Self {
        self.size = Some(size);
        self
    }

    /// Returns the intent restricted to `part`.
    #[must_use]
    pub const fn within(mut self, part: Option<ByteExtent>) -> Self {
        self.part = part;
        self
    }
}

/// The user's permission, for all targets of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// `--overwrite`: permits writing to files not created by plumb, and to block devices, unless they show
    /// signs of use.
    pub overwrite: bool,
    /// `--destroy ID`: values typed by the user, each the permanent identity of one target: the serial of a
    /// disk, the absolute path of a file. For that target it implies `overwrite`, and signs of use do not
    /// matter.
    pub destroy: Vec<String>,
    /// Syntax of a size in the dialect used, for messages.
    pub size_words: &'static str,
}

impl Default for Permission {
    fn default() -> Self {
        Self { overwrite: false, destroy: Vec::new(), size_words: "its size, such as --size 1G" }
    }
}

impl Permission {
    /// Returns true if one of `identities` may be destroyed. Leading, trailing and repeated white space is
    /// ignored.
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
