//! Oracle: the number of flushes that arrived at each drive, counted by the emulated drive itself.
//!
//! In addition, the counts of the guest's block layer for the same drive, and for every device stacked above:
//! where they differ, or a count stops, a flush was lost. Written as `oracle.json` into a scenario's
//! recording. The survey's verdicts are tested against it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use super::qmp::{DriveCounters, Sample};
use super::scenario::Scenario;

/// Counts between the two samples of a scenario.
#[derive(Debug, Serialize)]
pub(crate) struct Oracle {
    schema: &'static str,
    /// Name of the scenario.
    pub scenario: &'static str,
    about: &'static str,
    /// Release of the kernel, as `uname -r` prints it.
    kernel: String,
    /// Target that was surveyed and written to.
    target: String,
    /// Number of times that 4 KiB were written and synced.
    syncs: u32,
    /// Drives below the target.
    pub disks: Vec<DiskOracle>,
    /// Flushes that the block layer counted on other block devices, by name, without those that counted none.
    /// Only devices with a request queue count (loop, multipath); most of dm, and md and bcache, never do.
    pub stacked_block_layer_flushes: BTreeMap<String, u64>,
}

/// Observations of one drive.
#[derive(Debug, Serialize)]
pub(crate) struct DiskOracle {
    /// Kernel's name of the drive.
    pub name: String,
    serial: &'static str,
    bus: String,
    /// True if the drive's volatile write cache was enabled while the writes were synced, according to the
    /// drive, not the kernel.
    pub write_cache: bool,
    /// Flush commands that the drive received.
    pub flushes_arrived: u64,
    /// Write commands that the drive received.
    pub writes_arrived: u64,
    /// Flushes that the guest's block layer counted as completed by this drive.
    pub block_layer_flushes: u64,
}

/// Reports of a guest about one scenario.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// Kernel names of the drives.
    pub nodes: BTreeMap<String, String>,
    /// Samples of the host, by label.
    pub samples: BTreeMap<String, Sample>,
    /// Data that the guest has sent, by label.
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// Results of checks that the guest made itself.
    pub notes: Vec<String>,
}

impl Oracle {
    /// Subtracts the sample "before" from the sample "after".
    ///
    /// # Errors
    /// If one of them is missing, as after an aborted guest.
    pub(crate) fn from_evidence(
        scenario: &'static Scenario,
        kernel: &str,
        evidence: &Evidence,
    ) -> Result<Self> {
        let sample = |label: &str| {
            evidence
                .samples
                .get(label)
                .with_context(|| format!("the guest never reached the sample {label:?}"))
        };
        let (before, after) = (sample("before")?, sample("after")?);
        let mut block_layer = block_layer_flushes(evidence)?;
        let mut disks = Vec::new();
        for disk in &scenario.disks {
            let counters = |sample: &Sample| -> Result<DriveCounters> {
                sample
                    .get(&disk.name)
                    .copied()
                    .with_context(|| format!("QEMU has no counters for {}", disk.name))
            };
            let (before, after) = (counters(before)?, counters(after)?);
            let name = evidence.nodes.get(&disk.name).cloned().context("the guest did not name a drive")?;
            disks.push(DiskOracle {
                block_layer_flushes: block_layer.remove(&name).unwrap_or_default(),
                name,
                serial: disk.serial(),
                bus: disk.bus.to_string(),
                write_cache: before.write_cache,
                flushes_arrived: after.flushes - before.flushes,
                writes_arrived: after.writes - before.writes,
            });
        }
        let target = evidence.blobs.get("target").map(|text| String::from_utf8_lossy(text).trim().to_owned());
        Ok(Self {
            schema: "plumb/guest-oracle/1",
            scenario: &scenario.name,
            about: &scenario.about,
            kernel: kernel.to_owned(),
            target: target.context("the guest did not say what it wrote to")?,
            syncs: scenario.syncs,
            disks,
            stacked_block_layer_flushes: block_layer,
        })
    }

    /// Describes the differences from the scenario's expectation; `None` if there are none.
    pub(crate) fn contradiction(&self, scenario: &Scenario) -> Option<String> {
        let wrong: Vec<String> = std::iter::zip(&scenario.disks, &self.disks)
            .filter_map(|(disk, seen)| {
                let arrived = seen.flushes_arrived;
                let wanted = match arrived {
                    0 if scenario.expected.arrived.contains(&disk.name) => "some",
                    1.. if scenario.expected.none.contains(&disk.name) => "none",
                    0 if scenario.expected.exactly.contains(&disk.name) => "some",
                    _ if scenario.expected.exactly.contains(&disk.name)
                        && arrived != seen.block_layer_flushes =>
                    {
                        "as many as the block layer counts"
                    }
                    _ => return None,
                };
                Some(format!("{arrived} flushes arrived at {}, expected {wanted}", seen.name))
            })
            .collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

/// Returns the flushes that each block device of the guest completed between the two copies of
/// /proc/diskstats, without devices that counted none.
fn block_layer_flushes(evidence: &Evidence) -> Result<BTreeMap<String, u64>> {
    let stats = |label: &str| -> Result<BTreeMap<String, u64>> {
        let text =
            evidence.blobs.get(label).with_context(|| format!("the guest sent no diskstats {label:?}"))?;
        Ok(String::from_utf8_lossy(text).lines().filter_map(parse_diskstats).collect())
    };
    let (before, after) = (stats("before")?, stats("after")?);
    let deltas = after.into_iter().map(|(name, after)| {
        let before = before.get(&name).copied().unwrap_or_default();
        (name, after.saturating_sub(before))
    });
    Ok(deltas.filter(|(_, flushes)| *flushes > 0).collect())
}

/// Returns the name of a block device and the flushes it completed. A line is major, minor, name and 17
/// fields, of which the 16th counts them (Documentation/admin-guide/iostats.rst).
fn parse_diskstats(line: &str) -> Option<(String, u64)> {
    const WORDS_BEFORE_FIELD_1: usize = 3;
    let mut words = line.split_whitespace();
    let name = words.clone().nth(2)?.to_owned();
    Some((name, words.nth(WORDS_BEFORE_FIELD_1 + 15)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static TRAP: LazyLock<Scenario> = LazyLock::new(|| {
        let text =
            "name = 'trap'\ndisks = [{ name = 'a', bus = 'virtio-scsi' }]\nexpected = { none = ['a'] }";
        toml::from_str(text).unwrap()
    });

    fn evidence(flushes: u64) -> Evidence {
        let sample = |flushes| {
            Sample::from([(
                "a".to_owned(),
                DriveCounters { flushes, writes: 2 * flushes, write_cache: true },
            )])
        };
        let line = |name, flushes| format!("8 0 {name} 1 0 8 1 {flushes} 0 8 1 0 1 1 0 0 0 0 {flushes} 3\n");
        let text = |text: String| text.into_bytes();
        Evidence {
            nodes: [("a".to_owned(), "sda".to_owned())].into(),
            samples: [("before".to_owned(), sample(10)), ("after".to_owned(), sample(10 + flushes))].into(),
            blobs: [
                ("target".to_owned(), text("/mnt/t\n".to_owned())),
                ("before".to_owned(), text(line("sda", 3) + &line("loop0", 1) + &line("sdb", 1))),
                ("after".to_owned(), text(line("sda", 3 + flushes) + &line("loop0", 5) + &line("sdb", 1))),
            ]
            .into(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn counts_are_differences() {
        let oracle = Oracle::from_evidence(&TRAP, "6.12", &evidence(7)).unwrap();
        let disk = &oracle.disks[0];
        assert_eq!((disk.flushes_arrived, disk.writes_arrived, disk.block_layer_flushes), (7, 14, 7));
        assert_eq!(oracle.stacked_block_layer_flushes, [("loop0".to_owned(), 4)].into());
        assert!(oracle.contradiction(&TRAP).unwrap().starts_with("7 flushes arrived at sda"));
    }

    #[test]
    fn a_trap_that_catches_is_as_expected() {
        assert_eq!(Oracle::from_evidence(&TRAP, "6.12", &evidence(0)).unwrap().contradiction(&TRAP), None);
    }

    #[test]
    fn a_guest_that_broke_off_has_no_oracle() {
        let mut evidence = evidence(1);
        evidence.samples.remove("after");
        assert!(Oracle::from_evidence(&TRAP, "6.12", &evidence).unwrap_err().to_string().contains("after"));
    }
}
