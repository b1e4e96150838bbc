//! Storage under a path: the devices whose counters show the requests handed to drivers, and the layer
//! directly below the file system.

use crate::model::{Layer, LayerKind, SERVED_DRIVE, WritePath};

impl Layer {
    /// Returns true if the layer is a simulated drive that a process of plumb serves.
    pub fn is_served_drive(&self) -> bool {
        self.name.starts_with(SERVED_DRIVE)
    }

    /// Returns true if the layer is a block device of this kernel, with a line in /proc/diskstats.
    pub fn is_block_device(&self) -> bool {
        use LayerKind as K;
        match self.kind {
            K::Application
            | K::PageCache
            | K::FileSystem
            | K::Overlay
            | K::Tmpfs
            | K::NetworkFileSystem
            | K::Fuse
            | K::Zfs
            | K::Controller
            | K::VirtualMachine
            | K::Hypervisor
            | K::Remote => false,
            // A device of unknown kind, or a cache that is one, has its kernel name. Layers that are not
            // devices have descriptive names with spaces.
            K::Unknown | K::WriteBackCache => !self.name.contains([' ', '/']),
            K::SimulatedDrive => !self.is_served_drive(),
            _ => true,
        }
    }
}

impl WritePath {
    /// Returns the layer of this name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// Returns the kernel names of the lowest block devices under the target, whose counters in
    /// /proc/diskstats show the requests handed to drivers. Whole disks, not partitions; for a loop device
    /// the disk below its file; empty for memory and network file systems.
    pub fn block_devices(&self) -> Vec<String> {
        self.layers
            .iter()
            .zip(self.above_block_devices())
            .filter(|(layer, is_above)| layer.is_block_device() && !is_above)
            .map(|(layer, _)| layer.name.clone())
            .collect()
    }

    /// Returns the kernel names of the block devices above [`block_devices`](Self::block_devices), from the
    /// top down.
    pub fn devices_above(&self) -> Vec<String> {
        let above = self.layers.iter().zip(self.above_block_devices());
        let devices = above.filter(|(layer, is_above)| layer.is_block_device() && *is_above);
        devices.map(|(layer, _)| layer.name.clone()).collect()
    }

    /// Returns the kernel names of the first block devices below the target, which receive requests from the
    /// target's file system or from direct users of the device.
    pub fn first_devices(&self) -> Vec<String> {
        let mut first = Vec::new();
        let mut seen = vec![self.layers.first().map(|layer| layer.name.as_str())];
        let mut next = 0;
        while let Some(name) = seen.get(next).copied().flatten() {
            next += 1;
            match self.layer(name) {
                Some(layer) if layer.is_block_device() => first.push(layer.name.clone()),
                Some(layer) => {
                    let new: Vec<&String> =
                        layer.below.iter().filter(|below| !seen.contains(&Some(below.as_str()))).collect();
                    seen.extend(new.into_iter().map(|below| Some(below.as_str())));
                }
                None => {}
            }
        }
        first
    }

    /// Returns the layer above [`first_devices`](Self::first_devices) that a process serves, a file system in
    /// user space: requests to the devices come from that process on behalf of others.
    pub fn server_above_devices(&self) -> Option<&Layer> {
        let above = self.layers.iter().take_while(|layer| !layer.is_block_device());
        let mut served = above.filter(|layer| layer.kind == LayerKind::Fuse);
        served.next().filter(|_| !self.first_devices().is_empty())
    }

    /// Returns true if `layer` is one of [`block_devices`](Self::block_devices), whose own counters are read.
    /// Layers below, such as an adapter, hypervisor or server, have none.
    pub fn is_lowest_device(&self, layer: &Layer) -> bool {
        layer.is_block_device() && self.block_devices().contains(&layer.name)
    }

    /// Returns the file system of the target: the first below the page cache. `None` for a block device.
    pub fn file_system(&self) -> Option<&Layer> {
        use LayerKind as K;
        let top = self.layers.iter().find(|layer| !matches!(layer.kind, K::Application | K::PageCache))?;
        let is_system = matches!(
            top.kind,
            K::FileSystem | K::Overlay | K::Tmpfs | K::NetworkFileSystem | K::Fuse | K::Zfs
        );
        is_system.then_some(top)
    }

    /// Returns for each layer whether a block device is below it.
    fn above_block_devices(&self) -> Vec<bool> {
        let mut above = vec![false; self.layers.len()];
        // From below, each layer once and only its links downwards: terminates on any document.
        for index in (0..self.layers.len()).rev() {
            let below = &self.layers[index].below;
            above[index] = (index + 1..self.layers.len()).any(|lower| {
                let layer = &self.layers[lower];
                (above[lower] || layer.is_block_device()) && below.contains(&layer.name)
            });
        }
        above
    }
}
