//! overlayfs: where its changes go, and whether it takes syncs at all.
//! Documentation/filesystems/overlayfs.rst.

use plumb_linux::tree::mountinfo::Mount;

use super::mounts::MOUNTINFO;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::LayerKind;

impl Surveyor<'_> {
    /// Follows the upper directory, which takes every write.
    pub(super) fn overlay(&mut self, node: &mut Node, mount: &Mount) {
        node.kind = LayerKind::Overlay;
        // The second is another spelling for the same.
        for option in ["volatile", "fsync=volatile"] {
            if mount.super_options.iter().any(|set| set == option) {
                node.saw(MOUNTINFO, option, "every sync of an application is omitted");
                node.mark(Mark::SyncsOmitted { option: option.to_owned() });
            }
        }
        let Some(upper) = mount.super_option("upperdir").map(str::to_owned) else {
            node.saw(MOUNTINFO, "no upperdir", "an overlay without an upper directory takes no writes");
            node.mark(Mark::ReadOnly);
            return;
        };
        node.saw(MOUNTINFO, format!("upperdir={upper}"), "writes go to this directory");
        // The path is the one of the mount namespace that made the overlay: inside a container it is not
        // there, or something else is.
        let path = match self.namespace_of(mount) {
            Some(process) => Some(format!("/proc/{process}/root{upper}")),
            None => self.tree.canonical(&upper).ok(),
        };
        let found = path.and_then(|path| {
            let stat = self.tree.stat(&path).ok()?;
            let below = self.mount_at(&path, Some(&stat))?;
            (below.id != mount.id && below.point != mount.point).then_some(below)
        });
        match found {
            Some(below) => node.below.push(self.file_system(&below)),
            None => node.mark(Mark::Unseen {
                what: format!(
                    "the upper directory {upper} is not visible from here, as inside a container: survey that path on \
                     the host"
                ),
            }),
        }
    }
}
