//! Chosen writeback: data that the kernel may write back at any time is written back at chosen moments, while
//! the calling thread is held after a system call.
//!
//! A recording shows one order in which the kernel wrote back dirty pages and metadata. A program that works
//! only in that order is wrong, which only another recording shows.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plumb_block::Bytes;
use plumb_crash::below;
use plumb_linux::sync_file_range;
pub use plumb_report::document::proof::{Extent, Writeback};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use rustix::fs::{Mode, OFlags};

use super::{Audit, Call, TracedCalls};
use crate::error::{Result, cannot};

/// Weight of no writeback in a mixture; each extent has weight 1.
const LAZY: u64 = 4;

/// Writeback in progress during the calls of one program.
pub(super) struct Chosen {
    plan: Writeback,
    chance: Xoshiro256PlusPlus,
    /// Number of sync calls that have returned.
    syncs: u64,
    /// Directory in the file system that is written back.
    root: PathBuf,
    /// Nameless file of each file system, by its device number, whose fsync commits the journal. Created on
    /// first use.
    others: BTreeMap<u64, File>,
}

impl Chosen {
    /// Prepares for a program that works below `root`.
    pub(super) fn new(plan: Writeback, root: &Path) -> Self {
        let seed = if let Writeback::Mixture { seed } = plan { seed } else { 0 };
        let chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { plan, chance, syncs: 0, root: root.to_owned(), others: BTreeMap::new() }
    }

    /// Writes back according to the plan after `call`, which has returned and whose thread is held. Returns
    /// true if something was written back.
    ///
    /// # Errors
    /// If the file system cannot be written back.
    pub(super) fn returned(&mut self, call: &Call, audit: &Audit) -> Result<bool> {
        if call.synced(&self.root).is_some() {
            self.syncs += 1;
            return Ok(false);
        }
        let Some((_, path)) = audit.changed(call) else { return Ok(false) };
        let Some(extent) = self.extent() else { return Ok(false) };
        let failed = cannot(format!("write back {}", path.display()));
        self.write_back(extent, &path).map_err(failed)?;
        Ok(true)
    }

    /// Chooses the extent to write back after the next change.
    fn extent(&mut self) -> Option<Extent> {
        match self.plan {
            Writeback::AtOnce { extent } => Some(extent),
            Writeback::AfterSync { sync, extent } => (self.syncs >= sync).then_some(extent),
            Writeback::Mixture { .. } => {
                let drawn = below(&mut self.chance, LAZY + Extent::ALL.len() as u64);
                Extent::ALL.get(drawn.checked_sub(LAZY)? as usize).copied()
            }
        }
    }

    fn write_back(&mut self, extent: Extent, path: &Path) -> io::Result<()> {
        if matches!(extent, Extent::Data | Extent::DataAndJournal) {
            match write_back_file(path) {
                // The call failed or removed the file, or a later one did.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                written => written?,
            }
        }
        match extent {
            Extent::Data => Ok(()),
            Extent::Journal | Extent::DataAndJournal => self.commit(path),
            Extent::Everything => Ok(rustix::fs::syncfs(File::open(directory_at(&self.root, path))?)?),
        }
    }

    /// Commits the journal of the file system at a path, by fsync of another file, whose inode is changed
    /// first: fsync of a file without changes commits nothing.
    fn commit(&mut self, path: &Path) -> io::Result<()> {
        let directory = directory_at(&self.root, path);
        let other = match self.others.entry(fs::metadata(directory)?.dev()) {
            Entry::Occupied(other) => other.into_mut(),
            Entry::Vacant(none) => {
                let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
                none.insert(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?.into())
            }
        };
        other.set_modified(SystemTime::now())?;
        other.sync_all()
    }
}

/// Returns a directory of the file system at a path below `root`: `root` itself, unless another file system
/// is mounted there.
fn directory_at<'a>(root: &'a Path, path: &'a Path) -> &'a Path {
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    let directory = path.ancestors().skip(1).find(|directory| directory.is_dir()).unwrap_or(root);
    if device(directory) == device(root) { root } else { directory }
}

/// Writes back the data of a regular file. Does nothing for others.
fn write_back_file(path: &Path) -> io::Result<()> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(());
    }
    Ok(sync_file_range::write_back(File::open(path)?.as_fd(), Bytes(0), Bytes(0))?)
}

/// Returns the numbers of the sync calls of a program that are followed by changes, from 1 as for
/// [`Writeback::AfterSync`]. Writeback that begins after another sync call has the same effect as after one
/// of these.
pub(crate) fn syncs_before_changes(traced: &TracedCalls) -> Vec<u64> {
    let mut audit = Audit::beneath(&traced.root, &traced.names);
    let (mut syncs, mut found) = (0, Vec::new());
    for call in &traced.calls {
        if call.synced(&traced.root).is_some() {
            syncs += 1;
        } else if syncs > 0 && audit.changed(call).is_some() && found.last() != Some(&syncs) {
            found.push(syncs);
        }
        audit.observe(call);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Lines;

    #[test]
    fn only_syncs_before_a_change_begin_another_order() {
        let trace = "1 1.0 write(3</m/a>, \"\"..., 5) = 5\n1 2.0 fsync(3</m/a>) = 0\n1 3.0 fsync(4</m>) = 0\n\
                     1 4.0 write(3</m/a>, \"\"..., 5) = 5\n1 5.0 write(3</m/a>, \"\"..., 5) = 5\n\
                     1 6.0 sync() = 0\n1 7.0 write(3</elsewhere>, \"\"..., 5) = 5\n";
        let mut lines = Lines::default();
        let calls = trace.lines().filter_map(|line| lines.parse(line)).collect();
        let traced = TracedCalls { calls, root: "/m".into(), ..TracedCalls::default() };
        assert_eq!(syncs_before_changes(&traced), [2]);
    }
}
