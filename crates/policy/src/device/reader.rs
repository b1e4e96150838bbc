//! Reader of the machine's disks, with facts that are read once for all of them.

use std::collections::{BTreeSet, HashMap};
use std::thread::ScopedJoinHandle;

use jiff::Timestamp;
use plumb_linux::tree;
use plumb_path::{Finding, Severity};

use super::claims::Claims;
use super::drive::{self, Drive};
use super::identity::{self, Names};
use super::standing::Paths;
use super::target::{NamedObject, UnknownDevice};
use super::{attached_cache, kernel, place, protection, refusal};
use crate::gateway::{Disk, Gateway};
use crate::state::FoundState;
use crate::view::{DeviceView, Holder, KernelSide, PolicyDocument};
use crate::{configurators, many};
use plumb_linux::inventory::{Block, BlockKind, Inventory, InventoryError};

/// Facts about a disk before its holders are known.
struct Look<'b> {
    block: &'b Block,
    names: Names,
    kernel: KernelSide,
    transport: String,
    drive: Drive,
}

/// Reader of views. The inventory and the names of the disks are those at its creation.
pub struct Reader<'a> {
    pub(crate) gateway: &'a dyn Gateway,
    inventory: Inventory,
    pub(crate) claims: &'a Claims,
    /// Current time, for the expiry of claims.
    pub(crate) now: Timestamp,
    names: HashMap<String, Names>,
    twins: HashMap<String, Vec<String>>,
    /// Settings of other programs that change write caches.
    pub(crate) configured: Vec<String>,
}

impl<'a> Reader<'a> {
    /// Creates a reader of the machine behind `gateway`; `now` determines which claims have expired.
    ///
    /// # Errors
    /// [`InventoryError`] if the uses of the disks cannot be determined.
    pub fn new(gateway: &'a dyn Gateway, claims: &'a Claims, now: Timestamp) -> Result<Self, InventoryError> {
        let inventory = Inventory::read(gateway.tree(), gateway.probe())?;
        let mut names = HashMap::new();
        let mut twins: HashMap<String, Vec<String>> = HashMap::new();
        let blocks: Vec<&Block> = inventory.disks().collect();
        let read = many::map(&blocks, |block| identity::read(gateway, block));
        for (block, read) in blocks.into_iter().zip(read) {
            if let Some(identity) = &read.identity {
                twins.entry(identity.clone()).or_default().push(block.name.clone());
            }
            names.insert(block.name.clone(), read);
        }
        twins.retain(|_, names| names.len() > 1);
        let configured = configurators::find(gateway.tree());
        Ok(Self { gateway, inventory, claims, now, names, twins, configured })
    }

    fn names(&self, block: &Block) -> Names {
        self.names.get(&block.name).cloned().unwrap_or_else(|| identity::read(self.gateway, block))
    }

    /// Returns the identifier of this boot; empty if the kernel does not report it.
    pub fn boot_id(&self) -> String {
        tree::boot_id(self.gateway.tree()).unwrap_or_default()
    }

    /// Returns the inventory of stacked devices.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Returns the disk called `name` for [`Gateway::carry_out`]; `None` if there is no such device or it has
    /// no identity.
    pub fn disk(&self, name: &str) -> Option<Disk> {
        let block = self.inventory.get(name)?;
        let identity = self.names(block).identity?;
        Some(Disk { name: block.name.clone(), number: block.number, identity })
    }

    /// Returns the disk with this identity, whatever its present name.
    pub fn find(&self, identity: &str) -> Option<Disk> {
        self.inventory
            .disks()
            .find_map(|block| self.disk(&block.name).filter(|disk| disk.identity == identity))
    }

    /// Finds the disk with this identity; fast if it still has the name `name`.
    pub(crate) fn find_named(&self, name: &str, identity: &str) -> Option<Disk> {
        let still = self.disk(name).filter(|disk| disk.identity == identity);
        still.or_else(|| self.find(identity))
    }

    /// Returns the disks that share the write cache of the disk called `name`: other namespaces of an NVMe
    /// controller.
    pub fn siblings(&self, name: &str) -> Vec<DeviceView> {
        let names = super::siblings(self.gateway.tree(), name);
        names.iter().filter_map(|name| self.one(name).ok()).collect()
    }

    /// Returns a reader, and the document of [`all`](Self::all) disks; the survey runs in parallel to the
    /// first reads.
    ///
    /// # Errors
    /// Fails as [`Self::new`] does.
    pub(crate) fn with_all(
        gateway: &'a dyn Gateway,
        claims: &'a Claims,
        now: Timestamp,
    ) -> Result<(Self, PolicyDocument), InventoryError> {
        std::thread::scope(|scope| {
            let survey = scope.spawn(|| Paths::surveyed(gateway));
            let reader = Self::new(gateway, claims, now)?;
            let document = reader.beside(survey);
            Ok((reader, document))
        })
    }

    /// Reads all disks, ordered by name. Several threads work independently: one surveys the holders, the
    /// others query the drives.
    pub fn all(&self) -> PolicyDocument {
        std::thread::scope(|scope| self.beside(scope.spawn(|| Paths::surveyed(self.gateway))))
    }

    fn beside(&self, survey: ScopedJoinHandle<'_, Paths>) -> PolicyDocument {
        let blocks: Vec<&Block> = self.inventory.disks().collect();
        let looks = many::map(&blocks, |block| self.look(block));
        let mut paths = survey.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked));
        paths.complete(self.gateway, blocks.into_iter());
        let devices = many::map(&looks, |look| self.view(look, &paths));
        self.document(paths.kernel.clone(), devices)
    }

    /// Returns the document for targets named by the user: kernel names, nodes of /dev, or paths on file
    /// systems.
    ///
    /// # Errors
    /// [`UnknownDevice`] for the first unknown target.
    pub fn named(&self, targets: &[String]) -> Result<PolicyDocument, UnknownDevice> {
        let devices = targets.iter().map(|target| self.one(target)).collect::<Result<_, _>>()?;
        Ok(self.document(None, devices))
    }

    /// Returns the view of a target named by the user.
    ///
    /// # Errors
    /// [`UnknownDevice`].
    pub fn one(&self, target: &str) -> Result<DeviceView, UnknownDevice> {
        match super::target::resolve(self.gateway.tree(), &self.inventory, target)? {
            NamedObject::Block(block) => {
                // In this order, since opening some devices makes the kernel read them again, and /sys must
                // be read first.
                let look = self.look(block);
                Ok(self.view(&look, &Paths::survey(self.gateway, &self.inventory, block)))
            }
            NamedObject::Path(view) => Ok(*view),
        }
    }

    /// Returns the number of power-ons of the disk of `view`; `None` if it is not counted or reported.
    /// Queried separately and only when needed, since a sleeping ATA drive may wake up for it.
    pub fn power_cycles(&self, view: &DeviceView) -> Option<u64> {
        let counted = view.health.iter().find(|counter| counter.name == "power_cycles");
        counted.map(|counter| counter.value).or_else(|| {
            let speaks_ata = view.device.mechanism == "ata-identify";
            let block = self.inventory.get(&view.name).filter(|_| speaks_ata)?;
            drive::ata_power_cycles(self.gateway, block)
        })
    }

    fn document(&self, kernel: Option<String>, devices: Vec<DeviceView>) -> PolicyDocument {
        let release = || self.gateway.tree().text("/proc/sys/kernel/osrelease").ok();
        PolicyDocument { schema: PolicyDocument::SCHEMA.to_owned(), kernel: kernel.or_else(release), devices }
    }

    /// Reads what the disk and the kernel report about the disk, without its holders.
    fn look<'b>(&self, block: &'b Block) -> Look<'b> {
        let tree = self.gateway.tree();
        let names = self.names(block);
        // /sys before the drive, since opening some devices makes the kernel read them again.
        let kernel = kernel::read(tree, block);
        let transport = place::transport(tree, block);
        let drive = drive::ask(self.gateway, block, &names, &transport);
        Look { block, names, kernel, transport, drive }
    }

    fn view(&self, look: &Look<'_>, paths: &Paths) -> DeviceView {
        let Look { block, names, kernel, drive, .. } = look;
        let mut transport = look.transport.clone();
        let mut findings = paths.findings(&block.name);
        if findings.iter().any(|finding| finding.id == "raid-controller-hides-members") {
            "raid".clone_into(&mut transport);
        }
        findings.extend(self.own_findings(block, drive, names));
        let mut view = DeviceView {
            name: block.name.clone(),
            identity: names.identity.clone(),
            transport,
            vendor: names.vendor.clone(),
            model: names.model.clone(),
            serial: names.serial.clone(),
            size: block.sectors.map(|sectors| sectors.saturating_mul(512)),
            rotational: drive.rotational,
            state: state(block, drive, kernel.write_cache.as_deref()),
            device: drive.side.clone(),
            kernel: kernel.clone(),
            holders: self.holders(block, paths),
            port: place::port(self.gateway.tree(), block),
            redundancy_groups: self.redundancy_groups(block),
            protection: protection::claim(drive, names, self.claims, self.now),
            health: drive.health.clone(),
            findings,
            changeable_by: String::new(),
            refusal: None,
        };
        self.judge(&mut view, block, drive);
        if let Some(cache) = attached_cache::find(self.gateway, block) {
            attached_cache::describe(&mut view, &cache, paths, &self.disks_below(block, paths));
        }
        view
    }

    /// Returns the disks below the cache behind `block`.
    fn disks_below(&self, block: &Block, paths: &Paths) -> Vec<attached_cache::Disk> {
        let below: BTreeSet<&str> = paths.below(&block.name).into_iter().collect();
        let blocks = below.into_iter().filter_map(|name| self.inventory.get(name));
        let disks = blocks.filter(|below| below.kind == BlockKind::Disk);
        let disk = |below: &Block| attached_cache::Disk {
            name: below.name.clone(),
            is_changeable: self.one(&below.name).is_ok_and(|view| view.refusal.is_none()),
        };
        disks.map(disk).collect()
    }

    /// Determines whether the disk can be changed, and by whom.
    fn judge(&self, view: &mut DeviceView, block: &Block, drive: &Drive) {
        let driver = place::host_driver(self.gateway.tree(), block);
        let twins: Vec<String> = view
            .identity
            .as_ref()
            .and_then(|identity| self.twins.get(identity))
            .map_or_else(Vec::new, |names| {
                names.iter().filter(|name| **name != block.name).cloned().collect()
            });
        let case = refusal::Case {
            tree: self.gateway.tree(),
            inventory: &self.inventory,
            block,
            drive,
            view,
            twins: &twins,
            driver: driver.as_deref(),
        };
        let refused = refusal::find(&case);
        view.changeable_by = match &refused {
            None => "plumb as root".to_owned(),
            Some(_) if drive.denied => "plumb as root with all rights, as far as can be seen here".to_owned(),
            Some(_) if view.transport == "raid" => {
                format!("the RAID controller's own tool ({})", refusal::tool_of(driver.as_deref()))
            }
            Some(_) if view.transport == "virtio" => "the host of this virtual machine".to_owned(),
            Some(refused) => format!("nobody with plumb: {}", refused.reason),
        };
        view.refusal = refused;
    }

    fn holders(&self, block: &Block, paths: &Paths) -> Vec<Holder> {
        let mut holders = on(block);
        for above in self.inventory.above(&block.name) {
            holders.push(Holder {
                name: above.name.clone(),
                kind: kind(above, paths),
                write_cache: identity::text(self.gateway.tree(), &kernel::write_cache(above)),
            });
            holders.extend(on(above));
        }
        holders
    }

    /// Returns the groups above `block` that may lose two members to one mistake: md arrays and dm devices
    /// over several members, dm RAID, btrfs over several devices, and pools of ZFS.
    fn redundancy_groups(&self, block: &Block) -> Vec<String> {
        let tree = self.gateway.tree();
        let mut groups: Vec<String> = Vec::new();
        let mut stack = self.inventory.above(&block.name);
        stack.push(block);
        for member in stack {
            let mapped = member.kind == BlockKind::DeviceMapper;
            let raid = mapped
                && tree
                    .text(&format!("{}/dm/uuid", member.sysfs))
                    .is_ok_and(|uuid| uuid.starts_with("DMRAID-"));
            if member.kind == BlockKind::Md || raid || (mapped && member.below.len() > 1) {
                groups.push(member.name.clone());
            }
            for (point, _) in member.mounts.iter().filter(|(_, kind)| kind == "btrfs") {
                groups.push(format!("btrfs {point}"));
            }
            // The kernel does not report the pool, so all possible members form one group.
            if is_zfs(tree, member) && !groups.iter().any(|group| group == "zfs") {
                groups.push("zfs".to_owned());
            }
        }
        groups
    }

    /// Returns findings in addition to the survey's.
    fn own_findings(&self, block: &Block, drive: &Drive, names: &Names) -> Vec<Finding> {
        let mut found = Vec::new();
        let tree = self.gateway.tree();
        let mut stack = self.inventory.above(&block.name);
        stack.push(block);
        if stack.iter().any(|member| is_zfs(tree, member)) {
            found.push(Finding {
                id: "h10-zfs-remembers".to_owned(),
                severity: Severity::Info,
                sentence: format!(
                    "{} looks like a member of a ZFS pool, which remembers from when it was opened whether there is a write cache.",
                    block.name
                ),
                evidence: vec![format!("the partition of {} is called zfs (uevent, PARTNAME)", block.name)],
                remedy: "After a change, `zpool reopen POOL`: a disk that had no cache when ZFS opened it may get no flushes."
                    .to_owned(),
            });
        }
        if drive.backup_failed || drive.capacitor_health == Some(0) {
            found.push(Finding {
                id: "protection-failed".to_owned(),
                severity: Severity::Danger,
                sentence: format!(
                    "{} reports that what protects its cache from a power cut has failed.",
                    block.name
                ),
                evidence: drive
                    .health
                    .iter()
                    .map(|c| format!("{}: {} ({})", c.name, c.value, c.source))
                    .collect(),
                remedy: "Replace the drive; until then send it flushes (state `on`) or switch its cache off."
                    .to_owned(),
            });
        }
        found.extend(self.expired(block, names));
        found.extend(self.configurators());
        found
    }

    /// Reports other programs that set write caches here.
    fn configurators(&self) -> Option<Finding> {
        let mut programs: Vec<&str> =
            self.configured.iter().filter_map(|line| line.split(':').next()).collect();
        programs.dedup();
        (!programs.is_empty()).then(|| Finding {
            id: "other-configurator".to_owned(),
            severity: Severity::Info,
            sentence: format!(
                "Write caches are set by {} too: what it sets at boot, at resume or when a disk appears undoes a policy.",
                programs.join(", ")
            ),
            evidence: self.configured.clone(),
            remedy: "Remove the setting from the named file, or make it match the policy.".to_owned(),
        })
    }

    fn expired(&self, block: &Block, names: &Names) -> Option<Finding> {
        let claim = self.claims.about(names.identity.as_deref()?).filter(|claim| claim.until <= self.now)?;
        Some(Finding {
            id: "claim-expired".to_owned(),
            severity: Severity::Warning,
            sentence: format!("The claim by {} that {} is protected has expired.", claim.who, block.name),
            evidence: vec![format!(
                "{}: until {} ({})",
                plumb_state::places::CLAIMS,
                claim.until,
                claim.reason
            )],
            remedy: "Have it confirmed and record it again, or plan a state other than `protected`."
                .to_owned(),
        })
    }
}

fn is_zfs(tree: &dyn plumb_linux::tree::Tree, member: &Block) -> bool {
    let uevent = || tree.text(&format!("{}/uevent", member.sysfs)).unwrap_or_default();
    member.kind == BlockKind::Partition && uevent().lines().any(|line| line.starts_with("PARTNAME=zfs"))
}

/// Returns the direct uses of a device, without another device in between.
fn on(block: &Block) -> Vec<Holder> {
    // A mount in another namespace has no mount point here.
    let name = |point: &String, kind: &String| if point.is_empty() { kind.clone() } else { point.clone() };
    let mounts = block.mounts.iter().map(|(point, kind)| (name(point, kind), kind.clone()));
    let swap = block.swap.then(|| (format!("swap on {}", block.name), "swap".to_owned()));
    mounts.chain(swap).map(|(name, kind)| Holder { name, kind, write_cache: None }).collect()
}

/// Returns the survey's name for the kind, `dm-crypt`, or else the inventory's.
fn kind(block: &Block, paths: &Paths) -> String {
    let surveyed = paths.kind(&block.name).and_then(|kind| serde_json::to_value(kind).ok());
    if let Some(serde_json::Value::String(kind)) = surveyed {
        return kind;
    }
    match block.kind {
        BlockKind::Partition => "partition",
        BlockKind::DeviceMapper => "dm-other",
        BlockKind::Md => "md",
        BlockKind::Bcache => "bcache",
        BlockKind::Loop => "loop",
        _ => "disk",
    }
    .to_owned()
}

/// Returns the state, from the device and the kernel together.
fn state(block: &Block, drive: &Drive, write_cache: Option<&str>) -> FoundState {
    if block.kind != BlockKind::Disk {
        return FoundState::None;
    }
    match (drive.side.wce, write_cache) {
        (Some(false), _) => FoundState::Off,
        (Some(true), Some("write through")) => FoundState::Protected,
        (Some(true), Some("write back")) => FoundState::On,
        _ => FoundState::Unknown,
    }
}
