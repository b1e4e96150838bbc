//! Detection of changes to a measured file: a measurement is invalid if the file was cut, removed or replaced
//! during the run.
//!
//! # Limitations
//! A file that grew again after a cut is detected by its holes, or by a check while it was short. A run that
//! rewrites all blocks between two checks hides the cut, as does a file system that does not report holes. On
//! tmpfs, reserved pages are distinguished from holes only while the file has all of its pages. In a file
//! with both, a cut within reserved pages is not detected, and too many pages may be reported as lost.

use plumb_block::{Bytes, Extent, Lba, LbaRange, lost_blocks};

use crate::look::Key;
use crate::opened::{Node, OpenedTarget, TargetKind};

impl OpenedTarget {
    /// Returns a message if the file has been removed, replaced or cut since it was opened, now or at an
    /// earlier check. `None` for other targets, and if the path cannot be followed any more.
    pub fn change_since_open(&self) -> Option<&str> {
        let node = self.origin.node().filter(|_| self.kind == TargetKind::RegularFile)?;
        if let Some(change) = node.change.get().cloned().or_else(|| self.change_now(node)) {
            node.change.get_or_init(|| change);
        }
        node.change.get().map(String::as_str)
    }

    /// Returns the state of all blocks; empty if unknown.
    pub fn extents(&self) -> Vec<Extent> {
        let blocks = LbaRange::new(Lba(0), self.device.info().blocks());
        self.device.extents(blocks).unwrap_or_default()
    }

    /// Returns a message if blocks that were on the medium at `before` are holes now. Not for a file in which
    /// the run itself creates holes.
    pub fn blocks_lost_since(&self, before: &[Extent]) -> Option<String> {
        // A file system that moves a block may briefly report it as a hole, so compare two readings.
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
                // Writes may have extended the file again since the cut.
                format!("became shorter, by at least {} of {},", Bytes(self.size.0 - size), self.size)
            }
            Err(rustix::io::Errno::NOENT) => "was removed or renamed".to_owned(),
            // A parent directory was replaced or became inaccessible; the file itself may be intact.
            Err(_) => return None,
        };
        Some(format!("the file {} {what} while it was measured", self.shown))
    }
}
