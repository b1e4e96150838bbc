//! One block device, found by its number or its name.

use plumb_linux::tree::{Answer, DeviceNumber};

use super::Machine;

/// A block device that /sys knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The kernel's name: `sda1`.
    pub(crate) name: String,
    /// Its directory, without links.
    pub(crate) sysfs: String,
    pub(crate) number: DeviceNumber,
    /// For a partition its disk and its number there.
    pub(crate) part: Option<Part>,
}

/// Where a partition is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) disk: String,
    pub(crate) number: String,
}

impl Machine<'_> {
    /// The device of this number.
    ///
    /// # Errors
    /// Why its directory in /sys cannot be seen.
    pub(crate) fn block(&self, number: DeviceNumber) -> Answer<Block> {
        self.block_at(&format!("/sys/dev/block/{number}"), number)
    }

    /// The device of this name, if it is there.
    pub(crate) fn block_named(&self, name: &str) -> Option<Block> {
        let at = format!("/sys/class/block/{name}");
        let number = self.tree.text(&format!("{at}/dev")).ok()?.parse().ok()?;
        self.block_at(&at, number).ok()
    }

    fn block_at(&self, at: &str, number: DeviceNumber) -> Answer<Block> {
        let sysfs = self.tree.canonical(at)?;
        let mut parts = sysfs.rsplit('/').map(str::to_owned);
        let (name, parent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let part = self.tree.text(&format!("{sysfs}/partition")).ok();
        let part = part.map(|number| Part { disk: parent, number });
        Ok(Block { name, sysfs, number, part })
    }

    /// What the kernel says of a device: `/sys/.../NAME/FILE`; empty if it says nothing.
    pub(crate) fn says(&self, block: &Block, file: &str) -> String {
        self.tree.text(&format!("{}/{file}", block.sysfs)).unwrap_or_default()
    }

    /// The partitions of a device.
    pub(crate) fn partitions(&self, block: &Block) -> Vec<Block> {
        let entries = self.tree.list(&block.sysfs).unwrap_or_default();
        let is_part = |name: &String| self.tree.text(&format!("{}/{name}/partition", block.sysfs)).is_ok();
        entries.iter().filter(|name| is_part(name)).filter_map(|name| self.block_named(name)).collect()
    }

    /// The devices that are made of this one.
    pub(crate) fn holders(&self, block: &Block) -> Vec<Block> {
        let names = self.tree.list(&format!("{}/holders", block.sysfs)).unwrap_or_default();
        names.iter().filter_map(|name| self.block_named(name)).collect()
    }
}

impl Block {
    /// Its node in /dev. The kernel writes a slash in a name as an exclamation mark.
    pub(crate) fn node(&self) -> String {
        format!("/dev/{}", self.name.replace('!', "/"))
    }
}
