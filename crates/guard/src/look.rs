//! Examination of a path: opens it read-only and collects the facts that the rules judge.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use plumb_block::Bytes;
use plumb_linux::block_ioctl;
use plumb_linux::inventory::identities_of;
use plumb_linux::tree::DeviceNumber;
use plumb_path::survey_path;
use plumb_state::places::kernel_file_system;
use rustix::fs::{FileType, Mode, OFlags};

use crate::byte_extent::ByteExtent;
use crate::error::{Error, Result};
use crate::facts::{BlockFacts, Contents, FileFacts, FoundObject, Missing};
use crate::locate::LocatedName;
use crate::machine::Machine;
use crate::mark::{Maker, maker};
use crate::signature::{self, FileSource, Signature, Source};
use crate::{blkid, cache};

/// Identity of an open file: st_dev, st_ino, and st_rdev of a device node. No other file can have the same
/// identity while a descriptor is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// st_dev: the file system of the file or device node.
    pub device: u64,
    pub(crate) inode: u64,
    /// st_rdev: the device of a node; 0 for a file.
    pub node: u64,
}

impl Key {
    pub(crate) fn from_stat(stat: &rustix::fs::Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino, node: stat.st_rdev }
    }

    /// Returns true if both are the same file, or nodes of the same block device.
    pub(crate) fn is_same_storage(self, other: Self) -> bool {
        if self.node == 0 { self == other } else { self.node == other.node }
    }
}

/// Object at a path, before its uses are known.
pub enum Glimpse {
    /// An object that is not opened: neither a file nor a block device.
    Closed(FoundObject),
    /// An open regular file or block device.
    Open(OwnedFd, Key),
}

/// An examined target. The descriptor is read-only, without O_DIRECT; the key is valid while it is open.
pub(crate) struct Sight {
    pub(crate) found: FoundObject,
    pub(crate) open: Option<(Arc<OwnedFd>, Key)>,
}

impl Sight {
    /// Runs blkid(8) on a block device, or on a file not created by plumb, if plumb's signatures found
    /// nothing.
    pub(crate) fn ask_blkid(&mut self) {
        let contents = match &mut self.found {
            FoundObject::File(file) if !file.made_by_plumb => &mut file.contents,
            FoundObject::Block(block) => &mut block.contents,
            _ => return,
        };
        let Some((file, _)) = &self.open else { return };
        if *contents == Contents::BLANK
            && let Some(words) = blkid::ask(file.as_fd())
        {
            *contents = Contents::NamedByBlkid(words);
        }
    }
}

/// Examines `located`. Opens only regular files and block devices, as opening other objects can have side
/// effects.
///
/// # Errors
/// The system's, if the object cannot be opened for reading.
pub(crate) fn look(machine: &Machine<'_>, located: &LocatedName) -> Result<Sight> {
    Ok(match glance(located)? {
        Glimpse::Closed(found) => Sight { found, open: None },
        Glimpse::Open(file, key) => {
            Sight { found: facts(machine, located, file.as_fd())?, open: Some((Arc::new(file), key)) }
        }
    })
}

/// Opens the object at `located` as [`look`] does, without examining it.
///
/// # Errors
/// Fails as [`look`].
pub fn glance(located: &LocatedName) -> Result<Glimpse> {
    let nothing_open = |found| Ok(Glimpse::Closed(found));
    if let Some(missing) = &located.missing {
        let directory = located.path.parent().filter(|_| *missing == Missing::CanBeMade);
        let there = directory.and_then(kernel_file_system).map(FoundObject::Kernel);
        return nothing_open(there.unwrap_or_else(|| FoundObject::Missing(missing.clone())));
    }
    let stat =
        rustix::fs::lstat(&located.path).map_err(|errno| Error::os(&located.shown, "look at", errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            if let Some(system) = kernel_file_system(&located.path) {
                return nothing_open(FoundObject::Kernel(system));
            }
        }
        FileType::BlockDevice => {}
        FileType::Directory => return nothing_open(FoundObject::Directory),
        FileType::CharacterDevice => return nothing_open(FoundObject::Other("character device")),
        FileType::Fifo => return nothing_open(FoundObject::Other("FIFO")),
        FileType::Socket => return nothing_open(FoundObject::Other("socket")),
        _ => return nothing_open(FoundObject::Other("thing of unknown kind")),
    }
    let key = Key::from_stat(&stat);
    let file = open_same(&located.path, &located.shown, OFlags::RDONLY | OFlags::NONBLOCK, key)?;
    Ok(Glimpse::Open(file, key))
}

/// Opens `path` and checks that it is the file `key`.
///
/// # Errors
/// The system's; a refusal if the path leads to another file by now.
pub fn open_same(path: &Path, shown: &str, flags: OFlags, key: Key) -> Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| refused_open(shown, flags, errno))?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| Error::os(shown, "look at", errno))?;
    if Key::from_stat(&stat) == key {
        return Ok(file);
    }
    let found = "something else took its place while plumb looked at it, and nothing was written";
    Err(Error::refused(shown, found, "find out what does that, then try again"))
}

fn refused_open(shown: &str, flags: OFlags, errno: rustix::io::Errno) -> Error {
    use rustix::io::Errno as Os;
    match errno {
        Os::BUSY if flags.contains(OFlags::EXCL) => Error::refused(
            shown,
            "the kernel says that it is in use, by something that its tables do not show here (another program, \
             another mount namespace)",
            "end that use first; --destroy cannot override what is not known",
        ),
        Os::INVAL if flags.contains(OFlags::DIRECT) => Error::usage(
            shown,
            "its file system does not support O_DIRECT",
            "name a place on another file system, or go through the page cache",
        ),
        Os::TXTBSY => {
            Error::refused(shown, "it is a running program or active swap space", "name another target")
        }
        errno => Error::os(shown, "open", errno),
    }
}

/// Returns all facts for the rules about an open file or block device.
///
/// # Errors
/// The system's, if the size cannot be determined. Anything else that cannot be read is reported as a fact.
pub fn facts(machine: &Machine<'_>, located: &LocatedName, file: BorrowedFd<'_>) -> Result<FoundObject> {
    facts_with(machine, located, file, |size| Some(contents(file, size, located.part)))
}

/// Returns only the uses of an open file or block device, without signatures and identities, which cost some
/// hundred reads of the device and of /sys.
///
/// # Errors
/// Fails as [`facts`].
pub fn uses(machine: &Machine<'_>, located: &LocatedName, file: BorrowedFd<'_>) -> Result<FoundObject> {
    facts_with(machine, located, file, |_| None)
}

fn facts_with(
    machine: &Machine<'_>,
    located: &LocatedName,
    file: BorrowedFd<'_>,
    contents: impl FnOnce(Bytes) -> Option<Contents>,
) -> Result<FoundObject> {
    let stat = rustix::fs::fstat(file).map_err(|errno| Error::os(&located.shown, "look at", errno))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice {
        let size = block_ioctl::capacity(file).map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            Error::os(&located.shown, "measure", errno)
        })?;
        check_part_fits(located, size)?;
        let found = block_facts(machine, stat.st_rdev, size, contents(size));
        return Ok(FoundObject::Block(narrowed_to_part(machine, found, located.part)));
    }
    let size = Bytes(u64::try_from(stat.st_size).unwrap_or(0));
    check_part_fits(located, size)?;
    let identities: Vec<String> = located.path.to_str().map(str::to_owned).into_iter().collect();
    let identities = part_identities(identities, located.part);
    let (uses, unseen) = match machine.inventory() {
        Ok(inventory) => {
            let bytes = located.part.map_or(0..u64::MAX, ByteExtent::range);
            (inventory.uses_of_file(&identities_of(file), &located.path.to_string_lossy(), bytes), None)
        }
        Err(unseen) => (Vec::new(), Some(unseen.to_string())),
    };
    let maker = maker(file);
    let (made_by_plumb, changed_since_made) = (maker == Maker::Plumb, maker == Maker::PlumbThenOthers);
    let contents = contents(size).unwrap_or(Contents::BLANK);
    Ok(FoundObject::File(FileFacts {
        identities,
        size: located.part.map_or(size, |part| Bytes(part.length)),
        made_by_plumb,
        changed_since_made,
        contents,
        uses,
        unseen,
    }))
}

/// Refuses a part that extends beyond the end of its file or device.
fn check_part_fits(located: &LocatedName, size: Bytes) -> Result<()> {
    match located.part {
        Some(part) if part.range().end > size.0 => {
            let found = format!("it has {} bytes, and the part ends at {}", size.0, part.range().end);
            Err(Error::usage(
                &located.shown,
                found,
                "name a part within it, or make a file longer (fallocate)",
            ))
        }
        _ => Ok(()),
    }
}

/// Narrows the facts about a block device to a part of it.
fn narrowed_to_part(machine: &Machine<'_>, block: BlockFacts, part: Option<ByteExtent>) -> BlockFacts {
    let Some(known) = part else { return block };
    let uses = machine.inventory().map(|all| all.uses_of_part(&block.kernel_name, known.range()));
    BlockFacts {
        size: Bytes(known.length),
        identities: part_identities(block.identities, part),
        // An unreadable inventory is already recorded in `unseen`.
        uses: uses.unwrap_or_default(),
        ..block
    }
}

/// Returns the identities of a part, for `--destroy`: those of the whole with the extent appended, because
/// the plain identity would permit destroying everything.
fn part_identities(identities: Vec<String>, part: Option<ByteExtent>) -> Vec<String> {
    match part {
        None => identities,
        Some(part) => identities.into_iter().map(|identity| format!("{identity}@{part}")).collect(),
    }
}

/// Returns the facts about the block device `rdev` (st_rdev of its node). Without `contents`, identities are
/// left out.
pub fn block_facts(machine: &Machine<'_>, rdev: u64, size: Bytes, contents: Option<Contents>) -> BlockFacts {
    let is_named = contents.is_some();
    let contents = contents.unwrap_or(Contents::BLANK);
    let number = DeviceNumber::from_stat(rdev);
    let unseen = |unseen: String| {
        // Report the kernel name at least: a device that is only read is allowed all the same.
        let kernel_name = number.name(machine.tree).unwrap_or_else(|| number.to_string());
        BlockFacts {
            size,
            identities: vec![kernel_name.clone()],
            read_only: false,
            contents: contents.clone(),
            uses: Vec::new(),
            unseen: Some(unseen),
            kernel_name,
        }
    };
    let inventory = match machine.inventory() {
        Ok(inventory) => inventory,
        Err(error) => return unseen(error.to_string()),
    };
    let Some(block) = inventory.by_number(number) else {
        return unseen(format!("/sys/class/block has no device {number}"));
    };
    let has_partitions =
        block.above.iter().any(|above| inventory.get(above).is_some_and(|above| above.partition.is_some()));
    let mut contents = contents;
    if has_partitions && contents == Contents::BLANK {
        // The kernel reads more kinds of partition table than there are signatures here.
        contents = Contents::Read(vec![signature::Signature::new("partitions", 0)]);
    }
    let names = || {
        inventory.identities(machine.tree, block, |disk| {
            let path = survey_path(machine.tree, machine.probe, &disk.node()).ok()?;
            path.layer(&disk.name)?.identity.clone()
        })
    };
    BlockFacts {
        identities: if is_named { names() } else { Vec::new() },
        size,
        read_only: machine.tree.text(&format!("{}/ro", block.sysfs)).is_ok_and(|text| text == "1"),
        contents,
        uses: inventory.uses(&block.name),
        unseen: None,
        kernel_name: block.name.clone(),
    }
}

/// Returns the contents, with the signatures of a backing device and of the logs of caches in parts of
/// `file`, which may lie anywhere.
fn contents(file: BorrowedFd<'_>, size: Bytes, part: Option<ByteExtent>) -> Contents {
    let source = FileSource { file, size: size.0 };
    let found = match part {
        None => signature::find(&source),
        Some(part) => signature::find(&PartSource { source: &source, part })
            .and_then(|within| Ok((within, signature::find(&source)?)))
            .map(|(within, whole)| with_whole(within, whole, file)),
    };
    let mut found = match found {
        Ok(found) => found,
        Err(error) => return Contents::Unreadable(error.to_string()),
    };
    let begin = part.map_or(0, |part| part.offset);
    for log in cache::log_parts(file).iter().map(|log| log.part) {
        let sign = Signature::new(signature::CACHE_LOG, log.offset.saturating_sub(begin));
        let is_other = part.is_none_or(|part| part.overlaps(log) && part != log);
        if is_other && !found.contains(&sign) {
            found.push(sign);
        }
    }
    if !found.iter().any(|found| found.name == signature::CACHE_BACKING) && cache::is_backing(file, size) {
        found.push(Signature::new(signature::CACHE_BACKING, 0));
    }
    Contents::Read(found)
}

/// Returns the signatures within a part, and those of the whole that may extend into the part. Leaves out
/// logs of caches in other parts.
fn with_whole(mut within: Vec<Signature>, whole: Vec<Signature>, file: BorrowedFd<'_>) -> Vec<Signature> {
    let logs = cache::log_parts(file);
    let is_of_a_part = |found: &Signature| {
        let mut there = logs.iter().filter(|log| log.bears_log);
        found.name == signature::CACHE_LOG && there.any(|log| log.part.range().contains(&found.at))
    };
    let known: Vec<_> = within.iter().map(|found| found.name).collect();
    within.extend(whole.into_iter().filter(|found| !known.contains(&found.name) && !is_of_a_part(found)));
    within
}

struct PartSource<'a> {
    source: &'a FileSource<'a>,
    part: ByteExtent,
}

impl Source for PartSource<'_> {
    fn size(&self) -> u64 {
        self.part.length
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let length = (into.len() as u64).min(self.part.length.saturating_sub(at)) as usize;
        self.source.read_at(self.part.offset + at, &mut into[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn another_file_under_the_same_name_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, "one").unwrap();
        let held = std::fs::File::open(&path).unwrap();
        let key = Key::from_stat(&rustix::fs::fstat(&held).unwrap());
        assert!(open_same(&path, "x", OFlags::RDWR, key).is_ok());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "two").unwrap();
        let error = open_same(&path, "x", OFlags::RDWR, key).unwrap_err();
        assert!(error.kind() == Kind::Refused && error.found().contains("something else"), "{error}");
        // A symbolic link in place of the file is not followed.
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/proc/self/fd/0", &path).unwrap();
        assert!(open_same(&path, "x", OFlags::RDONLY, key).is_err());
    }
}
