//! Software RAID. Documentation/admin-guide/md.rst.

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// Fills in an md array. md forwards a flush to every member; a parity array without a journal has a
    /// write hole.
    pub(super) fn md(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::Md;
        node.cache = Cache::None;
        let read = |name: &str| {
            self.tree.text(&format!("{}/md/{name}", place.sysfs)).ok().filter(|text| !text.is_empty())
        };
        let level = read("level").unwrap_or_default();
        let policy = read("consistency_policy").unwrap_or_default();
        let degraded = read("degraded").is_some_and(|text| text != "0");
        let journal_mode = read("journal_mode");
        node.identity = read("uuid");
        if !level.is_empty() {
            node.saw(format!("{}/md/level", place.sysfs), &level, "each flush goes to every member");
        }
        if !policy.is_empty() {
            node.saw(
                format!("{}/md/consistency_policy", place.sysfs),
                &policy,
                "how it recovers after a power cut",
            );
        }
        if degraded {
            node.saw(format!("{}/md/degraded", place.sysfs), "not 0", "members are missing");
        }
        if let Some(mode) = journal_mode
            && mode.contains("[write-back]")
        {
            node.saw(
                format!("{}/md/journal_mode", place.sysfs),
                &mode,
                "acknowledged writes live on the journal",
            );
            node.mark(Mark::Dirty { what: "an unknown amount, on the journal device".to_owned() });
        }
        let parity = matches!(level.as_str(), "raid4" | "raid5" | "raid6");
        if parity && !matches!(policy.as_str(), "journal" | "ppl") {
            let policy = if policy.is_empty() { "of an unknown consistency policy" } else { &policy };
            node.mark(Mark::WriteHole { what: format!("{level}, {policy}"), degraded });
        }
        self.md_bad_blocks(node, &place.sysfs);
        self.members(node, place);
    }

    /// Returns the devices in `slaves/`.
    pub(super) fn members(&mut self, node: &mut Node, place: &Place) {
        let file = format!("{}/slaves", place.sysfs);
        let members = self.tree.list(&file).unwrap_or_default();
        if members.is_empty() {
            node.mark(Mark::Unseen {
                what: format!("the devices below {} are not listed in {file}", node.name),
            });
        } else {
            node.saw(file, members.join(" "), "the devices below");
        }
        node.below = members.iter().map(|member| self.device(member)).collect();
    }
}
