//! Continuation of a guest's path on its host, from a survey of the host's virtual machines (`plumb survey
//! --guests`).
//!
//! Disks are matched by serial number, which the host sets and the guest sees. The host's layers become nodes
//! of the guest's path, with the fate of a flush from the host's survey, so the rules judge both machines as
//! one path.

use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::finding::Finding;
use crate::model::{Layer, LayerKind, Survey, WritePath};

/// VIRTIO_BLK_ID_BYTES (include/uapi/linux/virtio_blk.h): longer serial numbers are truncated.
const VIRTIO_SERIAL: usize = 20;

impl Surveyor<'_> {
    /// Returns the layer below a disk that a hypervisor provides: the disk's path on the host if a survey of
    /// the host includes it, else the hypervisor.
    pub(super) fn provider(&mut self, node: &mut Node, identities: &[&str]) -> String {
        let Some(host) = self.host else { return self.hypervisor() };
        let known = |path: &&WritePath| serial(path).is_some_and(|serial| is_of_disk(serial, identities));
        let found: Vec<&WritePath> = host.paths.iter().filter(known).collect();
        let means = match found.as_slice() {
            [path] => {
                node.saw(
                    "survey of the host",
                    &path.target,
                    "the host serves the disk so, by its serial number",
                );
                return self.continued_by(path);
            }
            [] => {
                "no disk there has this serial number: set one on the host (QEMU serial=, libvirt <serial>)"
            }
            _ => "several disks there have this serial number: give each its own",
        };
        node.saw("survey of the host", format!("serial number {}", identities.join(" ")), means);
        self.hypervisor()
    }

    /// Adds the layers of a path of the host. Returns the name of the first.
    fn continued_by(&mut self, path: &WritePath) -> String {
        for (index, layer) in path.layers.iter().enumerate() {
            self.ensure(&name_of(layer, path), |_| {
                let mut node = node_of(layer, path);
                if index == 0 {
                    if path.durable_at.write.is_some() {
                        node.mark(Mark::FlushesWrites);
                    }
                    if let Some(below) = &path.unknown_below {
                        node.mark(Mark::Unseen { what: format!("on the host, {below}") });
                    }
                }
                node
            });
        }
        path.layers.first().map_or_else(|| self.hypervisor(), |first| name_of(first, path))
    }
}

/// Adds the host's findings about the host disks that `path` uses.
pub(super) fn with_findings(mut path: WritePath, host: &Survey) -> WritePath {
    for below in &host.paths {
        let first = below.layers.first().map(|first| name_of(first, below));
        if path.layers.iter().any(|layer| Some(&layer.name) == first.as_ref()) {
            let on_host = |finding: &Finding| Finding {
                sentence: format!("On the host: {}", finding.sentence),
                ..finding.clone()
            };
            path.findings.extend(below.findings.iter().map(on_host));
        }
    }
    Finding::sort_by_severity(&mut path.findings);
    path
}

fn serial(path: &WritePath) -> Option<&str> {
    let machine = path.layers.first().filter(|layer| layer.kind == LayerKind::VirtualMachine)?;
    machine.identity.as_deref().filter(|serial| !serial.is_empty())
}

/// Returns true if one of a disk's identities in the guest matches this serial number: virtio-blk truncates
/// it, a SCSI disk adds vendor and model before it, and an NVMe namespace has it in hexadecimal after the
/// vendor (`nvme.1b36-646231-...`: wwid_show in drivers/nvme/host/sysfs.c).
fn is_of_disk(serial: &str, identities: &[&str]) -> bool {
    let hexadecimal: String = serial.bytes().map(|byte| format!("{byte:02x}")).collect();
    identities.iter().any(|identity| {
        let of_nvme = identity.strip_prefix("nvme.").and_then(|rest| rest.split('-').nth(1));
        *identity == serial
            || identity.split_ascii_whitespace().next_back() == Some(serial)
            || (identity.len() == VIRTIO_SERIAL && serial.starts_with(identity))
            || of_nvme == Some(hexadecimal.as_str())
    })
}

/// Returns the name of a host layer among those of its guest. Each disk has its own layers for the virtual
/// machine's process and the page cache.
fn name_of(layer: &Layer, path: &WritePath) -> String {
    let name = &layer.name;
    match layer.kind {
        LayerKind::VirtualMachine | LayerKind::PageCache => {
            format!("host: {name}, disk {}", serial(path).unwrap_or_default())
        }
        _ => format!("host: {name}"),
    }
}

fn node_of(layer: &Layer, path: &WritePath) -> Node {
    let mut node = Node::new(layer.kind, name_of(layer, path));
    node.identity.clone_from(&layer.identity);
    node.cache = layer.cache;
    node.evidence.clone_from(&layer.evidence);
    let below = path.layers.iter().filter(|other| layer.below.contains(&other.name));
    node.below = below.map(|other| name_of(other, path)).collect();
    node.mark(Mark::OfHost { flush: layer.flush, fua: layer.fua });
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_known_by_its_serial_number_in_every_form() {
        for identity in [
            "db1-root",
            "0QEMU    QEMU HARDDISK   db1-root",
            "t10.ATA     QEMU HARDDISK                           db1-root",
            "nvme.1b36-6462312d726f6f74-51454d55204e564d65204374726c-00000001",
        ] {
            assert!(is_of_disk("db1-root", &[identity]), "{identity}");
            assert!(!is_of_disk("db1", &[identity]), "{identity}");
        }
        assert!(is_of_disk("0123456789012345678901234", &["01234567890123456789"]));
        assert!(!is_of_disk("0123456789012345678901234", &["0123456789"]));
        assert!(!is_of_disk("x", &[]));
    }
}
