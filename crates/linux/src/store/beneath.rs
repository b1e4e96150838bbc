//! Paths confined to a directory: openat2(2) with RESOLVE_BENEATH, or our own walk if the kernel or a seccomp
//! filter lacks that call. The walk follows no symbolic links at all, so it allows less, never more.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use plumb_block::{Error, Result};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// A directory that no path resolved in it can leave.
pub(super) struct Root {
    directory: OwnedFd,
    path: PathBuf,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let directory = rustix::fs::open(path, DIRECTORY, Mode::empty())
            .map_err(|errno| Error::io(&errno.into(), "open", path.display().to_string()))?;
        Ok(Self { directory, path: path.to_owned() })
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the full path of a file of the store, for messages.
    pub(super) fn place(&self, path: &Path) -> String {
        self.path.join(path.strip_prefix("/").unwrap_or(path)).display().to_string()
    }

    /// Opens `path`; EXDEV if it would leave the root. The empty path is the root itself.
    pub(super) fn open_beneath(&self, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            match rustix::fs::openat2(&self.directory, path, flags, mode, resolve) {
                // A concurrent rename in the tree during the resolution of a path with `..`: openat2(2) asks
                // for a retry.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM) => return self.walk(path, flags, mode),
                other => return other,
            }
        }
    }

    /// Opens the parent directory of `path` and returns it with the last component.
    pub(super) fn parent_of<'a>(&self, path: &'a Path) -> rustix::io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((self.open_beneath(parent, DIRECTORY, Mode::empty())?, name))
    }

    /// Opens `path` component by component.
    fn walk(&self, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
            }
        }
        let Some((last, directories)) = names.split_last() else {
            return rustix::fs::openat(&self.directory, ".", flags, mode);
        };
        let mut at = self
            .directory
            .try_clone()
            .map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
        for name in directories {
            at = rustix::fs::openat(&at, *name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        }
        rustix::fs::openat(&at, *last, flags | OFlags::NOFOLLOW, mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_way_leaves_the_root() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let inside = outside.path().join("root");
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::write(inside.join("sub/own"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        let root = Root::open(&inside).unwrap();
        let read = OFlags::RDONLY;
        let ways: [&dyn Fn(&str) -> bool; 2] =
            [&|path| root.open_beneath(Path::new(path), read, Mode::empty()).is_ok(), &|path| {
                root.walk(Path::new(path), read, Mode::empty()).is_ok()
            }];
        for (index, way) in ways.iter().enumerate() {
            for path in ["../secret", "link", "up/secret", "/etc/passwd", "sub/../../secret"] {
                assert!(!way(path), "way {index} opened {path}");
            }
            assert!(way("sub/own") && way("./sub/own") && way("."), "way {index}");
        }
    }
}
