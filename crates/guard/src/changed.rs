//! Changes to a file that was measured: a run on a file that somebody cut, removed or replaced meanwhile is
//! not the measurement that was requested.
//!
//! # Limitations
//! A file that grew again after a cut is known by its holes, or by its length at a look meanwhile. A run that
//! writes all blocks again between two looks hides the cut, as does a file system that does not tell holes.
//! On tmpfs, reserved pages are told from holes only while the file has all of its pages: of a file that has
//! both, a cut within reserved pages is not seen, and more pages may be said to be lost than are.

use plumb_block::{Bytes, Extent, Lba, LbaRange, lost_blocks};

use crate::look::Key;
use crate::opened::{Node, OpenedTarget, TargetKind};

impl OpenedTarget {
    /// Returns a sentence if the file was removed, replaced or cut since it was opened, as this or an earlier
    /// look saw; `None` for all other targets, and where its path can no longer be followed.
    pub fn change_since_open(&self) -> Option<&str> {
        let node = self.origin.node().filter(|_| self.kind == TargetKind::RegularFile)?;
        if let Some(change) = node.change.get().cloned().or_else(|| self.change_now(node)) {
            node.change.get_or_init(|| change);
        }
        node.change.get().map(String::as_str)
    }

    /// Returns the state of all blocks; nothing if that cannot be found out.
    pub fn extents(&self) -> Vec<Extent> {
        let blocks = LbaRange::new(Lba(0), self.device.info().blocks());
        self.device.extents(blocks).unwrap_or_default()
    }

    /// Returns a sentence if blocks that were on the medium at `before` are holes now. Not to be asked of a
    /// file that the run itself makes holes in.
    pub fn blocks_lost_since(&self, before: &[Extent]) -> Option<String> {
        // A file system that moves a block may lose sight of it for a moment: two looks agree.
        let lost = lost_blocks(before, &self.extents()).min(lost_blocks(before, &self.extents()));
        let lost = Bytes(lost.saturating_mul(self.device.info().logical_block.0));
        (self.kind == TargetKind::RegularFile && lost > Bytes(0)).then(|| {
            format!(
                "the file {} lost up to {lost} of its blocks while it was measured: it was cut and grew again, or holes \
                 were punched into it",
                self.shown
            )
        })
    }

    fn change_now(&self, node: &Node) -> Option<String> {
        let what = match rustix::fs::lstat(&node.path) {
            Ok(there) if Key::from_stat(&there) != node.key => "was replaced by another file".to_owned(),
            Ok(there) => {
                let size = u64::try_from(there.st_size).unwrap_or(0);
                if node.options.append.is_some() || size >= self.size.0 {
                    return None;
                }
                // Writes may have made it longer again since the cut.
                format!("became shorter, by at least {} of {},", Bytes(self.size.0 - size), self.size)
            }
            Err(rustix::io::Errno::NOENT) => "was removed or renamed".to_owned(),
            // A directory on the way was replaced, or may not be read any more: the file itself may be whole.
            Err(_) => return None,
        };
        Some(format!("the file {} {what} while it was measured", self.shown))
    }
}
