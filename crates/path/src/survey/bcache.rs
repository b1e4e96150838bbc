//! bcache: a disk with another disk as its cache. Documentation/admin-guide/bcache.rst.

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// bcache always takes flushes and FUA and sends them on to both disks.
    pub(super) fn bcache(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::Bcache;
        // Data that bcache holds is on the caching disk, which has a node of its own below.
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
