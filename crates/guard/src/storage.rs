//! Storage below targets: whether two targets share storage, whether a program has claimed it by another
//! device, and the size of a target.

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

/// Returns the present size of the file or block device at `path`; `None` if it is 0 or unknown.
pub fn size_of(path: &str) -> Option<Bytes> {
    let found = std::fs::metadata(path).ok()?;
    let size = match found.file_type().is_block_device() {
        true => block_ioctl::capacity(File::open(path).ok()?.as_fd()).ok()?,
        false => Bytes(found.len()),
    };
    Some(size).filter(|size| size.0 > 0)
}

/// Returns true if a write to one open file or block device changes the other: they are the same, or their
/// ranges of the storage below overlap. Two partitions of a disk do not overlap; two loop devices over one
/// file may.
///
/// # Errors
/// The system's; a refusal if the storage below cannot be determined.
pub fn overlap(one: impl AsFd, two: impl AsFd) -> Result<bool> {
    overlap_parts(
        &PartOfFile { file: one.as_fd(), part: None },
        &PartOfFile { file: two.as_fd(), part: None },
    )
}

/// Part of an open file or block device.
pub struct PartOfFile<'a> {
    /// The file or block device.
    pub file: BorrowedFd<'a>,
    /// The part; `None` for all of it.
    pub part: Option<ByteExtent>,
}

/// Returns true if a write to one part changes the other.
///
/// # Errors
/// Fails as [`overlap`].
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

/// Refuses a file or device whose storage is claimed exclusively through another device: below a loop device,
/// above, or over the same file. The kernel's tables do not show such a claim, for instance of a file system
/// mounted in another mount namespace. The rules judge the uses that the tables show.
///
/// # Errors
/// The refusal; the system's.
pub fn nobody_claims(
    machine: &Machine<'_>,
    found: &FoundObject,
    part: &PartOfFile<'_>,
    shown: &str,
) -> Result<()> {
    // The rules report an unreadable inventory.
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
