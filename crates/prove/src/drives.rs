//! Several drives that lose their power at the same moment, for example one with a database and one with its
//! log.
//!
//! The drives are recorded as one device, on which they follow one another in order. Each drive is attached
//! as a block device with its own file system. The file systems of the further drives are mounted in the root
//! directory of the first.
//!
//! ```text
//!   / ── data            ─► /dev/loop0 ─► blocks 0..N   of the device that is recorded
//!   └─ log (mount point) ─► /dev/loop1 ─► blocks N..M
//! ```

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use plumb_block::{Bytes, Device, Lba};
use plumb_caches::Part;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, cannot};
use crate::file_system::{FileSystem, FileSystemOptions, MountedFileSystem};

/// Largest logical block of a drive. Capacities are multiples of it.
const BLOCK_MAX: Bytes = Bytes::kib(4);

/// Name of the link to the first drive, used if there are several drives without file systems.
pub const FIRST: &str = "first";

/// Drive in addition to the first, with a file system of the same kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherDrive {
    /// Name of the directory at which the drive's file system is mounted.
    pub directory: PathBuf,
    /// Capacity of the drive.
    pub size: Bytes,
    /// Name of the drive's profile; `None` for that of the first drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

impl FromStr for FurtherDrive {
    type Err = Error;

    fn from_str(typed: &str) -> Result<Self> {
        let (drive, profile) = typed.split_once(',').map_or((typed, None), |(drive, own)| (drive, Some(own)));
        let (name, size) = drive.rsplit_once('=').unwrap_or_default();
        let mut components = Path::new(name).components();
        let is_name = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
        let size = size.parse().ok().filter(|size: &Bytes| is_name && *size >= BLOCK_MAX);
        let expected = "expected the name of a directory and a capacity, such as log=64M, or log=64M,protected with a profile of its own";
        let size = size.ok_or_else(|| Error::usage(format!("`{typed}` is not a drive: {expected}")))?;
        let profile = profile.map(str::to_owned);
        Ok(Self { directory: name.into(), size: size.round_down(BLOCK_MAX), profile })
    }
}

impl FileSystemOptions {
    /// Returns the first block of each further drive on a device that ends with these drives.
    pub(crate) fn further_begin(&self, size: Bytes, logical_block: Bytes) -> Vec<u64> {
        let lengths = self.further.iter().map(|drive| drive.size.0);
        let begin = size.0.saturating_sub(lengths.clone().sum());
        let begins = lengths.scan(begin, |begin, length| Some(std::mem::replace(begin, *begin + length)));
        begins.map(|begin| begin / logical_block.0).collect()
    }

    /// Returns all drives of a device that consists of them in order.
    pub(crate) fn drives(&self, device: &Arc<dyn Device>) -> Vec<Arc<dyn Device>> {
        if self.further.is_empty() {
            return vec![Arc::clone(device)];
        }
        let info = device.info();
        let block = info.logical_block.0;
        let begins = self.further_begin(info.size, info.logical_block);
        let ends = begins.iter().copied().chain([info.size.0 / block]);
        let begins = [0].into_iter().chain(begins.iter().copied());
        let part = |(begin, end): (u64, u64)| -> Arc<dyn Device> {
            Arc::new(Part {
                device: Arc::clone(device),
                first: Lba(begin),
                size: Bytes((end - begin) * block),
            })
        };
        begins.zip(ends).map(part).collect()
    }
}

impl FileSystem {
    /// Mounts the file systems of all drives, the first one at the directory `at`. Without file systems,
    /// links to several drives are created in `at`.
    ///
    /// # Errors
    /// Those of [`mount`](Self::mount), and a failure to create the directory for a further drive.
    pub(crate) fn mount_all(
        self,
        devices: &[PathBuf],
        at: &Path,
        options: &FileSystemOptions,
    ) -> Result<MountedFileSystem> {
        if self == Self::None && devices.len() > 1 {
            let names = options.further.iter().map(|drive| &*drive.directory);
            let names = std::iter::once(Path::new(FIRST)).chain(names);
            return MountedFileSystem::linked(names.zip(devices), at);
        }
        let mut mounted = self.mount(&devices[0], at, options)?;
        for (device, drive) in devices[1..].iter().zip(&options.further) {
            let at = at.join(&drive.directory);
            fs::create_dir_all(&at).map_err(cannot(format!("make {}", at.display())))?;
            mounted.add(self.mount(device, &at, options)?);
        }
        Ok(mounted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_drives_lie_behind_the_first() {
        let further = ["log=8k", "b=9000"].map(|typed| typed.parse().unwrap());
        let options = FileSystemOptions { further: further.into(), ..FileSystemOptions::default() };
        assert_eq!(options.further_begin(Bytes::kib(64), Bytes(512)), [96, 112]);
        assert_eq!(options.further[1].size, Bytes::kib(8));
        let own: FurtherDrive = "log=8k,atomic-16k:128k".parse().unwrap();
        assert_eq!((own.size, own.profile.as_deref()), (Bytes::kib(8), Some("atomic-16k:128k")));
        for wrong in ["", "log", "log=", "=8k", "../log=8k", "a/b=8k", "/=8k", "log=1"] {
            let error = wrong.parse::<FurtherDrive>().unwrap_err().to_string();
            assert!(error.contains("log=64M"), "{wrong}: {error}");
        }
    }
}
