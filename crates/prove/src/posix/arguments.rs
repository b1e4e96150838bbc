//! Arguments of a system call: the bytes that it writes, and the files that it names, as seen by the calling
//! thread.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::layout::Inode;
use super::mirror::{Mirror, Place};
use super::tasks::DescriptorState;
use crate::trace::{Argument, Call, has_flag};

/// Range of a write, as far as it is known before the result, which is its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// First byte.
    From(u64),
    /// End of the bytes: the position of the descriptor after the write.
    UpTo(u64),
}

impl Written {
    /// Returns the range with this length.
    pub(super) const fn range(self, length: u64) -> Range<u64> {
        match self {
            Self::From(start) => start..start.saturating_add(length),
            Self::UpTo(end) => end.saturating_sub(length)..end,
        }
    }
}

/// Returns the bytes that a call wrote, as far as its arguments and its descriptor determine them.
pub(super) fn written(call: &Call, state: &DescriptorState) -> Option<Written> {
    let is_appended = state.flags & OFlags::APPEND.bits() != 0 || has_flag(call, "RWF_APPEND");
    match (call.name.as_str(), word(call, 3)) {
        ("write" | "writev", _) | ("pwritev2", Some("-1")) => Some(Written::UpTo(state.position)),
        ("pwrite64" | "pwritev" | "pwritev2", Some(offset)) if !is_appended => {
            number(offset).map(Written::From)
        }
        _ => None,
    }
}

/// Returns the number of bytes that a call was to write, if its arguments contain it.
pub(super) fn offered_length(call: &Call) -> Option<u64> {
    word(call, 2).filter(|_| matches!(call.name.as_str(), "write" | "pwrite64")).and_then(number)
}

/// Returns an argument that is neither a descriptor nor text.
pub(super) fn word(call: &Call, place: usize) -> Option<&str> {
    match call.arguments.get(place) {
        Some(Argument::Word(word)) => Some(word),
        _ => None,
    }
}

/// Returns the number in a word: decimal, or hexadecimal after `0x`.
pub(super) fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Returns the file or directory behind a descriptor of a call, if it is below the root.
pub(super) fn descriptor(mirror: &mut Mirror, call: &Call, place: usize) -> Option<(Inode, File)> {
    let Some(Argument::Descriptor(number, path)) = call.arguments.get(place) else { return None };
    if !path.starts_with(&mirror.root) {
        return None;
    }
    let link = PathBuf::from(format!("/proc/{}/fd/{number}", call.thread));
    // A descriptor that is closed by now was not usable by the call.
    let (file, metadata) = mirror.open(&link, path)?;
    let known = mirror.known(&metadata);
    let inode = known.or_else(|| {
        // The file has no name, as after O_TMPFILE.
        let inode = (metadata.nlink() == 0 && metadata.is_file()).then(|| mirror.make(&metadata, None))?;
        mirror.compare_file(inode, &file, None);
        Some(inode)
    })?;
    Some((inode, file))
}

/// Returns the place of path argument `number` of a call, if it is below the root.
pub(super) fn place(mirror: &mut Mirror, call: &Call, number: usize, follows: bool) -> Option<Place> {
    let (place, path) = call.text(number)?;
    let base = match place.checked_sub(1).and_then(|before| call.arguments.get(before)) {
        Some(Argument::Descriptor(_, base)) => base.clone(),
        _ if path.is_absolute() => PathBuf::new(),
        _ => fs::read_link(format!("/proc/{}/cwd", call.thread)).ok()?,
    };
    let mut path = base.join(path);
    if follows {
        path = path.canonicalize().unwrap_or(path);
    }
    let directory = path.parent()?.canonicalize().ok().filter(|path| path.starts_with(&mirror.root))?;
    let name = path.file_name()?.to_owned();
    match mirror.inode_at(&directory) {
        Some(inode) => Some(Place { directory: inode, path: directory, name }),
        None => {
            mirror.unseen.insert(format!("{} was made by no traced system call", directory.display()));
            None
        }
    }
}
