//! ZFS: file systems and volumes, their pool, and its devices.
//!
//! The mount table names the dataset, BLKZNAME that of a volume; /dev/zfs has the properties and the
//! configuration, for every user. Source: OpenZFS 2.1 and 2.3 (include/sys/fs/zfs.h, module/zfs).
//!
//! Limitation: the current properties are reported, even for a dataset that was mounted before a change.

use plumb_linux::probe::wire::nvlist::NvList;
use plumb_linux::probe::wire::text;
use plumb_linux::probe::{ProbedDevice, Refusal, Request};
use plumb_linux::tree::DeviceNumber;

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{KernelView, Mark, Node};
use crate::model::{Cache, LayerKind, ZFS_SYNC_ALWAYS};

/// Source of properties and configurations, in the wording of evidence.
const CONTROL: &str = "/dev/zfs";
/// `VDEV_STATE_DEGRADED`: a device in a lower state is not in use.
const IN_USE: u64 = 6;
/// Time within which a pool that was written to has flushed its devices: several times `zfs_txg_timeout` (5
/// s).
const FLUSHED_WITHIN_NS: u64 = 30_000_000_000;

/// Indices in `vdev_stat_t`.
const OPEN_NS: usize = 0;
const STATE: usize = 1;
const WRITES: usize = 10;

impl Surveyor<'_> {
    /// Fills in `node` for the file system or volume called `dataset`, perhaps a snapshot: its properties,
    /// above its pool.
    pub(super) fn zfs(&mut self, node: &mut Node, dataset: &str) {
        node.cache = Cache::None;
        let dataset = dataset.split('@').next().unwrap_or_default();
        let pool = dataset.split('/').next().unwrap_or_default();
        node.identity = Some(dataset.to_owned());
        node.below = vec![self.pool(pool)];
        let Some(properties) = self.ask_zfs(node, dataset, Request::ZfsDataset) else { return };
        // Unset properties have their default, 0: `standard` and `latency`.
        let set = |name| {
            let property = properties.lists(name).first()?;
            property.numbers("value").first().copied()
        };
        match set("sync") {
            Some(1) => {
                node.saw(CONTROL, ZFS_SYNC_ALWAYS, "every write is synced before write() returns");
                node.mark(Mark::Synchronous { option: ZFS_SYNC_ALWAYS.to_owned() });
            }
            Some(2) => {
                node.saw(CONTROL, "sync=disabled", "a sync returns at once, and nothing is written for it");
                node.mark(Mark::SyncsOmitted { option: "sync=disabled".to_owned() });
            }
            _ => node.saw(CONTROL, "sync=standard", "a sync writes the intent log and flushes it"),
        }
        if set("logbias") == Some(1) {
            node.saw(
                CONTROL,
                "logbias=throughput",
                "a sync writes its data to the devices of the pool, and a log gets a record of it",
            );
            let has_log = self.nodes.get(&node.below[0]).is_some_and(Node::has_log);
            if has_log {
                node.mark(Mark::LogBypassed);
            }
        }
    }

    /// Fills in a block device that is a ZFS volume: /dev/zd0.
    pub(super) fn zfs_volume(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::Zvol;
        let name = self.ask(node, place.number, Request::ZfsVolume, "BLKZNAME");
        // The zero may be followed by the end of an earlier, longer name.
        let name = name.ok().and_then(|bytes| text(bytes.split(|byte| *byte == 0).next()?));
        match name {
            Some(dataset) => {
                node.saw("BLKZNAME", dataset.as_str(), "the volume");
                self.zfs(node, &dataset);
            }
            None => node.mark(Mark::Unseen { what: format!("which volume of ZFS {} is", node.name) }),
        }
    }

    fn pool(&mut self, pool: &str) -> String {
        let name = format!("pool {pool}");
        self.ensure(&name, |surveyor| surveyor.build_pool(pool, &name));
        name
    }

    fn build_pool(&mut self, pool: &str, name: &str) -> Node {
        let mut node = Node::new(LayerKind::Zfs, name);
        self.module(&mut node);
        let Some(config) = self.ask_zfs(&mut node, pool, Request::ZfsPool) else { return node };
        for top in config.lists("vdev_tree").iter().flat_map(|root| root.lists("children")) {
            let mut leaves = Vec::new();
            leaves_of(top, &mut leaves);
            let kind = top.text("type").unwrap_or_default();
            let paths: Vec<&str> = leaves.iter().filter_map(|leaf| leaf.text("path")).collect();
            if paths.is_empty() {
                continue;
            }
            let is_log = top.numbers("is_log") == [1];
            let means = if is_log { "a log: synced data is written to it" } else { "a part of the pool" };
            node.saw(CONTROL, format!("{kind} {}", paths.join(" ")), means);
            if is_log {
                let single = (paths.len() == 1).then(|| paths[0].to_owned());
                node.mark(Mark::SyncLog { single });
            }
            for leaf in leaves {
                self.leaf(&mut node, leaf);
            }
        }
        node
    }

    /// Records parameters and version of the module, which apply to all pools.
    fn module(&self, node: &mut Node) {
        for name in ["zfs_nocacheflush", "zil_nocacheflush"] {
            let file = format!("/sys/module/zfs/parameters/{name}");
            let Ok(value) = self.tree.text(&file) else { continue };
            let off = value == "1";
            node.saw(&file, value, if off { "no flush is issued" } else { "flushes are issued" });
            if off {
                let restore = format!("echo 0 > {file}");
                node.mark(Mark::BarriersOff { option: format!("{name}=1"), restore });
            }
        }
        let file = "/sys/module/zfs/version";
        let Ok(version) = self.tree.text(file) else { return };
        // module/zfs/zio.c, zio_flush: ZIO_FLAG_DONT_PROPAGATE, in 2.1.11 and 2.3.2 alike.
        let known = ["0.", "2.0.", "2.1.", "2.2.", "2.3."].iter().any(|line| version.starts_with(line));
        if known {
            node.saw(file, &version, "a flush that fails is not told to whoever syncs");
            node.mark(Mark::FlushErrorsIgnored { version });
        }
    }

    fn leaf(&mut self, node: &mut Node, leaf: &NvList) {
        let Some(path) = leaf.text("path") else { return };
        let stats = leaf.numbers("vdev_stats");
        if stats.get(STATE).is_some_and(|state| *state < IN_USE) {
            node.saw(CONTROL, path, "not in use (offline, removed or faulted)");
            return;
        }
        let Some(below) = self.beneath_path(path).or_else(|| self.device_at(path)) else {
            node.mark(Mark::Unseen { what: format!("{path} of {} is not visible from here", node.name) });
            return;
        };
        self.never_flushed(node, stats, &below);
        if !node.below.contains(&below) {
            node.below.push(below);
        }
    }

    /// Marks a disk that has a cache, that ZFS has written to and that was never flushed. When ZFS opens a
    /// disk, it reads from the queue whether there is a cache (module/os/linux/zfs/vdev_disk.c,
    /// `vdev_nowritecache`; OpenZFS change 16148), and never flushes a disk without one (trap H10). The
    /// remembered state is not visible. So this is detected only for disks that nothing else has flushed and
    /// whose driver counts flushes.
    fn never_flushed(&self, node: &mut Node, stats: &[u64], below: &str) {
        let disk = match self.nodes.get(below) {
            Some(part) if part.kind == LayerKind::Partition => {
                part.below.first().and_then(|disk| self.nodes.get(disk))
            }
            disk => disk,
        };
        let is_counted = |disk: &&Node| {
            matches!(
                disk.kind,
                LayerKind::ScsiDisk
                    | LayerKind::AtaDisk
                    | LayerKind::UsbDisk
                    | LayerKind::NvmeNamespace
                    | LayerKind::VirtioDisk
            ) && disk.queue == KernelView::WriteBack
        };
        let Some(disk) = disk.filter(is_counted) else { return };
        // The NVMe multipath head counts a flush as an empty read (block/blk-core.c, bdev_start_io_acct).
        if self.place(&disk.name).is_none_or(|place| place.sysfs.contains("/nvme-subsys")) {
            return;
        }
        // Documentation/block/stat.rst: fields 5, 6 and 16 are writes, merged writes and flushes.
        let file = format!("/sys/class/block/{}/stat", disk.name);
        let counts = self.tree.text(&file).unwrap_or_default();
        let counts: Vec<u64> = counts.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let number = |at: usize| stats.get(at).copied().unwrap_or(0);
        let writes = number(WRITES);
        // Fewer writes than ZFS has sent: counting is disabled (queue/iostats).
        let is_counting = counts.len() > 15 && writes > 0 && counts[4] + counts[5] >= writes;
        if is_counting && counts[15] == 0 && number(OPEN_NS) >= FLUSHED_WITHIN_NS {
            let why = format!("{below} has taken {writes} writes of the pool and no flush since it appeared");
            node.saw(file, "0 flushes (number 16)", why.clone());
            node.mark(Mark::NeverFlushed { why });
        }
    }

    /// Queries the ZFS driver about a pool or dataset. Records a failure in the node.
    fn ask_zfs(&self, node: &mut Node, name: &str, request: Request) -> Option<NvList> {
        let asked = ProbedDevice { name, number: DeviceNumber { major: 0, minor: 0 } };
        let reply = self.probe.ask(asked, request);
        if reply == Err(Refusal::Denied) {
            node.mark(self.refused(format!("{name}: {CONTROL}")));
        }
        let because = match reply.as_ref().map(|bytes| NvList::parse(bytes)) {
            Ok(Some(list)) => return Some(list),
            Ok(None) => "the answer cannot be read".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        let what = format!("{CONTROL} does not tell of {name}: {because}");
        node.mark(Mark::Unseen { what });
        None
    }
}

/// Collects the disks and files of a tree of virtual devices.
fn leaves_of<'a>(vdev: &'a NvList, leaves: &mut Vec<&'a NvList>) {
    match vdev.lists("children") {
        [] => leaves.push(vdev),
        children => children.iter().for_each(|child| leaves_of(child, leaves)),
    }
}
