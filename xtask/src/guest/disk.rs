//! Emulated drives of a guest, and their options for QEMU.
//!
//! The name of a drive is its serial number, so that the guest finds it under any kernel name, and its name
//! in QEMU, so that its counters can be queried.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Attachment of a drive: the layers between the kernel's block layer and the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bus {
    /// SATA: ide-hd on the AHCI controller of the machine; six at most.
    Ahci,
    /// A SCSI disk on virtio-scsi.
    VirtioScsi,
    /// A logical disk of a MegaRAID SAS controller.
    Megasas,
    /// USB mass storage, bulk-only.
    UsbStorage,
    /// A SCSI disk on USB attached SCSI.
    Uas,
    /// virtio-blk with a cache that the guest may switch.
    VirtioBlk,
    /// virtio-blk with config-wce=off: the guest sees the cache but cannot switch it.
    VirtioBlkFixed,
    /// NVMe.
    Nvme,
    /// NBD client of the guest itself. For QEMU it is not a disk but a network.
    NbdClient,
}

/// Storage of a drive's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Medium {
    /// Sparse file that lives as long as the boot.
    #[default]
    File,
    /// None: writes are discarded, for drives that only count.
    Null,
    /// File of another drive: this one is a second path to it, with the same serial number.
    SameAs(String),
    /// Drive simulated by `plumb drive serve`.
    Simulated,
}

/// Options that make a drive slow.
const SLOW: &str = ",throttling.iops-total=150,throttling.bps-total=157286400";

/// Emulated drive.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disk {
    /// Name in QEMU, unique in a boot.
    pub name: String,
    /// Attachment.
    pub bus: Bus,
    /// True if it is powered on with its volatile write cache disabled.
    #[serde(default)]
    cache_off: bool,
    #[serde(default)]
    medium: Medium,
    /// Capacity of the drive in MiB.
    #[serde(default = "usual_size")]
    size_mib: u64,
    /// True if QEMU limits it to 150 operations/s and 150 MiB/s.
    #[serde(default)]
    slow: bool,
    /// Model that plumb simulates; `None` for the default.
    pub model: Option<String>,
    /// World Wide Name in addition to the serial number: SCSI and SATA.
    wwn: Option<u64>,
    /// True if it is reached through two controllers of one subsystem: NVMe.
    #[serde(default)]
    two_controllers: bool,
}

const fn usual_size() -> u64 {
    Disk::SIZE_MIB
}

impl Disk {
    /// Default capacity in MiB.
    pub(crate) const SIZE_MIB: u64 = 512;

    /// Returns QEMU's name of the device to remove in order to unplug this drive; `None` if that is not
    /// supported.
    pub(crate) fn unplugged_as(&self) -> Option<String> {
        (self.bus == Bus::VirtioScsi).then(|| format!("{}-disk", self.name))
    }

    /// Returns true if plumb simulates the drive.
    pub(crate) fn is_simulated(&self) -> bool {
        self.medium == Medium::Simulated
    }

    /// Returns the serial number that the guest sees.
    pub(crate) fn serial(&self) -> &str {
        match &self.medium {
            Medium::SameAs(other) => other,
            Medium::File | Medium::Null | Medium::Simulated => &self.name,
        }
    }

    /// Creates the file of the drive, if it has its own.
    fn create(&self, directory: &Path) -> Result<()> {
        if self.medium == Medium::File {
            let path = directory.join(&self.name);
            let file =
                std::fs::File::create(&path).with_context(|| format!("creating {}", path.display()))?;
            file.set_len(self.size_mib << 20).with_context(|| format!("sizing {}", path.display()))?;
        }
        Ok(())
    }

    /// Returns the `-drive` option of this disk. The guest's writes need not be durable on the host
    /// (cache=unsafe): QEMU's counters count a flush when the emulated drive receives it.
    fn drive(&self, directory: &Path) -> String {
        let name = &self.name;
        match self.medium {
            Medium::Null => {
                let size = self.size_mib << 20;
                format!("if=none,id={name},driver=null-co,size={size},read-zeroes=on,cache=unsafe")
            }
            Medium::Simulated => {
                let socket = super::simulated::socket(directory, self);
                format!("if=none,id={name},format=raw,file=nbd:unix:{}", socket.display())
            }
            Medium::File | Medium::SameAs(_) => {
                let path = directory.join(self.serial());
                let throttle = if self.slow { SLOW } else { "" };
                // The lock that forbids two paths to one file protects against other processes.
                format!(
                    "if=none,id={name},format=raw,cache=unsafe,file.locking=off,file={}{throttle}",
                    path.display()
                )
            }
        }
    }

    /// Returns the `-device` options of this disk, the `index`th on its bus.
    fn devices(&self, index: usize) -> Vec<String> {
        let (name, serial) = (&self.name, self.serial());
        let wwn = self.wwn.map_or_else(String::new, |wwn| format!(",wwn={wwn:#x}"));
        let common = format!("drive={name},serial={serial},share-rw=on{wwn}");
        let wce = if self.cache_off { "off" } else { "on" };
        let device = match self.bus {
            Bus::Ahci => format!("ide-hd,bus=ide.{index},{common},write-cache={wce}"),
            Bus::VirtioScsi => {
                format!("scsi-hd,bus=scsi.0,id={name}-disk,scsi-id={index},{common},write-cache={wce}")
            }
            Bus::Megasas => format!("scsi-hd,bus=raid.0,scsi-id={index},{common},write-cache={wce}"),
            Bus::Uas => format!("scsi-hd,bus=uas.0,scsi-id=0,lun={index},{common},write-cache={wce}"),
            // QEMU's usb-storage does not pass write-cache to its disk, so it always starts with the cache
            // enabled. With an ID its inner bus has a name of its own; without, it is called like that of
            // virtio-scsi.
            Bus::UsbStorage => format!("usb-storage,bus=usb.0,id={name}-bridge,{common}"),
            Bus::VirtioBlk => format!("virtio-blk-pci,{common},write-cache={wce},config-wce=on"),
            Bus::VirtioBlkFixed => format!("virtio-blk-pci,{common},write-cache={wce},config-wce=off"),
            Bus::NbdClient => return Vec::new(),
            Bus::Nvme => {
                let mut devices = self.nvme_controllers();
                let number = namespace_number(index);
                let bus = format!("bus={name}-controller,nsid={number}");
                devices.push(format!("nvme-ns,{bus},drive={name},share-rw=on,write-cache={wce}"));
                return devices;
            }
        };
        vec![device]
    }

    /// Returns the controllers of an NVMe drive. A namespace of a subsystem is reached through all of its
    /// controllers.
    fn nvme_controllers(&self) -> Vec<String> {
        let (name, serial) = (&self.name, self.serial());
        let controller = format!("nvme,id={name}-controller,serial={serial}");
        if !self.two_controllers {
            return vec![controller];
        }
        let in_subsystem = format!("serial={serial},subsys={name}-subsystem");
        vec![
            format!("nvme-subsys,id={name}-subsystem,nqn={name}"),
            format!("nvme,id={name}-controller,{in_subsystem}"),
            format!("nvme,id={name}-other-controller,{in_subsystem}"),
        ]
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Ahci => "ahci",
            Self::VirtioScsi => "virtio-scsi",
            Self::Megasas => "megasas",
            Self::UsbStorage => "usb-storage",
            Self::Uas => "usb-uas",
            Self::VirtioBlk => "virtio-blk",
            Self::VirtioBlkFixed => "virtio-blk, config-wce=off",
            Self::Nvme => "nvme",
            Self::NbdClient => "nbd",
        })
    }
}

impl Bus {
    /// Returns the needs of the bus: controllers that must exist before a disk, and kernel modules with their
    /// parameters. SCSI disks also need sd_mod.
    const fn needs(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Ahci => (&[], &["ahci"]),
            Self::VirtioScsi => (&["virtio-scsi-pci,id=scsi"], &["virtio_pci", "virtio_scsi"]),
            Self::Megasas => (&["megasas-gen2,id=raid"], &["megaraid_sas"]),
            Self::UsbStorage => (&["qemu-xhci,id=usb"], &["xhci_pci", "usb_storage delay_use=0"]),
            Self::Uas => (&["qemu-xhci,id=usb", "usb-uas,id=uas,bus=usb.0"], &["xhci_pci", "uas"]),
            Self::VirtioBlk | Self::VirtioBlkFixed => (&[], &["virtio_pci", "virtio_blk"]),
            Self::Nvme => (&[], &["nvme"]),
            Self::NbdClient => (&[], &["virtio_pci"]),
        }
    }

    /// Returns true if its disks are SCSI disks for the kernel.
    pub(crate) const fn is_scsi(self) -> bool {
        matches!(self, Self::Ahci | Self::VirtioScsi | Self::Megasas | Self::UsbStorage | Self::Uas)
    }

    /// Returns the kernel modules of its drivers.
    pub(crate) const fn modules(self) -> &'static [&'static str] {
        self.needs().1
    }
}

/// Creates the files of all disks in `directory` and returns QEMU's arguments for them.
///
/// # Errors
/// If a file cannot be created.
pub(crate) fn attach(disks: &[Disk], directory: &Path) -> Result<Vec<String>> {
    let mut arguments = Vec::new();
    for disk in disks {
        disk.create(directory)?;
    }
    let mut controllers: Vec<&str> = Vec::new();
    for controller in disks.iter().flat_map(|disk| disk.bus.needs().0) {
        if !controllers.contains(controller) {
            controllers.push(controller);
            arguments.extend(["-device".to_owned(), (*controller).to_owned()]);
        }
    }
    for (position, disk) in disks.iter().enumerate() {
        if disk.bus == Bus::NbdClient {
            arguments.extend(network(disk, directory));
            continue;
        }
        arguments.extend(["-drive".to_owned(), disk.drive(directory)]);
        for device in disk.devices(index_on_bus(disks, position)) {
            arguments.extend(["-device".to_owned(), device]);
        }
    }
    Ok(arguments)
}

/// Returns an isolated network in which one address is the socket of the drive.
fn network(disk: &Disk, directory: &Path) -> [String; 6] {
    let socket = super::simulated::socket(directory, disk);
    let forward = "guestfwd=tcp:10.0.2.100:10809-chardev:drive";
    [
        "-chardev".to_owned(),
        format!("socket,id=drive,path={}", socket.display()),
        "-netdev".to_owned(),
        format!("user,id=net,restrict=on,{forward}"),
        "-device".to_owned(),
        "virtio-net-pci,netdev=net,romfile=".to_owned(),
    ]
}

/// Returns the NVMe drives by the numbers of their namespaces, which are unique in a boot.
pub(crate) fn namespaces(disks: &[Disk]) -> Vec<(usize, &str)> {
    let all = disks.iter().enumerate().filter(|(_, disk)| disk.bus == Bus::Nvme);
    all.map(|(position, disk)| (namespace_number(index_on_bus(disks, position)), &*disk.name)).collect()
}

/// Returns the number of a namespace. They count from one.
fn namespace_number(index: usize) -> usize {
    index + 1
}

fn index_on_bus(disks: &[Disk], position: usize) -> usize {
    disks[..position].iter().filter(|other| other.bus == disks[position].bus).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(text: &str) -> Disk {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn disks_of_one_bus_share_the_controller() {
        let directory = tempfile::tempdir().unwrap();
        let a = disk("name = 'a'\nbus = 'virtio-scsi'");
        let b = disk("name = 'b'\nbus = 'virtio-scsi'\ncache_off = true");
        let text = attach(&[a, b], directory.path()).unwrap().join(" ");
        assert_eq!(text.matches("virtio-scsi-pci").count(), 1);
        assert!(text.contains("id=b-disk,scsi-id=1,drive=b,serial=b,share-rw=on,write-cache=off"), "{text}");
        assert_eq!(std::fs::metadata(directory.path().join("b")).unwrap().len(), 512 << 20);
    }

    #[test]
    fn nvme_drives_have_namespaces_of_their_own() {
        let disks = [("a", "ahci"), ("b", "nvme"), ("c", "nvme")]
            .map(|(name, bus)| disk(&format!("name = '{name}'\nbus = '{bus}'")));
        assert_eq!(namespaces(&disks), [(1, "b"), (2, "c")]);
    }

    #[test]
    fn a_second_path_has_the_serial_of_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = disk("name = 'lun-path-2'\nbus = 'virtio-scsi'\nmedium = { same-as = 'lun' }");
        let text = attach(&[path], directory.path()).unwrap().join(" ");
        assert!(text.contains("drive=lun-path-2,serial=lun,"), "{text}");
        assert!(!directory.path().join("lun-path-2").exists());
    }
}
