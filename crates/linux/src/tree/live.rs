//! The running kernel's files.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, FileType, IFlags, Mode, OFlags, StatxFlags};

use super::absence::{Absence, Answer};
use super::{Attributes, DeviceNumber, FileKind, Stat, Tree, UntornLimits, WriteLimits};

/// STATX_WRITE_ATOMIC of linux/stat.h, since Linux 6.11.
pub(crate) const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);

/// Upper bound of the size of the files that a survey reads; longer ones are truncated.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The files of the running kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveTree;

impl LiveTree {
    /// Creates a tree of this machine.
    pub fn new() -> Self {
        Self
    }
}

impl Tree for LiveTree {
    fn read(&self, path: &str) -> Answer<Vec<u8>> {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        // An attribute that fails with EINVAL has no value (sysfs does that for devices in the wrong state).
        read().map_err(|error| Absence::from_io(&error))
    }

    fn list(&self, path: &str) -> Answer<Vec<String>> {
        let entries = fs::read_dir(path).map_err(|error| Absence::from_io(&error))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn link(&self, path: &str) -> Answer<String> {
        let target = fs::read_link(path).map_err(|error| Absence::from_io(&error))?;
        Ok(String::from_utf8_lossy(target.as_os_str().as_bytes()).into_owned())
    }

    fn stat(&self, path: &str) -> Answer<Stat> {
        let asked = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = rustix::fs::statx(CWD, path, AtFlags::empty(), asked)
            .map_err(|errno| Absence::from_errno(plumb_block::Errno(errno.raw_os_error())))?;
        let kind = match FileType::from_raw_mode(u32::from(found.stx_mode)) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::BlockDevice => FileKind::Block,
            FileType::CharacterDevice => FileKind::Character,
            _ => FileKind::Other,
        };
        let is_node = matches!(kind, FileKind::Block | FileKind::Character);
        let says_mount = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        Ok(Stat {
            kind,
            device: DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor },
            node: is_node
                .then_some(DeviceNumber { major: found.stx_rdev_major, minor: found.stx_rdev_minor }),
            mount: says_mount.then_some(found.stx_mnt_id),
        })
    }

    fn attributes(&self, path: &str) -> Answer<Attributes> {
        let flags = || {
            let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            rustix::fs::ioctl_getflags(rustix::fs::open(path, how, Mode::empty())?)
        };
        let flags = flags().map_err(|errno| Absence::from_errno(plumb_block::Errno(errno.raw_os_error())))?;
        Ok(Attributes {
            synchronous: flags.contains(IFlags::SYNC),
            directory_synchronous: flags.contains(IFlags::DIRSYNC),
            no_copy_on_write: flags.contains(IFlags::NOCOW),
        })
    }

    fn write_limits(&self, path: &str) -> Answer<WriteLimits> {
        let asked = StatxFlags::BASIC_STATS | WRITE_ATOMIC;
        let found = rustix::fs::statx(CWD, path, AtFlags::empty(), asked)
            .map_err(|errno| Absence::from_errno(plumb_block::Errno(errno.raw_os_error())))?;
        let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(WRITE_ATOMIC);
        Ok(WriteLimits {
            block: found.stx_blksize,
            untorn: is_known.then_some(UntornLimits {
                unit_min: found.stx_atomic_write_unit_min,
                unit_max: found.stx_atomic_write_unit_max,
                unit_max_optimised: found.stx_atomic_write_unit_max_opt,
                segments_max: found.stx_atomic_write_segments_max,
            }),
        })
    }

    fn canonical(&self, path: &str) -> Answer<String> {
        let found = fs::canonicalize(path).map_err(|error| Absence::from_io(&error))?;
        found.into_os_string().into_string().map_err(|_| Absence::NOT_TEXT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_answers() {
        let tree = LiveTree::new();
        assert!(tree.text("/proc/sys/kernel/osrelease").unwrap().contains('.'));
        assert_eq!(tree.read("/proc/none-such"), Err(Absence::NotThere));
        assert_eq!(tree.link("/proc"), Err(Absence::NotThere));
        assert_eq!(tree.stat("/").unwrap().kind, FileKind::Directory);
        assert_eq!(tree.stat("/dev/null").unwrap().node, Some(DeviceNumber { major: 1, minor: 3 }));
        assert!(tree.canonical(".").unwrap().starts_with('/'));
    }
}
