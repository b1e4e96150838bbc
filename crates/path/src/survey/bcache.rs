//! bcache: a disk that caches another disk. Documentation/admin-guide/bcache.rst.

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// Fills in a bcache device, which always accepts flushes and FUA and forwards them to both disks.
    pub(super) fn bcache(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::Bcache;
        // Data held by bcache is on the caching disk, which has its own node below.
        node.cache = Cache::None;
        let read = |name: &str| self.tree.text(&format!("{}/bcache/{name}", place.sysfs)).ok();
        let state = read("state").unwrap_or_default();
        let mode = read("cache_mode").unwrap_or_default();
        let dirty = read("dirty_data").unwrap_or_default();
        node.identity = read("backing_dev_uuid").or_else(|| read("label")).filter(|text| !text.is_empty());
        node.saw(
            format!("{}/bcache/{{state,cache_mode,dirty_data}}", place.sysfs),
            format!("{state}; {mode}; {dirty}"),
            "dirty data is on the caching disk only",
        );
        if state == "dirty" || dirty.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
            node.mark(Mark::Dirty {
                what: if dirty.is_empty() { "an unknown amount".to_owned() } else { dirty },
            });
        }
        self.members(node, place);
    }
}
