//! Storage beneath a target: whether two targets are the same storage, and whether a program has claimed what
//! a loop device is set up over, or another device that is the same storage; and how large a target is.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt as _;

use plumb_block::Bytes;
use plumb_linux::block_ioctl;
use plumb_linux::inventory::{Block, Inventory, Storage, Use, identities_of};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::{DeviceNumber, LiveTree};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::byte_extent::ByteExtent;
use crate::error::{Error, Result};
use crate::facts::FoundObject;
use crate::machine::Machine;
use crate::rules::unseen_words;

/// Returns how large the file or block device at `path` is now; `None` if it is empty or not known.
pub fn size_of(path: &str) -> Option<Bytes> {
    let found = std::fs::metadata(path).ok()?;
    let size = match found.file_type().is_block_device() {
        true => block_ioctl::capacity(File::open(path).ok()?.as_fd()).ok()?,
        false => Bytes(found.len()),
    };
    Some(size).filter(|size| size.0 > 0)
}

/// Returns true if writing to one open file or block device changes the other: they are the same, or ranges
/// of what is beneath both meet. Two partitions of a disk do not overlap, two loop devices over one file may.
///
/// # Errors
/// The system's; a refusal where it cannot be seen what is beneath.
pub fn overlap(one: impl AsFd, two: impl AsFd) -> Result<bool> {
    overlap_parts(
        &PartOfFile { file: one.as_fd(), part: None },
        &PartOfFile { file: two.as_fd(), part: None },
    )
}

/// A part of an open file or block device; `None`: all of it.
pub struct PartOfFile<'a> {
    /// The file or block device.
    pub file: BorrowedFd<'a>,
    /// The part of it.
    pub part: Option<ByteExtent>,
}

/// Returns true if writing to one part changes the other.
///
/// # Errors
/// As [`overlap`].
pub fn overlap_parts(one: &PartOfFile<'_>, two: &PartOfFile<'_>) -> Result<bool> {
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    let machine = Machine::new(&tree, &probe);
    let inventory = machine.inventory().map_err(|error| {
        let remedy = "run where /proc and /sys are those of the machine";
        Error::refused("what is beneath the targets", unseen_words(&error.to_string()), remedy)
    })?;
    Ok(storage(inventory, one)?.overlaps(&storage(inventory, two)?))
}

fn storage(inventory: &Inventory, PartOfFile { file, part }: &PartOfFile<'_>) -> Result<Storage> {
    let bytes = part.map_or(0..u64::MAX, ByteExtent::range);
    let stat = rustix::fs::fstat(file).map_err(|errno| Error::os("a target", "look at", errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
        return Ok(Storage::from_file(&identities_of(file), None, bytes));
    }
    let name =
        inventory.by_number(DeviceNumber::from_stat(stat.st_rdev)).map_or("", |block| block.name.as_str());
    Ok(inventory.storage_of_part(name, bytes))
}

/// Refuses a file or device whose storage a program has claimed for itself by another device: one behind a
/// loop device beneath it, one above, or one over the same file. The tables of the kernel do not show such
/// a claim, for instance of a file system that is mounted in another mount namespace. A use that they show
/// is judged by the rules.
///
/// # Errors
/// The refusal; the system's.
pub fn nobody_claims(
    machine: &Machine<'_>,
    found: &FoundObject,
    part: &PartOfFile<'_>,
    shown: &str,
) -> Result<()> {
    // An inventory that cannot be read is a fact of the target, not an error of this check.
    let Ok(inventory) = machine.inventory() else { return Ok(()) };
    let below = match found {
        FoundObject::Block(target) => inventory.behind_loop_devices(&target.kernel_name),
        _ => Vec::new(),
    };
    let storage = storage(inventory, part)?;
    let is_used = |block: &&Block| is_claimed(block) && !is_seen_in_use(inventory, block);
    let found = match (below.into_iter().find(is_used), inventory.beside(&storage).find(is_used)) {
        (Some(below), _) => format!("{} beneath it is in use by another program", below.name),
        (None, Some(beside)) => format!(
            "{} is the same storage, and in use by another program or mounted in another mount namespace",
            beside.name
        ),
        (None, None) => return Ok(()),
    };
    let remedy = "end that use first; --destroy cannot override what is not known";
    Err(Error::refused(shown, found, remedy))
}

fn is_claimed(block: &Block) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    matches!(rustix::fs::open(block.node(), flags, Mode::empty()), Err(Errno::BUSY))
}

fn is_seen_in_use(inventory: &Inventory, block: &Block) -> bool {
    let claims = |one: &Use| matches!(one, Use::Mounted { .. } | Use::Swap { .. } | Use::Held { .. });
    inventory.uses(&block.name).iter().any(claims)
}
