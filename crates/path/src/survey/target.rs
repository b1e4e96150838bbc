//! What a user asks for, and how it is found.

use plumb_linux::tree::{Absence, FileKind};

use super::Top;
use super::surveyor::Surveyor;

/// What is to be surveyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path on a file system, a device node, or a kernel's name for a block device (`sda`). A relative path is taken
    /// from the working directory.
    Named(String),
    /// Every place where data can be put: each mounted file system that is kept on block devices, once, and each
    /// block device that nothing stands on. Devices without a size, memory disks, compressed swap and read-only media
    /// drives are left out.
    All,
}

/// Why a survey could not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// There is nothing at that name.
    #[error(
        "cannot survey {target}: there is no such path, and no block device of that name; name a file, a directory, a device such as /dev/sda, or use --all"
    )]
    NotFound {
        /// What was asked for.
        target: String,
    },
    /// The target may be there, but cannot be looked at.
    #[error(
        "cannot survey {target}: {reason}; run as a user who may reach it, or name the mount point above it"
    )]
    Unreachable {
        /// What was asked for.
        target: String,
        /// What stands in the way.
        reason: Absence,
    },
    /// It is neither on a file system nor a block device.
    #[error(
        "cannot survey {target}: it is a character device, which has no write path; name a block device or a path on a file system"
    )]
    NotStorage {
        /// What was asked for.
        target: String,
    },
}

impl Surveyor<'_> {
    /// Finds what `name` stands for and reads all that is below it.
    pub(super) fn find(&mut self, name: &str) -> Result<Top, SurveyError> {
        let target = name.to_owned();
        let canonical = match self.tree.canonical(name) {
            Ok(path) => path,
            Err(Absence::NotThere | Absence::NotRecorded) => return self.find_device(name),
            Err(reason) => return Err(SurveyError::Unreachable { target, reason }),
        };
        let stat = match self.tree.stat(&canonical) {
            Ok(stat) => stat,
            Err(Absence::NotThere) => return self.find_device(name),
            // Without the path itself, the mount table still tells.
            Err(_) => return self.top_on_mount(target, &canonical, None),
        };
        match (stat.kind, stat.node) {
            (FileKind::Block, Some(number)) => {
                let node = self.device_by_number(number, &canonical);
                Ok(Top { target, node })
            }
            (FileKind::Character, _) => Err(SurveyError::NotStorage { target }),
            _ => self.top_on_mount(target, &canonical, stat.mount),
        }
    }

    fn top_on_mount(&mut self, target: String, path: &str, mount: Option<u64>) -> Result<Top, SurveyError> {
        match self.file_system_at(path, mount) {
            Some(node) => Ok(Top { target, node }),
            None => Err(SurveyError::Unreachable { target, reason: Absence::NotThere }),
        }
    }

    /// A kernel's name for a block device, where there is no node for it: in a container, in a recording.
    fn find_device(&mut self, name: &str) -> Result<Top, SurveyError> {
        let kernel_name = name.strip_prefix("/dev/").unwrap_or(name).replace('/', "!");
        let valid = !kernel_name.is_empty() && !kernel_name.starts_with('.');
        if valid && self.tree.link(&format!("/sys/class/block/{kernel_name}")).is_ok() {
            let node = self.device(&kernel_name);
            return Ok(Top { target: name.to_owned(), node });
        }
        Err(SurveyError::NotFound { target: name.to_owned() })
    }
}
