//! Target of a survey as a user names it, and its resolution.

use std::path::Path;

use plumb_linux::tree::{Absence, FileKind, Stat};

use super::Top;
use super::surveyor::Surveyor;
use crate::facts::Mark;
use crate::model::{LayerKind, SYNC_ATTRIBUTE};

/// Target of a survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path on a file system, a device node, or a kernel name of a block device (`sda`). A relative path
    /// starts at the working directory.
    Named(String),
    /// Every place for data: each mounted file system on block devices, once, and each unused block device.
    /// Devices without a size, memory disks, compressed swap and read-only media drives are excluded.
    All,
}

/// Reason why a survey could not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// The name leads to nothing.
    #[error(
        "cannot survey {target}: there is no such path, and no block device of that name; name a file, a directory, a device such as /dev/sda, or use --all"
    )]
    NotFound {
        /// Requested target.
        target: String,
    },
    /// The target may exist but is not accessible.
    #[error(
        "cannot survey {target}: {reason}; run as a user who may reach it, or name the mount point above it"
    )]
    Unreachable {
        /// Requested target.
        target: String,
        /// Reason why the target cannot be reached.
        reason: Absence,
    },
    /// The target is a character device, a pipe or a socket.
    #[error(
        "cannot survey {target}: it is neither a file nor a block device, so it has no write path; name a block device or a path on a file system"
    )]
    NotStorage {
        /// Requested target.
        target: String,
    },
}

/// Returns the text of a typed path.
///
/// # Errors
/// [`SurveyError::Unreachable`] if it is not UTF-8.
pub fn text_of(typed: &Path) -> Result<&str, SurveyError> {
    typed.to_str().ok_or_else(|| SurveyError::Unreachable {
        target: typed.to_string_lossy().into_owned(),
        reason: Absence::NOT_TEXT,
    })
}

impl Surveyor<'_> {
    /// Resolves `name` and reads everything below it.
    pub(super) fn find(&mut self, name: &str) -> Result<Top, SurveyError> {
        let target = name.to_owned();
        // A process's link leads into its mount namespace, where the text of the link means something else.
        if name.starts_with("/proc/")
            && let Ok(stat) = self.tree.stat(name)
        {
            return self.top_at(target, name, &stat);
        }
        let canonical = match self.tree.canonical(name) {
            Ok(path) => path,
            Err(Absence::NotThere | Absence::NotRecorded) => return self.find_device(name),
            Err(reason) => return Err(SurveyError::Unreachable { target, reason }),
        };
        let stat = match self.tree.stat(&canonical) {
            Ok(stat) => stat,
            Err(Absence::NotThere) => return self.find_device(name),
            // Even without access to the path, the mount table has the answer.
            Err(_) => {
                let node = self.file_system_at(&canonical, None);
                return Ok(Top { target, node });
            }
        };
        self.top_at(target, &canonical, &stat)
    }

    fn top_at(&mut self, target: String, path: &str, stat: &Stat) -> Result<Top, SurveyError> {
        let node = match (stat.kind, stat.node) {
            (FileKind::Block, Some(number)) => self.device_by_number(number, path),
            (FileKind::Character | FileKind::Other, _) => return Err(SurveyError::NotStorage { target }),
            _ => self.file_system_of(path, stat),
        };
        Ok(Top { target, node })
    }

    /// Returns the file system of a file or directory, with the effects of that file's attributes.
    fn file_system_of(&mut self, path: &str, stat: &Stat) -> String {
        let name = self.file_system_at(path, Some(stat));
        let is_stored = matches!(stat.kind, FileKind::File | FileKind::Directory);
        let attributes = is_stored.then(|| self.attributes_of(&name, path, stat.kind)).flatten();
        if let (Some(attribute), Some(node)) = (attributes, self.nodes.get_mut(&name)) {
            node.saw(format!("FS_IOC_GETFLAGS of {path}"), SYNC_ATTRIBUTE, attribute);
            node.mark(Mark::SynchronousFile { place: path.to_owned() });
        }
        self.untorn_file(&name, path, stat.kind);
        name
    }

    /// Returns the effect of the attribute `S` of a file, or of a directory whose new files inherit it;
    /// `None` without it. New files inherit it on ext2, ext3, ext4, f2fs, jfs and xfs, but not on btrfs.
    fn attributes_of(&self, system: &str, path: &str, kind: FileKind) -> Option<&'static str> {
        let inherits = || {
            let kind = system.split(' ').next().unwrap_or_default();
            matches!(kind, "ext2" | "ext3" | "ext4" | "f2fs" | "jfs" | "xfs")
        };
        if self.nodes.get(system)?.kind != LayerKind::FileSystem {
            return None;
        }
        self.tree.attributes(path).ok().filter(|attributes| attributes.synchronous)?;
        match kind {
            FileKind::Directory => {
                inherits().then_some("new files here have it, and each write to them is synced")
            }
            _ => Some("each write is synced before its call returns"),
        }
    }

    /// Resolves the kernel's name of a block device that has no node: in a container, in a recording.
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
