//! Block devices by their kernel name: their common properties, and the kind of each.

use plumb_linux::tree::DeviceNumber;

use super::surveyor::Surveyor;
use crate::facts::{KernelFua, KernelView, Mark, Node, Untorn};
use crate::model::{Cache, LayerKind};

/// A device's directory in /sys.
pub(super) struct Place {
    /// Path without links: `/sys/devices/pci0000:00/.../block/sda`.
    pub(super) sysfs: String,
    /// Names in the directory.
    pub(super) entries: Vec<String>,
    pub(super) number: DeviceNumber,
}

impl Place {
    pub(super) fn has(&self, entry: &str) -> bool {
        self.entries.iter().any(|name| name == entry)
    }
}

impl Surveyor<'_> {
    /// Builds the node of the block device called `name` and everything below it. Returns the node's name.
    pub(super) fn device(&mut self, name: &str) -> String {
        self.ensure(name, |surveyor| surveyor.build_device(name));
        name.to_owned()
    }

    /// Returns the directory of `name` in /sys.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        let sysfs = self.tree.canonical(&format!("/sys/class/block/{name}")).ok()?;
        let entries = self.tree.list(&sysfs).unwrap_or_default();
        let number = self.tree.text(&format!("{sysfs}/dev")).ok().and_then(|text| text.parse().ok());
        Some(Place { sysfs, entries, number: number.unwrap_or(DeviceNumber { major: 0, minor: 0 }) })
    }

    /// Adds a layer of which only the name is known.
    pub(super) fn unknown_device(&mut self, name: &str, looked_at: &str) -> String {
        self.ensure(name, |_| unseen(name, looked_at));
        name.to_owned()
    }

    fn build_device(&mut self, name: &str) -> Node {
        let Some(place) = self.place(name) else {
            return unseen(name, &format!("/sys/class/block/{name}"));
        };
        let mut node = Node::new(LayerKind::Unknown, name);
        let file = format!("{}/ro", place.sysfs);
        if self.tree.text(&file).is_ok_and(|text| text == "1") {
            node.saw(file, "1", "the device takes no writes");
            node.mark(Mark::ReadOnly);
        }
        if place.has("partition") {
            return self.partition(node, &place);
        }
        self.queue(&mut node, &place.sysfs);
        self.zoned(&mut node, &place.sysfs);
        self.untorn_device(&mut node, &place.sysfs);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        match stem {
            _ if place.has("dm") => self.device_mapper(&mut node, &place),
            _ if place.has("md") => self.md(&mut node, &place),
            "bcache" => self.bcache(&mut node, &place),
            "loop" => self.loop_device(&mut node, &place),
            "zd" => self.zfs_volume(&mut node, &place),
            "zram" | "ram" | "nullb" => self.memory_disk(&mut node, stem),
            "nbd" | "rbd" | "drbd" | "ublkb" => self.network_device(&mut node, &place.sysfs),
            "vd" => self.virtio_disk(&mut node, &place),
            _ if is_lettered(name, "vd") => self.virtio_disk(&mut node, &place),
            _ if is_lettered(name, "sd") || is_lettered(name, "sr") => self.scsi_disk(&mut node, &place),
            _ if is_lettered(name, "xvd") => self.xen_disk(&mut node),
            _ if name.starts_with("nvme") => self.nvme(&mut node, &place),
            _ if name.starts_with("mmcblk") => self.mmc(&mut node, &place),
            _ if name.starts_with("pmem") => self.pmem(&mut node, &place),
            _ if place.has("bcache") => self.bcache(&mut node, &place),
            _ => self.other(&mut node, &place),
        }
        shorten(&mut node, &place.sysfs);
        node
    }

    /// Fills in a partition, which has no queue of its own and is a window into its disk.
    fn partition(&mut self, mut node: Node, place: &Place) -> Node {
        node.kind = LayerKind::Partition;
        let parent = place.sysfs.rsplit('/').nth(1).unwrap_or_default().to_owned();
        let number = self.tree.text(&format!("{}/partition", place.sysfs)).unwrap_or_default();
        node.saw(format!("{}/partition", place.sysfs), number, format!("a part of {parent}"));
        node.below = vec![self.device(&parent)];
        self.untorn_partition(&mut node, place);
        shorten(&mut node, &place.sysfs);
        node
    }

    /// Records zones visible to the host. Documentation/ABI/stable/sysfs-block (zoned).
    fn zoned(&self, node: &mut Node, sysfs: &str) {
        let file = format!("{sysfs}/queue/zoned");
        let Ok(model) = self.tree.text(&file) else { return };
        if matches!(model.as_str(), "host-managed" | "host-aware") {
            node.saw(file, &model, "the medium is in zones, which are written in order");
            node.mark(Mark::Shingled { what: model });
        }
    }

    fn queue(&self, node: &mut Node, sysfs: &str) {
        let file = format!("{sysfs}/queue/write_cache");
        // A read-only loop device has no cache to flush (drivers/block/loop.c, loop_update_limits). A
        // write-protected disk may still hold earlier writes.
        let is_unflushed =
            node.is_read_only() && self.tree.text(&format!("{sysfs}/loop/backing_file")).is_ok();
        node.queue = match self.tree.text(&file) {
            Ok(text) if is_unflushed && KernelView::parse(&text) == KernelView::WriteThrough => {
                KernelView::NoQueue
            }
            Ok(text) => {
                let view = KernelView::parse(&text);
                let means = match view {
                    KernelView::WriteBack => "the kernel sends flushes to this device",
                    KernelView::WriteThrough => {
                        "the kernel strips flushes and FUA before the driver sees them"
                    }
                    KernelView::NoQueue | KernelView::Unknown => "not a known value",
                };
                node.saw(file, text, means);
                view
            }
            Err(absence) => {
                node.saw(file, absence.to_string(), "whether the kernel sends flushes is unknown");
                KernelView::Unknown
            }
        };
        let file = format!("{sysfs}/queue/fua");
        node.fua = match self.tree.text(&file).as_deref() {
            Ok("1") => KernelFua::Yes,
            Ok("0") => KernelFua::No,
            _ => KernelFua::Unknown,
        };
        if node.fua != KernelFua::Unknown && node.queue == KernelView::WriteBack {
            let (value, means) = match node.fua {
                KernelFua::Yes => ("1", "the driver takes FUA writes"),
                _ => ("0", "FUA becomes a write and a flush"),
            };
            node.saw(file, value, means);
        }
    }

    /// Fills in a device of unknown kind: its kernel name, its driver and the devices below it.
    fn other(&mut self, node: &mut Node, place: &Place) {
        node.cache = match node.queue {
            KernelView::WriteBack => Cache::Volatile,
            _ => Cache::Unknown,
        };
        if let Ok(driver) = self.tree.link(&format!("{}/device/driver", place.sysfs)) {
            let driver = driver.rsplit('/').next().unwrap_or_default().to_owned();
            node.saw(format!("{}/device/driver", place.sysfs), driver, "the driver");
        }
        let slaves = self.tree.list(&format!("{}/slaves", place.sysfs)).unwrap_or_default();
        node.below = slaves.iter().map(|slave| self.device(slave)).collect();
        if node.below.is_empty() {
            node.mark(Mark::Unseen {
                what: format!("this version of plumb does not know devices such as {}", node.name),
            });
        }
    }
}

/// Shortens the file names in a device's evidence: `/sys/block/sda/...` instead of the path through its
/// adapter.
fn shorten(node: &mut Node, sysfs: &str) {
    let class = if node.kind == LayerKind::Partition { "class/block" } else { "block" };
    for line in &mut node.evidence {
        if let Some(file) = line.source.strip_prefix(sysfs) {
            line.source = format!("/sys/{class}/{}{file}", node.name);
        }
    }
}

/// Returns true if `name` is `prefix` followed only by small letters: `sda`, `sdaa`.
fn is_lettered(name: &str, prefix: &str) -> bool {
    let rest = name.strip_prefix(prefix).unwrap_or_default();
    !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_lowercase() || (prefix == "sr" && byte.is_ascii_digit()))
}

fn unseen(name: &str, looked_at: &str) -> Node {
    let mut node = Node::new(LayerKind::Unknown, name);
    node.cache = Cache::Unknown;
    node.queue = KernelView::Unknown;
    node.untorn = Untorn::unknown(format!("{name} is not visible in /sys from here"));
    node.saw(looked_at, "not there", "nothing is known about this device");
    node.mark(Mark::Unseen { what: format!("{name} is not visible in /sys from here") });
    node
}
