//! Changes to a file that was measured: a run on a file that somebody cut, removed or replaced meanwhile is
//! not the measurement that was requested.

use crate::look::Key;
use crate::opened::{OpenedTarget, TargetKind};

impl OpenedTarget {
    /// Returns a sentence if the file was removed, replaced or cut since it was opened; `None` for all other
    /// targets, and where its path can no longer be followed.
    pub fn change_since_open(&self) -> Option<String> {
        let node = self.origin.node().filter(|_| self.kind == TargetKind::RegularFile)?;
        let what = match rustix::fs::lstat(&node.path) {
            Ok(there) if Key::from_stat(&there) != node.key => "was replaced by another file".to_owned(),
            Ok(there) => {
                let size = u64::try_from(there.st_size).unwrap_or(0);
                if node.options.append.is_some() || size >= self.size.0 {
                    return None;
                }
                format!("was cut from {} to {size} bytes", self.size.0)
            }
            Err(rustix::io::Errno::NOENT) => "was removed or renamed".to_owned(),
            // A directory on the way was replaced, or may not be read any more: the file itself may be whole.
            Err(_) => return None,
        };
        Some(format!("the file {} {what} while it was measured", self.shown))
    }
}
