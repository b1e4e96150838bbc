//! A disk for unit tests: a SATA disk with its cache on, unused.

use crate::state::FoundState;
use crate::view::{DeviceSide, DeviceView, KernelSide};

/// Returns a disk of this name with a port and an identity of its own.
pub(crate) fn sample(name: &str) -> DeviceView {
    DeviceView {
        name: name.to_owned(),
        identity: Some(format!("naa.{name}")),
        transport: "ata".into(),
        vendor: Some("ATA".into()),
        model: Some("ST4000NM0035".into()),
        serial: Some(format!("S-{name}")),
        size: Some(4_000_787_030_016),
        rotational: Some(true),
        state: FoundState::On,
        device: DeviceSide {
            wce: Some(true),
            changeable: Some(true),
            default: Some(true),
            mechanism: "ata-identify".into(),
            ..DeviceSide::default()
        },
        kernel: KernelSide {
            write_cache: Some("write back".into()),
            cache_type: Some("write back".into()),
            fua: Some(false),
        },
        holders: Vec::new(),
        port: format!("port-{name}"),
        redundancy_groups: Vec::new(),
        protection: None,
        health: Vec::new(),
        findings: Vec::new(),
        changeable_by: "plumb as root".into(),
        refusal: None,
    }
}
