//! Flushes that reached an emulated NVMe drive, which QEMU does not count.
//!
//! QEMU's NVMe device (7.2) does not account flushes in query-blockstats: they stay 0. It does trace them,
//! one line for each, to its log: `pci_nvme_flush_ns nsid 0x1`. The line does not name the drive, so every
//! NVMe drive of a boot gets a namespace number of its own, and its flushes are the lines with that number.
//! The log is flushed line by line.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::disk::Disk;
use super::qmp::Sample;

/// Trace event to enable.
pub(crate) const EVENT: &str = "pci_nvme_flush_ns";

/// Sets the flushes of the NVMe drives among `disks` from QEMU's log.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn complete(sample: &mut Sample, disks: &[Disk], log: &Path) -> Result<()> {
    let namespaces = super::disk::namespaces(disks);
    if namespaces.is_empty() {
        return Ok(());
    }
    let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    let flushes = count(&text);
    for (number, name) in namespaces {
        if let Some(counters) = sample.get_mut(name) {
            // The maximum is also right for a QEMU that does count them.
            counters.flushes = counters.flushes.max(flushes.get(&number).copied().unwrap_or_default());
        }
    }
    Ok(())
}

/// Counts the flushes of each namespace in the log.
fn count(log: &str) -> BTreeMap<usize, u64> {
    let mut flushes = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(EVENT)) {
        let number =
            line.split_once(" nsid 0x").and_then(|(_, digits)| usize::from_str_radix(digits.trim(), 16).ok());
        if let Some(number) = number {
            *flushes.entry(number).or_default() += 1;
        }
    }
    flushes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_namespace() {
        let log = "pci_nvme_flush_ns nsid 0x1\nqemu: a complaint\n12@3.4:pci_nvme_flush_ns nsid 0x1a\n\
                   pci_nvme_flush_ns nsid 0x1\n";
        assert_eq!(count(log), BTreeMap::from([(1, 2), (26, 1)]));
    }
}
