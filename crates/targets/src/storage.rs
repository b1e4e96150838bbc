//! Storage beneath a target: whether two targets are the same storage, and whether a program has claimed what
//! a loop device is set up over.

use std::os::fd::{AsFd, BorrowedFd};

use plumb_linux::inventory::{Block, FileId, Inventory, Storage, Use};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::{DeviceNumber, LiveTree};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::facts::FoundObject;
use crate::guard::unseen_words;
use crate::machine::Machine;

/// Returns true if writing to one open file or block device changes the other: they are the same, or ranges
/// of what is beneath both meet. Two partitions of a disk do not overlap, two loop devices over one file may.
///
/// # Errors
/// The system's; a refusal where it cannot be seen what is beneath.
pub fn overlap(one: impl AsFd, two: impl AsFd) -> Result<bool> {
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    let inventory = Machine::new(&tree, &probe).inventory().map_err(|error| {
        let remedy = "run where /proc and /sys are those of the machine";
        Error::refused("what is beneath the targets", unseen_words(&error.to_string()), remedy)
    })?;
    Ok(storage(&inventory, one.as_fd())?.overlaps(&storage(&inventory, two.as_fd())?))
}

fn storage(inventory: &Inventory, file: BorrowedFd<'_>) -> Result<Storage> {
    let stat = rustix::fs::fstat(file).map_err(|errno| Error::os("a target", "look at", errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
        return Ok(Storage::from_file(FileId { device: stat.st_dev, inode: stat.st_ino }, None));
    }
    let number =
        DeviceNumber { major: rustix::fs::major(stat.st_rdev), minor: rustix::fs::minor(stat.st_rdev) };
    let name = inventory.by_number(number).map_or("", |block| block.name.as_str());
    Ok(inventory.storage(name))
}

/// Refuses a device that is a loop device over, or stands on one over, a device that a program has claimed
/// for itself: the tables of the kernel do not show that. A use that they show is judged by the rules.
///
/// # Errors
/// The refusal.
pub(crate) fn nobody_claims_beneath(machine: &Machine<'_>, found: &FoundObject, shown: &str) -> Result<()> {
    let FoundObject::Block(target) = found else { return Ok(()) };
    // An inventory that cannot be read is a fact of the target, not an error of this check.
    let Ok(inventory) = machine.inventory() else { return Ok(()) };
    for below in inventory.behind_loop_devices(&target.kernel_name) {
        if is_claimed(below) && !is_seen_in_use(&inventory, below) {
            let found = format!("{} beneath it is in use by another program", below.name);
            let remedy = "end that use first; --destroy cannot override what is not known";
            return Err(Error::refused(shown, found, remedy));
        }
    }
    Ok(())
}

fn is_claimed(block: &Block) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    matches!(rustix::fs::open(block.node(), flags, Mode::empty()), Err(Errno::BUSY))
}

fn is_seen_in_use(inventory: &Inventory, block: &Block) -> bool {
    let claims = |one: &Use| matches!(one, Use::Mounted { .. } | Use::Swap { .. } | Use::Held { .. });
    inventory.uses(&block.name).iter().any(claims)
}
