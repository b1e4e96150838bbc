//! Root directory of a guest: laid out in a directory of this machine, and packed by busybox into the cpio
//! archive that the kernel unpacks.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::process;

/// Archive before it is packed. Paths are relative to the root, without a leading slash. Parents are created.
#[derive(Debug)]
pub(crate) struct Archive {
    root: TempDir,
}

impl Archive {
    /// Creates an empty archive.
    ///
    /// # Errors
    /// As for all functions here: if a file of this machine cannot be read or written.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { root: tempfile::tempdir().context("making a directory for a root")? })
    }

    /// Adds an executable file, replacing an earlier one with that name.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let place = self.place(path)?;
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(place);
        file.and_then(|mut file| file.write_all(content.as_ref())).with_context(|| format!("adding {path}"))
    }

    /// Adds a file of this machine with its permissions, replacing an earlier one with that name.
    pub(crate) fn copy(&self, path: &str, from: &Path) -> Result<()> {
        let copied = fs::copy(from, self.place(path)?).map(drop);
        copied.with_context(|| format!("copying {} to {path}", from.display()))
    }

    /// Adds a symbolic link.
    pub(crate) fn symlink(&self, path: &str, to: &str) -> Result<()> {
        symlink(to, self.place(path)?).with_context(|| format!("linking {path}"))
    }

    /// Adds the contents of a directory of this machine, replacing existing files.
    pub(crate) fn overlay(&self, from: &Path) -> Result<()> {
        process::run(Command::new("cp").arg("-a").arg(from.join(".")).arg(self.root.path()))
    }

    fn place(&self, path: &str) -> Result<PathBuf> {
        let place = self.root.path().join(path);
        let parent = place.parent().context("a path without a parent")?;
        fs::create_dir_all(parent).with_context(|| format!("making the directory of {path}"))?;
        Ok(place)
    }

    /// Packs everything into `file`: parents before their children, all owned by root.
    pub(crate) fn write_to(&self, file: &Path) -> Result<()> {
        let out = fs::File::create(file).with_context(|| format!("creating {}", file.display()))?;
        let pack = "find . -mindepth 1 | LC_ALL=C sort | busybox cpio -o -H newc -R 0:0";
        process::run(Command::new("sh").args(["-c", pack]).current_dir(self.root.path()).stdout(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_in_the_archive() {
        if crate::packages::find("busybox").is_none() {
            eprintln!("SKIPPED: no busybox on this machine");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let archive = Archive::new().unwrap();
        archive.symlink("bin/sh", "busybox").unwrap();
        archive.file("etc/motto", "lost").unwrap();
        archive.file("etc/motto", "flush").unwrap();
        archive.copy("b/this", Path::new("/proc/self/comm")).unwrap();
        archive.write_to(&place.path().join("root")).unwrap();
        let list = "busybox cpio -itv < root 2>&1 | tr -s ' ' | cut -d ' ' -f 1,2,6-; busybox cpio -i --to-stdout etc/motto < root";
        let listed = process::text(Command::new("sh").args(["-c", list]).current_dir(&place)).unwrap();
        for line in [
            "drwxr-xr-x 0/0 b",
            "lrwxrwxrwx 0/0 bin/sh -> busybox",
            "-rwxr-xr-x 0/0 etc/motto",
            "b/this",
            "flush",
        ] {
            assert!(listed.contains(line), "no {line}: {listed}");
        }
    }
}
