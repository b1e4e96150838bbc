//! Host adapters: the driver that handles the commands of a SCSI, SAS, SATA or USB disk, and whether it
//! forwards flushes (trap H9).

use plumb_linux::tree::Tree;

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

/// Connection of a device through its host adapter.
struct Adapter {
    /// SCSI host: `host2`.
    host: String,
    /// SCSI channel: the second number of H:C:T:L.
    channel: u32,
    /// Directory of the host.
    host_dir: String,
    /// Name of the driver.
    driver: String,
    /// Nearest PCI function above, with its directory.
    pci: Option<(String, String)>,
}

impl Surveyor<'_> {
    /// Returns the layer of the adapter for the SCSI disk at `place`; marks on the disk what the adapter
    /// hides.
    pub(super) fn controller(&mut self, disk: &mut Node, place: &Place) -> Option<String> {
        let adapter = Adapter::read(self.tree, &place.sysfs)?;
        let at = adapter.pci.as_ref().map_or(adapter.host.as_str(), |(address, _)| address.as_str());
        let name = format!("{} {at}", adapter.driver);
        self.hidden_members(disk, place, &adapter);
        self.ensure(&name, |surveyor| {
            let mut node = Node::new(LayerKind::Controller, name.clone());
            node.identity = adapter.pci.as_ref().map(|(address, _)| address.clone());
            node.saw(
                format!("{}/scsi_host/{}/proc_name", adapter.host_dir, adapter.host),
                &adapter.driver,
                "the driver that the commands go through",
            );
            surveyor.flush_policy(&mut node, &adapter);
            // A host may serve each disk differently, so each disk has its own layers there.
            if surveyor.guest().name.is_some() && surveyor.host.is_none() {
                node.below = vec![surveyor.hypervisor()];
            }
            node
        });
        Some(name)
    }

    /// Records whether the driver completes SYNCHRONIZE CACHE itself.
    fn flush_policy(&mut self, node: &mut Node, adapter: &Adapter) {
        match adapter.driver.as_str() {
            "megaraid_sas" if adapter.channel >= MEGARAID_LOGICAL_CHANNEL => self.megaraid(node, adapter),
            "aacraid" => self.aacraid(node),
            // myrb_queuecommand and pmcraid_queuecommand complete the command successfully at once.
            "myrb" | "pmcraid" => {
                let why = format!("the driver {} answers SYNCHRONIZE CACHE itself", adapter.driver);
                node.saw(format!("drivers/scsi/{}.c", adapter.driver), "SYNCHRONIZE CACHE", &why);
                node.mark(Mark::SwallowsFlush { why });
            }
            _ => {}
        }
    }

    /// Records the policy of megaraid_sas: drivers/scsi/megaraid/megaraid_sas_base.c (megasas_queue_command)
    /// forwards the command for a logical disk only if the firmware declared support. Only adapters of the
    /// fusion family query their firmware, and the answer is in the kernel log.
    fn megaraid(&mut self, node: &mut Node, adapter: &Adapter) {
        node.cache = Cache::Unknown;
        let device = adapter.pci.as_ref().and_then(|(_, dir)| self.tree.text(&format!("{dir}/device")).ok());
        let id =
            device.as_deref().and_then(|text| u16::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        if let Some(id) = id
            && MEGARAID_BEFORE_FUSION.contains(&id)
        {
            let why = format!(
                "adapter {id:04x} is older than the firmware that takes SYNCHRONIZE CACHE for logical disks"
            );
            node.saw("PCI device id", format!("{id:#06x}"), &why);
            node.mark(Mark::SwallowsFlush { why });
            return;
        }
        let log = match self.kernel_log() {
            Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Err(_) => String::new(),
        };
        let address = adapter.pci.as_ref().map_or("", |(address, _)| address.as_str());
        let said =
            log.lines().rfind(|line| line.contains("FW supports sync cache") && line.contains(address));
        match said {
            Some(line) if line.trim_end().ends_with("Yes") => {
                node.saw("/dev/kmsg", line, "SYNCHRONIZE CACHE of logical disks goes to the firmware");
            }
            Some(line) => {
                node.saw("/dev/kmsg", line, "the driver answers SYNCHRONIZE CACHE of logical disks itself");
                node.mark(Mark::SwallowsFlush { why: "its firmware does not take SYNCHRONIZE CACHE".to_owned() });
            }
            None => node.mark(Mark::MaySwallowFlush {
                why: "the line `FW supports sync cache` of the kernel log would tell, and is not there or may not be read"
                    .to_owned(),
            }),
        }
    }

    /// Records the policy of aacraid: drivers/scsi/aacraid/aachba.c (aac_scsi_cmd). Bit 1 of the parameter
    /// `cache` suppresses SYNCHRONIZE CACHE, in combination with bit 2 only while the controller reports a
    /// protected cache. The default is 2.
    fn aacraid(&mut self, node: &mut Node) {
        node.cache = Cache::Unknown;
        let file = "/sys/module/aacraid/parameters/cache";
        let value = self.tree.text(file).ok().and_then(|text| text.parse::<i32>().ok());
        match value {
            Some(cache) if cache & 6 == 2 => {
                node.saw(file, cache.to_string(), "bit 1: the driver answers SYNCHRONIZE CACHE itself");
                node.mark(Mark::SwallowsFlush { why: format!("aacraid.cache={cache}") });
            }
            Some(cache) if cache & 6 == 6 => {
                node.saw(file, cache.to_string(), "bits 1 and 2: suppressed while the cache is protected");
                node.mark(Mark::MaySwallowFlush {
                    why: format!("aacraid.cache={cache}: it depends on the battery"),
                });
            }
            Some(cache) => node.saw(file, cache.to_string(), "SYNCHRONIZE CACHE goes to the firmware"),
            None => node.mark(Mark::MaySwallowFlush {
                why: format!("{file} could not be read; its default 2 suppresses"),
            }),
        }
    }

    /// Marks logical disks of RAID drivers: hpsa and smartpqi report them in `raid_level`, megaraid_sas by
    /// the channel; others are recognised by the names of their logical disks.
    fn hidden_members(&self, disk: &mut Node, place: &Place, adapter: &Adapter) {
        let file = format!("{}/device/raid_level", place.sysfs);
        let level = self.tree.text(&file).ok().filter(|level| !level.is_empty() && level != "N/A");
        let model = self.tree.text(&format!("{}/device/model", place.sysfs)).unwrap_or_default();
        let why = match (adapter.driver.as_str(), level) {
            ("hpsa" | "smartpqi", Some(level)) => {
                disk.saw(file, &level, "a logical disk of the controller");
                format!("a {level} volume of {}", adapter.driver)
            }
            ("megaraid_sas" | "megaraid", _) if adapter.channel >= MEGARAID_LOGICAL_CHANNEL => {
                format!("a logical disk of {} (channel {})", adapter.driver, adapter.channel)
            }
            ("aacraid", _) if adapter.channel == 0 => "a container of aacraid (channel 0)".to_owned(),
            ("mpt3sas" | "mpt2sas", _) if model.contains("Logical Volume") => {
                format!("a RAID volume of {}", adapter.driver)
            }
            (
                "myrb" | "myrs" | "pmcraid" | "ips" | "arcmsr" | "3w-9xxx" | "3w-sas" | "3w-xxxx" | "stex"
                | "hptiop",
                _,
            ) => {
                format!("a volume of {}", adapter.driver)
            }
            _ => return,
        };
        disk.mark(Mark::HidesMembers { why });
    }
}

/// MEGASAS_MAX_PD_CHANNELS, megaraid_sas.h: the first channel of logical disks.
const MEGARAID_LOGICAL_CHANNEL: u32 = 2;

/// PCI ids of megaraid_sas adapters outside the fusion family: megasas_pci_table in megaraid_sas_base.c
/// (SAS1064R, SAS1078R, SAS1078DE, VERDE_ZCR, SAS0079GEN2, SAS0073SKINNY, SAS0071SKINNY, PERC5, SAS1078GEN2).
const MEGARAID_BEFORE_FUSION: [u16; 9] =
    [0x0411, 0x0060, 0x007c, 0x0413, 0x0079, 0x0073, 0x0071, 0x0015, 0x0078];

impl Adapter {
    /// Parses the directory of a SCSI disk in /sys:
    /// `/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda`.
    fn read(tree: &dyn Tree, sysfs: &str) -> Option<Self> {
        let parts: Vec<&str> = sysfs.split('/').collect();
        let host_at = parts.iter().rposition(|part| is_numbered(part, "host"))?;
        let host = parts[host_at].to_owned();
        let host_dir = parts[..=host_at].join("/");
        let channel = parts[host_at..].iter().rev().find_map(|part| channel(part)).unwrap_or(0);
        let pci = parts[..host_at]
            .iter()
            .rposition(|part| is_pci_address(part))
            .map(|at| (parts[at].to_owned(), parts[..=at].join("/")));
        let by_host = tree.text(&format!("{host_dir}/scsi_host/{host}/proc_name")).ok();
        let by_pci = || {
            let link = tree.link(&format!("{}/driver", pci.as_ref()?.1)).ok()?;
            link.rsplit('/').next().map(str::to_owned)
        };
        let named =
            by_host.filter(|name| !name.is_empty() && name != "<NULL>" && name != "(null)").or_else(by_pci);
        let driver = named.unwrap_or_else(|| "unknown driver".to_owned());
        Some(Self { host, channel, host_dir, driver, pci })
    }
}

/// Returns true if `part` is `prefix` and a number: `host0` for `host`.
pub fn is_numbered(part: &str, prefix: &str) -> bool {
    let digits = part.strip_prefix(prefix).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true for an address like `0000:00:1f.2`.
fn is_pci_address(part: &str) -> bool {
    let fields: Vec<&str> = part.split([':', '.']).collect();
    let hex = |field: &&str| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_hexdigit());
    fields.len() == 4 && part.contains('.') && fields.iter().all(hex)
}

/// Returns the second number of `0:2:1:0`.
fn channel(part: &str) -> Option<u32> {
    let fields: Vec<&str> = part.split(':').collect();
    let numbers =
        fields.iter().all(|field| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit()));
    (fields.len() == 4 && numbers).then(|| fields[1].parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path_are_told_apart() {
        assert!(is_pci_address("0000:00:1f.2") && is_pci_address("10000:e1:00.0"));
        assert!(!is_pci_address("pci0000:00") && !is_pci_address("0:0:0:0"));
        assert_eq!(channel("0:2:1:0"), Some(2));
        assert_eq!(channel("target0:0:0"), None);
        assert!(is_numbered("host12", "host") && !is_numbered("hostx", "host"));
    }
}
