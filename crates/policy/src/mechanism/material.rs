//! Material for planning a change: read once, then used by pure functions.

use plumb_linux::probe::{PageControl, ProbedDevice, Request};
use serde::{Deserialize, Serialize};

use crate::device::{BlockKind, Reader, kernel_paths};
use crate::gateway::Disk;
use crate::view::{DeviceView, Refusal};

/// Command set of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// MODE SELECT.
    Scsi,
    /// SET FEATURES, through libata or a translating SAS adapter.
    Ata,
    /// Set Features 06h.
    Nvme,
    /// `cache_type` of virtio-blk.
    Virtio,
}

/// A dm device above a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Above {
    /// The dm device.
    pub disk: Disk,
    /// Path of the dm device's queue/write_cache.
    pub write_cache: String,
}

/// Facts about a disk to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Material {
    /// The disk.
    pub disk: Disk,
    /// Command set for switching.
    pub kind: Kind,
    /// The disk's answer to MODE SENSE(10) for the caching page, current values.
    pub mode_page: Option<Vec<u8>>,
    /// True if the disk's cache is enabled.
    pub wce: bool,
    /// State of the cache after a power cut, if the drive reports it.
    pub saved: Option<bool>,
    /// True if the disk can save the state.
    pub saveable: bool,
    /// The path of queue/write_cache.
    pub write_cache: String,
    /// Content of queue/write_cache.
    pub write_cache_says: Option<String>,
    /// The path of cache_type.
    pub cache_type: Option<String>,
    /// Content of cache_type.
    pub cache_type_says: Option<String>,
    /// The path of the attribute that makes sd read the drive again.
    pub rescan: Option<String>,
    /// The dm devices above, each after those below it.
    pub above: Vec<Above>,
}

impl Material {
    /// Reads what is needed to change the disk of `view`, which must be up to date.
    ///
    /// # Errors
    /// The [`Refusal`] of the view, or one for missing material.
    pub fn read(reader: &Reader<'_>, view: &DeviceView) -> Result<Self, Refusal> {
        if let Some(refusal) = &view.refusal {
            return Err(refusal.clone());
        }
        let gone = || {
            Refusal::new(
                format!("{} no longer exists, or has lost its identity", view.name),
                "run `plumb policy show --all` and plan again",
            )
        };
        let block = reader.inventory().get(&view.name).ok_or_else(gone)?;
        let identity = view.identity.clone().ok_or_else(gone)?;
        let wce = view.device.wce.ok_or_else(gone)?;
        let disk = Disk { name: view.name.clone(), number: block.number, identity };
        let kind = kind_of(view);
        let asked = ProbedDevice { name: &disk.name, number: disk.number };
        let page = || reader.gateway.probe().ask(asked, Request::CachingPage(PageControl::Current)).ok();
        let paths = kernel_paths(reader.gateway.tree(), block);
        Ok(Self {
            kind,
            mode_page: if kind == Kind::Scsi { page() } else { None },
            wce,
            saved: view.device.saved,
            saveable: view.device.saveable == Some(true),
            write_cache: paths.write_cache,
            write_cache_says: view.kernel.write_cache.clone(),
            cache_type: paths.cache_type,
            cache_type_says: view.kernel.cache_type.clone(),
            rescan: paths.rescan,
            above: above(reader, view)?,
            disk,
        })
    }
}

fn kind_of(view: &DeviceView) -> Kind {
    match view.device.mechanism.as_str() {
        "nvme-feature" => Kind::Nvme,
        "virtio-config" => Kind::Virtio,
        "ata-identify" => Kind::Ata,
        _ => Kind::Scsi,
    }
}

fn above(reader: &Reader<'_>, view: &DeviceView) -> Result<Vec<Above>, Refusal> {
    let mut above = Vec::new();
    for block in reader.inventory().above(&view.name) {
        if block.kind != BlockKind::DeviceMapper {
            continue;
        }
        let disk = reader.disk(&block.name).ok_or_else(|| {
            Refusal::new(
                format!("{} is on {} and has no uuid by which it could be recognised", block.name, view.name),
                format!("set {} up again with a uuid (`dmsetup create --uuid`)", block.name),
            )
        })?;
        above.push(Above { disk, write_cache: kernel_paths(reader.gateway.tree(), block).write_cache });
    }
    Ok(above)
}
