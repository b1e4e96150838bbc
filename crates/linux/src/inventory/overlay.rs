//! Identities of a file: its own, and on overlayfs those of the underlying files.
//!
//! overlayfs gives its files a separate device number, so stat(2) does not reveal that a file of the merged
//! directory is a file of a layer. The mount table lists the layers. The file that is written is the one in
//! the topmost layer that has a file at the same path:
//!
//! ```text
//! merged/in.json ──► upper/in.json (copied up, or new) ──► else lower1/in.json ──► else lower2/in.json
//! ```
//!
//! # Limitations
//! - A layer specified by a relative path is searched for in the directories above the mount and in the
//!   current one. A match counts only if it is the same inode by its number, or by length and time of birth.
//! - A layer without a path in this mount namespace is not found, nor is a file below a directory that was
//!   renamed with `redirect_dir`.
//! - Locks are not translated: a lock taken in a merged directory is not seen through its layers, nor the
//!   other way round.

use std::fs::{self, Metadata};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::block::FileId;
use crate::tree::mountinfo::{self, Mount};

/// File system type: OVERLAYFS_SUPER_MAGIC, linux/magic.h.
const OVERLAYFS: u32 = 0x794c_7630;

/// Returns the identities of the file at `path`, its own first; empty if there is no file.
pub fn identities_at(path: &Path) -> Vec<FileId> {
    let mut found = Vec::new();
    if let Ok(path) = fs::canonicalize(path) {
        let mounts = if is_on_overlay(&path) { mountinfo::mounts_of("self") } else { Vec::new() };
        add(&path, &mounts, &mut found);
    }
    found
}

/// Returns the identities of an open file, its own first.
pub fn identities_of(file: impl AsFd) -> Vec<FileId> {
    let file = file.as_fd();
    let Ok(stat) = rustix::fs::fstat(file) else { return Vec::new() };
    let own = FileId { device: stat.st_dev, inode: stat.st_ino };
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    identities_of_known(own, &path)
}

/// Returns true if both paths lead to the same regular file, or would once it is created.
pub fn is_one_file(one: &Path, other: &Path) -> bool {
    let [files, others] = [one, other].map(|path| match path.is_file() {
        true => identities_at(path),
        false => Vec::new(),
    });
    if !files.is_empty() || !others.is_empty() {
        return files.iter().any(|id| others.contains(id));
    }
    let new = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = fs::canonicalize(parent.unwrap_or(Path::new("."))).ok()?;
        path.file_name().filter(|_| !path.exists()).map(|name| directory.join(name))
    };
    new(one).is_some_and(|one| new(other) == Some(one))
}

/// Returns the identities of a file with the identity `own`, whose path was `path` in some mount namespace.
/// Follows the path only on an overlay: a file system that has lost its server never answers.
pub(super) fn identities_of_known(own: FileId, path: &Path) -> Vec<FileId> {
    let mounts = mountinfo::mounts_of("self");
    if covering(path, &mounts).is_some_and(|mount| mount.kind == "overlay") {
        let found = identities_at(path);
        if found.first() == Some(&own) {
            return found;
        }
    }
    // Another mount in this namespace may show the same file system.
    let names = path.ancestors().skip(1).filter_map(|above| path.strip_prefix(above).ok());
    let names: Vec<&Path> = names.collect();
    let overlays = mounts.iter().filter(|mount| mount.kind == "overlay");
    let mut merged =
        overlays.flat_map(|mount| names.iter().map(move |name| Path::new(&mount.point).join(name)));
    let here = merged.find(|path| fs::metadata(path).is_ok_and(|file| FileId::from_metadata(&file) == own));
    here.map_or_else(|| vec![own], |path| identities_at(&path))
}

fn is_on_overlay(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type as u32 == OVERLAYFS)
}

/// Adds the file at `path`, which must be absolute and without links, and the files below it.
fn add(path: &Path, mounts: &[Mount], found: &mut Vec<FileId>) {
    let Ok(file) = fs::metadata(path) else { return };
    let own = FileId::from_metadata(&file);
    if found.contains(&own) {
        return;
    }
    found.push(own);
    if let Some(real) = beneath(path, &file, mounts) {
        add(&real, mounts, found);
    }
}

/// Returns the file in a layer that backs `file` at `path`; `None` if it is not on an overlay.
fn beneath(path: &Path, file: &Metadata, mounts: &[Mount]) -> Option<PathBuf> {
    let mount = covering(path, mounts).filter(|mount| mount.kind == "overlay")?;
    let rest = path.strip_prefix(&mount.point).ok()?;
    let within = Path::new(mount.root.trim_start_matches('/')).join(rest);
    layers(mount).iter().find_map(|layer| {
        if layer.is_absolute() {
            return fs::canonicalize(layer.join(&within)).ok().filter(|real| real.is_file());
        }
        let current = std::env::current_dir().unwrap_or_default();
        let from = Path::new(&mount.point).ancestors().skip(1).chain([current.as_path()]);
        let mut places = from.filter_map(|from| fs::canonicalize(from.join(layer).join(&within)).ok());
        places.find(|real| is_same_inode(real, file))
    })
}

/// Returns the mount that contains `path`, which must be absolute and without links; of several at one point,
/// the last.
fn covering<'m>(path: &Path, mounts: &'m [Mount]) -> Option<&'m Mount> {
    mounts.iter().filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.len())
}

/// Returns the layers that may hold a file, the topmost first. A colon in a name is written `\:`.
fn layers(mount: &Mount) -> Vec<PathBuf> {
    let named = |key: &'static str| {
        let options = mount.super_options.iter().filter_map(|option| option.split_once('='));
        options.filter(move |(name, _)| *name == key).map(|(_, value)| value)
    };
    let upper = named("upperdir").map(str::to_owned);
    let lower = named("lowerdir").flat_map(|all| {
        let all = all.replace("\\:", "\0");
        all.split(':').map(|name| name.replace('\0', ":")).collect::<Vec<_>>()
    });
    let each = named("lowerdir+").chain(named("datadir+")).map(str::to_owned);
    upper.chain(lower).chain(each).filter(|name| !name.is_empty()).map(PathBuf::from).collect()
}

/// Returns true if `real` is the inode that an overlay shows as `merged`.
fn is_same_inode(real: &Path, merged: &Metadata) -> bool {
    let Ok(real) = fs::metadata(real) else { return false };
    let is_born_with = matches!((real.created(), merged.created()), (Ok(one), Ok(other)) if one == other);
    real.is_file() && real.len() == merged.len() && (real.ino() == merged.ino() || is_born_with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_named_from_the_top_in_each_form_of_the_options() {
        let of = |options: &str| {
            let line = format!("9 1 0:30 / /m rw - overlay o rw,{options}");
            let found = layers(&mountinfo::parse_line(line.as_bytes()).unwrap());
            found.iter().map(|layer| layer.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("lowerdir=/a:/b::/data,upperdir=/u,workdir=/w"), ["/u", "/a", "/b", "/data"]);
        assert_eq!(of("lowerdir+=/a,lowerdir+=/b,datadir+=/d"), ["/a", "/b", "/d"]);
        assert_eq!(of(r"lowerdir=a\:b:c"), ["a:b", "c"]);
    }

    #[test]
    fn paths_that_lead_to_one_file_are_known_before_and_after_it_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert!(is_one_file(&at("new"), &at("./new")));
        assert!(!is_one_file(&at("new"), &at("other")));
        fs::write(at("file"), "x").unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        for same in ["file", "hard", "link"] {
            assert!(is_one_file(&at(same), &at("file")), "{same}");
        }
        assert!(!is_one_file(&at("new"), &at("file")));
        // A directory or a device is not a file that could be replaced.
        assert!(!is_one_file(directory.path(), directory.path()));
        assert!(!is_one_file(Path::new("/dev/null"), Path::new("/dev/null")));
    }
}
