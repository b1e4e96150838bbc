//! Root file system of the guest: busybox, the tools that build stacks, modules, and the scenarios as shell
//! scripts.
//!
//! ```text
//! /init /bin/busybox             the first process, and every small command
//! /sbin/* /lib/* /lib64/*        tools of this machine, with their libraries
//! /sbin/plumb                    the plumb under test, if there is one
//! /modules/NAME.ko               unpacked kernel modules
//! /lab/{library,scenario}.sh     functions; the frame of every scenario
//! /lab/{order,modules,drives}    lists: the scenarios, the modules at boot, the drives to wait for
//! /lab/scsi_{disks,modules}       how many SCSI disks to wait for, and their driver
//! /lab/scenarios/NAME/*          setup, after, target, syncs, drives, modules, program
//! /lab/policy.sh /lib/udev/*     for scenarios that check by themselves: their functions, and udev
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::cpio::Archive;
use super::disk::Bus;
use super::lab::Lab;
use super::libraries::add_program;
use super::modules::module_name;
use super::policy;
use crate::packages::{self, Program, find};

/// Programs that build the stacks: names in the guest, and the Debian packages that provide them.
const TOOLS: &str = "cryptsetup=cryptsetup-bin dmsetup fsck.ext4=e2fsprogs fsck.f2fs=f2fs-tools lvm=lvm2 make-bcache=bcache-tools mdadm \
    mkfs.btrfs=btrfs-progs mkfs.ext4=e2fsprogs mkfs.f2fs=f2fs-tools mkfs.xfs=xfsprogs nbd-client nvme=nvme-cli sdparm";
/// Programs that make and run guests.
const MACHINE: &str = "qemu-system-x86_64=qemu-system-x86 setpriv=util-linux busybox=busybox-static depmod=kmod xz=xz-utils zstd tar \
    ldd=libc-bin apt-cache=apt dpkg-deb=dpkg";

/// Other names of lvm.
const LVM_NAMES: &[&str] = &["pvcreate", "vgcreate", "vgchange", "lvcreate"];

/// No udev runs in the guest, so lvm creates the device files itself and uses no daemon.
const LVM_CONF: &str = "\
devices { dir = \"/dev\" scan = [\"/dev\"] obtain_device_list_from_udev = 0 external_device_info_source = \"none\" \
use_devicesfile = 0 }
activation { udev_sync = 0 udev_rules = 0 monitoring = 0 }
global { use_lvmpolld = 0 thin_check_executable = \"\" thin_repair_executable = \"\" }
";

/// Time limit of a scenario inside the guest, when it runs in parallel with all other tests.
pub(crate) const SCENARIO_SECONDS: u64 = 1800;

/// Returns the programs needed on this machine to make guests.
pub(crate) fn programs() -> Vec<Program> {
    [MACHINE, TOOLS, policy::TOOLS].into_iter().flat_map(packages::programs).collect()
}

/// Composes the root of a laboratory and writes it to `file`.
///
/// # Errors
/// If a part of it cannot be read, or the file cannot be written.
pub(crate) fn write(lab: &Lab, file: &Path) -> Result<()> {
    let archive = Archive::new()?;
    archive.file("init", include_str!("script/init.sh"))?;
    archive.file("lab/library.sh", include_str!("script/library.sh"))?;
    archive.file("lab/scenario.sh", include_str!("script/scenario.sh"))?;
    archive.file("lab/timeout", SCENARIO_SECONDS.to_string())?;
    if lab.scenarios.iter().any(|scenario| scenario.has_program()) {
        policy::add(&archive)?;
    }
    archive.file("etc/lvm/lvm.conf", LVM_CONF)?;
    if lab.interactive {
        archive.file("lab/shell", "")?;
    }
    add_tools(&archive, lab)?;
    add_scenarios(&archive, lab)?;
    lab.root.map_or(Ok(()), |root| archive.overlay(root))?;
    archive.write_to(file)
}

fn add_tools(archive: &Archive, lab: &Lab) -> Result<()> {
    let mut libraries = BTreeSet::new();
    let busybox = find("busybox").context("busybox has gone")?;
    archive.copy("bin/busybox", &busybox)?;
    for tool in packages::programs(TOOLS) {
        let program = find(tool.name).with_context(|| format!("{} has gone", tool.name))?;
        add_program(archive, &program, tool.name, &mut libraries)?;
    }
    for name in LVM_NAMES {
        archive.symlink(&format!("sbin/{name}"), "lvm")?;
    }
    if let Some(plumb) = lab.plumb {
        add_program(archive, plumb, "plumb", &mut libraries)?;
    }
    Ok(())
}

fn add_scenarios(archive: &Archive, lab: &Lab) -> Result<()> {
    let mut at_boot = vec!["virtio_pci", "virtio_console"];
    let disks = lab.disks();
    at_boot.extend(disks.iter().flat_map(|disk| disk.bus.modules()));
    add_modules(archive, lab, "lab/modules", &at_boot)?;
    // SCSI disks get their driver later, see name_scsi_disks.
    let scsi_disks = disks.iter().filter(|disk| disk.bus.is_scsi()).count();
    archive.file("lab/scsi_disks", scsi_disks.to_string())?;
    add_modules(archive, lab, "lab/scsi_modules", if scsi_disks > 0 { &["sd_mod"] } else { &[] })?;

    let mut drives = String::new();
    for (position, disk) in disks.iter().enumerate().filter(|(_, disk)| disk.bus != Bus::NbdClient) {
        let nth = disks[..=position].iter().filter(|other| other.serial() == disk.serial()).count();
        writeln!(drives, "{} {} {nth}", disk.name, disk.serial())?;
    }
    archive.file("lab/drives", drives)?;

    let mut order = String::new();
    for scenario in &lab.scenarios {
        writeln!(order, "{}", scenario.name)?;
        let home = format!("lab/scenarios/{}", scenario.name);
        let names: Vec<&str> = scenario.disks.iter().map(|disk| &*disk.name).collect();
        archive.file(&format!("{home}/setup"), &*scenario.setup)?;
        archive.file(&format!("{home}/target"), &*scenario.target)?;
        archive.file(&format!("{home}/syncs"), scenario.syncs.to_string())?;
        archive.file(&format!("{home}/drives"), names.join("\n") + "\n")?;
        if scenario.has_program() {
            archive.file(&format!("{home}/program"), &*scenario.program)?;
        }
        if !scenario.after.is_empty() {
            archive.file(&format!("{home}/after"), format!(". /lab/library.sh\n{}", scenario.after))?;
        }
        add_modules(archive, lab, &format!("{home}/modules"), &scenario.modules)?;
    }
    archive.file("lab/order", order)?;
    Ok(())
}

/// Adds modules with their dependencies, and the list of their files in the order of insertion. A module may
/// be followed by its parameters.
fn add_modules(archive: &Archive, lab: &Lab, list: &str, wanted: &[impl AsRef<str>]) -> Result<()> {
    let wanted: Vec<(&str, &str)> =
        wanted.iter().map(AsRef::as_ref).map(|text| text.split_once(' ').unwrap_or((text, ""))).collect();
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    let mut text = String::new();
    for file in lab.modules.files_for(&names)? {
        let name = module_name(&file).with_context(|| format!("{} has no name", file.display()))?;
        let path = format!("modules/{name}.ko");
        archive.copy(&path, &file)?;
        let of_this = wanted.iter().find(|(wanted, _)| *wanted == name);
        writeln!(text, "/{path} {}", of_this.map_or("", |(_, parameters)| parameters))?;
    }
    archive.file(list, text)?;
    Ok(())
}
