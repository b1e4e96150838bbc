//! A mock disk: the drive, and the kernel's view of it.

use plumb_block::Nanos;
use plumb_linux::tree::DeviceNumber;

use crate::wire::ocp_log::PowerLoss;
use crate::wire::sct::WriteCache;

/// Kind of a disk, with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MockKind {
    /// SAS behind an expander of mpt3sas.
    Sas,
    /// SATA on AHCI.
    Sata,
    /// NVMe on PCI.
    Nvme,
    /// virtio-blk.
    Virtio,
    /// A SCSI disk behind a USB bridge.
    Usb,
    /// A logical disk of megaraid_sas.
    Raid,
}

/// State that the kernel assumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kernel {
    /// The cache that sd or virtio-blk last saw: `cache_type`, and the queue's feature.
    pub cache: bool,
    /// True if `cache_type` was set "temporary", so that rescans change nothing.
    pub overridden: bool,
    /// True if the user has set `queue/write_cache` to write through.
    pub disabled: bool,
}

/// Traps of real machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// H1: `cache_type` was set "temporary write through".
    Temporary,
    /// H2: `queue/write_cache` was set to write through.
    Queue,
    /// H3: the cache was switched on without the kernel's knowledge.
    Stale,
}

/// A mock disk, created by [`MockDisk::new`] and then given its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockDisk {
    /// Kind of the disk.
    pub kind: MockKind,
    /// Kernel name; empty: the next one of its kind.
    pub name: String,
    /// NVMe: name of the controller; empty: a separate one. Namespaces of one controller share a cache.
    pub controller: String,
    /// NVMe with native multipath: true if the disk's directory is that of the subsystem, to which
    /// controllers belong.
    pub in_subsystem: bool,
    /// Serial number; empty: a unique one.
    pub serial: String,
    /// The vendor and the model.
    pub vendor: String,
    /// Model of the disk.
    pub model: String,
    /// Driver of the SCSI host.
    pub driver: String,
    /// Number of 512-byte sectors.
    pub sectors: u64,
    /// True if the cache is on.
    pub wce: bool,
    /// Factory default of the cache.
    pub default: bool,
    /// State of the cache after a power cut, if the disk can save it: PS=1, NVMe saveable.
    pub saved: Option<bool>,
    /// The changeable bit; for virtio CONFIG_WCE.
    pub changeable: bool,
    /// True if the disk has a caching page.
    pub has_page: bool,
    /// NVMe: true if the disk has a volatile write cache.
    pub vwc: bool,
    /// True if the disk declares its cache non-volatile: NV_SUP=1, V_SUP=0.
    pub nonvolatile: bool,
    /// Byte 2 bit 0 of the caching page: true if reads are not cached.
    pub read_cache_disabled: bool,
    /// True if the medium is write-protected (H8).
    pub write_protected: bool,
    /// True if every set succeeds but changes nothing.
    pub ignores_set: bool,
    /// Time from the acknowledgement of a set to its effect.
    pub set_delay: Nanos,
    /// Time that the kernel takes to read the drive again after SET FEATURES.
    pub revalidate_delay: Nanos,
    /// True if the next command after a change ends with unit attention 2A/01.
    pub attention_after_change: bool,
    /// True if writing its present value to `cache_type` fails with EINVAL.
    pub refuses_same_value: bool,
    /// SCT feature control; `None` if the drive lacks it.
    pub sct: Option<WriteCache>,
    /// True if the SCT state is kept over a power cycle.
    pub sct_kept: bool,
    /// The OCP log page C0h.
    pub ocp: Option<PowerLoss>,
    /// SMART: true if the volatile memory backup has failed.
    pub backup_failed: bool,
    /// SMART: number of unsafe shutdowns.
    pub unsafe_shutdowns: u64,
    /// Number of power-ons; `None` if not counted, as by most SCSI disks and all virtio disks.
    pub power_cycles: Option<u64>,
    /// Number of paths registered through persistent reservations.
    pub registrations: u32,
    /// True if this user may not query the drive.
    pub denied: bool,
    /// State that the kernel assumes; [`MockDisk::new`] sets it to match the drive.
    pub kernel: Kernel,
    /// Pending set, with the time of its effect.
    pub(super) pending_set: Option<(Nanos, bool)>,
    /// Time at which the kernel will have read the drive again.
    pub(super) pending_read: Option<Nanos>,
    /// True if a unit attention is pending.
    pub(super) attention: bool,
    /// Number of received flushes.
    pub(super) flushes: u64,
    /// True if the disk was removed.
    pub(super) gone: bool,
    /// Trap that is set when the machine starts.
    pub(super) trap: Option<Trap>,
    /// Number of the device.
    pub(super) number: DeviceNumber,
    /// Directory of the device in /sys.
    pub(super) sysfs: String,
}

impl MockDisk {
    /// Creates an honest disk of this kind with its cache on.
    pub fn new(kind: MockKind) -> Self {
        let (vendor, model, driver) = match kind {
            MockKind::Sas => ("SEAGATE", "ST16000NM004J", "mpt3sas"),
            MockKind::Sata => ("ATA", "MOCK SATA DISK", "ahci"),
            MockKind::Nvme => ("", "MOCK NVME SSD", "nvme"),
            MockKind::Virtio => ("", "", "virtio_blk"),
            MockKind::Usb => ("MOCK", "USB DISK", "usb-storage"),
            MockKind::Raid => ("DELL", "PERC H740P", "megaraid_sas"),
        };
        Self {
            kind,
            name: String::new(),
            controller: String::new(),
            in_subsystem: false,
            serial: String::new(),
            vendor: vendor.to_owned(),
            model: model.to_owned(),
            driver: driver.to_owned(),
            sectors: 1 << 31,
            wce: true,
            default: true,
            saved: None,
            changeable: true,
            has_page: true,
            vwc: true,
            nonvolatile: false,
            write_protected: false,
            ignores_set: false,
            set_delay: Nanos::ZERO,
            revalidate_delay: if kind == MockKind::Sata { Nanos(23_000_000) } else { Nanos::ZERO },
            attention_after_change: false,
            refuses_same_value: false,
            sct: None,
            sct_kept: false,
            ocp: None,
            backup_failed: false,
            read_cache_disabled: false,
            unsafe_shutdowns: 0,
            power_cycles: matches!(kind, MockKind::Sata | MockKind::Nvme).then_some(100),
            registrations: 0,
            denied: false,
            kernel: Kernel::default(),
            pending_set: None,
            pending_read: None,
            attention: false,
            flushes: 0,
            gone: false,
            trap: None,
            number: DeviceNumber { major: 0, minor: 0 },
            sysfs: String::new(),
        }
    }

    /// Turns the cache of the disk off.
    #[must_use]
    pub fn off(mut self) -> Self {
        self.wce = false;
        self
    }

    /// Changes the disk by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Puts the disk in a trap, with its cache on.
    #[must_use]
    pub fn trapped(mut self, trap: Trap) -> Self {
        self.wce = true;
        self.trap = Some(trap);
        self
    }

    /// Returns what [`crate::gateway::Disk::identity`] must be.
    pub fn identity(&self) -> String {
        match self.kind {
            MockKind::Virtio => format!("serial.{}", self.serial),
            MockKind::Nvme => format!("eui.{}", self.hex_name()),
            _ => format!("naa.{}", self.hex_name()),
        }
    }

    /// Returns eight bytes determined by the serial number: FNV-1a, with the NAA of an IEEE registered name.
    pub(super) fn world_wide_name(&self) -> [u8; 8] {
        let hash = self.serial.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash & 0x0fff_ffff_ffff_ffff | 5 << 60).to_be_bytes()
    }

    fn hex_name(&self) -> String {
        self.world_wide_name().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns true if the queue lets flushes through.
    pub(super) fn sends(&self) -> bool {
        self.kernel.cache && !self.kernel.disabled
    }

    /// Returns the state that sd reads from the drive's page; a write-protected disk and one without a page
    /// read as write through.
    pub(super) fn as_read(&self) -> bool {
        match self.kind {
            // The kernel reads only VWC (H7).
            MockKind::Nvme => self.vwc,
            MockKind::Virtio => self.wce,
            _ => self.wce && self.has_page && !self.write_protected,
        }
    }

    /// Gives the drive a new value: at once, later, or never.
    pub(super) fn set(&mut self, now: Nanos, wce: bool) {
        self.attention |= self.attention_after_change;
        let forced = matches!(self.sct, Some(WriteCache::ForcedOn | WriteCache::ForcedOff));
        if self.ignores_set || forced {
            return;
        }
        if self.set_delay == Nanos::ZERO {
            self.wce = wce;
        } else {
            self.pending_set = Some((Nanos(now.0 + self.set_delay.0), wce));
        }
    }

    /// Executes everything that is due by `now`. Returns true if anything was.
    pub(super) fn settle(&mut self, now: Nanos) -> bool {
        let mut changed = false;
        if let Some((at, wce)) = self.pending_set
            && at <= now
        {
            self.wce = wce;
            self.pending_set = None;
            changed = true;
        }
        if self.pending_read.is_some_and(|at| at <= now) {
            self.pending_read = None;
            self.read_again();
            changed = true;
        }
        changed
    }

    /// Lets sd read the drive, unless its view was overridden.
    pub(super) fn read_again(&mut self) {
        if !self.kernel.overridden {
            self.kernel.cache = self.as_read();
        }
    }

    /// Cuts and restores the power.
    pub(super) fn power_cycle(&mut self) {
        self.pending_set = None;
        self.pending_read = None;
        self.attention = false;
        self.power_cycles = self.power_cycles.map(|count| count + 1);
        self.wce = self.saved.unwrap_or(self.default);
        if !self.sct_kept && self.sct.is_some() {
            self.sct = Some(WriteCache::AtaControlled);
        }
        match self.sct {
            Some(WriteCache::ForcedOn) => self.wce = true,
            Some(WriteCache::ForcedOff) => self.wce = false,
            _ => {}
        }
        self.restart_kernel();
    }

    /// Restarts the kernel; the drive is not affected.
    pub(super) fn restart_kernel(&mut self) {
        self.kernel = Kernel { cache: self.as_read(), overridden: false, disabled: false };
    }
}
