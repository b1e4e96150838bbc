//! overlayfs: where changes go, and whether it executes syncs at all.
//! Documentation/filesystems/overlayfs.rst.

use plumb_linux::tree::mountinfo::Mount;

use super::mounts::MOUNTINFO;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::LayerKind;

impl Surveyor<'_> {
    /// Follows the upper directory, which receives all writes.
    pub(super) fn overlay(&mut self, node: &mut Node, mount: &Mount) {
        node.kind = LayerKind::Overlay;
        // The second is another spelling of the first.
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
        let found = self.directory_of(mount, &upper).filter(|below| {
            // The upper and the work directory of an overlay are on one mount when it is made
            // (ovl_get_workdir, fs/overlayfs/super.c). They differ only if something was mounted over one of
            // them later.
            let work = mount.super_option("workdir").and_then(|work| self.directory_of(mount, work));
            work.is_none_or(|work| work.id == below.id)
        });
        match found {
            Some(below) => node.below.push(self.file_system(&below)),
            None => node.mark(Mark::Unseen {
                what: match upper.starts_with('/') {
                    true => format!(
                        "the upper directory {upper} is not visible from here, as inside a container or beneath a \
                         later mount: survey that path where it is visible"
                    ),
                    false => format!(
                        "the upper directory {upper} was named relative to a directory that is not recorded: survey it \
                         by its absolute path"
                    ),
                },
            }),
        }
    }

    /// Finds the mount that holds a directory of an overlay. The path belongs to the mount namespace in which
    /// the overlay was made: inside a container it leads nowhere, or to something else. A relative path
    /// started at the working directory of the mounting process, and leads nowhere now.
    fn directory_of(&self, overlay: &Mount, option: &str) -> Option<Mount> {
        let process = self.namespace_of(overlay);
        // The option is kept as it was typed, with a backslash before a comma or a colon (ovl_unescape).
        let unescaped = || option.replace("\\,", ",").replace("\\:", ":").replace("\\\\", "\\");
        [option.to_owned(), unescaped()].into_iter().filter(|path| path.starts_with('/')).find_map(|path| {
            let path = match process {
                Some(process) => format!("/proc/{process}/root{path}"),
                None => self.tree.canonical(&path).ok()?,
            };
            let below = self.mount_at(&path, Some(&self.tree.stat(&path).ok()?))?;
            (below.id != overlay.id && below.point != overlay.point).then_some(below)
        })
    }
}
