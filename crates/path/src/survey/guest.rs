//! Detection of virtual machines and their hypervisor.

use plumb_linux::tree::Tree;

use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, Evidence, LayerKind};

/// Name of the layer for an unknown hypervisor.
const NAMELESS: &str = "hypervisor";

/// Hypervisor of this machine, if it is a guest.
#[derive(Debug, Clone, Default)]
pub(super) struct Guest {
    /// Name of the hypervisor; `None` if the machine is not a guest.
    pub(super) name: Option<String>,
    evidence: Vec<Evidence>,
}

/// Words in DMI strings with the hypervisor that each implies, the most specific first.
const DMI_WORDS: [(&str, &str); 13] = [
    ("Amazon EC2", "Amazon EC2 Nitro"),
    ("Google Compute Engine", "Google Compute Engine/KVM"),
    ("Alibaba Cloud", "Alibaba Cloud/KVM"),
    ("DigitalOcean", "DigitalOcean/KVM"),
    ("Hetzner", "Hetzner QEMU/KVM"),
    ("OpenStack", "OpenStack"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("Parallels", "Parallels"),
    ("Xen", "Xen"),
    ("Virtual Machine", "Hyper-V"),
    ("QEMU", "QEMU"),
];

impl Guest {
    /// Detects the hypervisor from the processor's flags, /sys/hypervisor, DMI, clock sources and ACPI.
    pub(super) fn detect(tree: &dyn Tree) -> Self {
        let mut guest = Self::default();
        let flag = tree.text("/proc/cpuinfo").ok().and_then(|text| flag(&text));
        if flag == Some(true) {
            guest.saw("/proc/cpuinfo", "flags: hypervisor", "the processor is virtual");
        }
        let xen = tree.text("/sys/hypervisor/type").is_ok_and(|text| text == "xen");
        if xen && tree.text("/proc/xen/capabilities").is_ok_and(|text| text.contains("control_d")) {
            // dom0 has a virtual processor but real disks.
            return Self::default();
        }
        let (dmi, dmi_there) = guest.dmi(tree);
        let device_tree = tree.read("/proc/device-tree/hypervisor/compatible").is_ok();
        // Bare-metal instances have the cloud's name, but not the flag; processors other than x86 have no
        // such flag.
        let dmi_counts = dmi.is_some_and(|name| name == "QEMU" || (flag.is_none() && !guest.is_metal()));
        if flag != Some(true) && !xen && !device_tree && !dmi_counts {
            return Self::default();
        }
        let clock = guest.clock(tree);
        let firecracker = !dmi_there && guest.is_from_firecracker(tree);
        guest.name = Some(match (dmi, clock) {
            _ if firecracker => "Firecracker/KVM".to_owned(),
            (Some("QEMU"), Some("KVM")) => "QEMU/KVM".to_owned(),
            (Some(name), _) => name.to_owned(),
            (None, Some(name)) => name.to_owned(),
            (None, None) if xen => "Xen".to_owned(),
            (None, None) => NAMELESS.to_owned(),
        });
        guest
    }

    pub(super) fn is_firecracker(&self) -> bool {
        self.name.as_deref().is_some_and(|name| name.starts_with("Firecracker"))
    }

    fn saw(&mut self, source: &str, value: &str, means: &str) {
        let (source, value, means) = (source.to_owned(), value.to_owned(), means.to_owned());
        self.evidence.push(Evidence { source, value, means });
    }

    /// Returns the hypervisor named by DMI, and whether DMI exists at all.
    fn dmi(&mut self, tree: &dyn Tree) -> (Option<&'static str>, bool) {
        let read = |name: &str| tree.text(&format!("/sys/class/dmi/id/{name}")).ok();
        let strings: Vec<String> =
            ["sys_vendor", "product_name", "bios_vendor"].into_iter().filter_map(read).collect();
        let all = strings.join(", ");
        let found = DMI_WORDS.iter().find(|(word, _)| all.contains(word)).map(|(_, name)| *name);
        if found.is_some() {
            self.saw("/sys/class/dmi/id/{sys_vendor,product_name,bios_vendor}", &all, "the machine's maker");
        }
        (found, !strings.is_empty())
    }

    /// Returns true if DMI names a bare-metal instance of Amazon EC2: `m7g.metal`.
    fn is_metal(&self) -> bool {
        self.evidence.iter().any(|evidence| evidence.value.contains(".metal"))
    }

    /// Returns the hypervisor whose paravirtual clock is available: arch/x86/kernel/kvmclock.c,
    /// drivers/clocksource/hyperv_timer.c, arch/x86/xen/time.c.
    fn clock(&mut self, tree: &dyn Tree) -> Option<&'static str> {
        let file = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        let clocks = tree.text(file).ok()?;
        let known = [("kvm-clock", "KVM"), ("hyperv_clocksource", "Hyper-V"), ("xen", "Xen")];
        let (_, name) = known.into_iter().find(|(clock, _)| clocks.contains(clock))?;
        self.saw(file, &clocks, &format!("clocks that {name} offers"));
        Some(name)
    }

    /// Returns true for Firecracker, which has no DMI but ACPI tables with the OEM ID `FIRECK` (bytes 10-15
    /// of the header, ACPI 6.5 5.2.6). Only root may read them; otherwise the kernel's name is a hint.
    fn is_from_firecracker(&mut self, tree: &dyn Tree) -> bool {
        let table = "/sys/firmware/acpi/tables/FACP";
        if tree.read(table).is_ok_and(|table| table.get(10..16) == Some(b"FIRECK")) {
            self.saw(table, "OEM ID FIRECK", "the tables of Firecracker");
            return true;
        }
        let file = "/proc/sys/kernel/osrelease";
        let release = tree.text(file).unwrap_or_default();
        let hint = release.contains("firecracker") || release.split(['-', '.']).any(|part| part == "fc");
        if hint {
            self.saw(file, &release, "a kernel built for Firecracker, by its name");
        }
        hint
    }
}

/// Returns true if the processor's flags include `hypervisor` (CPUID 1, ECX bit 31); `None` for processors
/// without such flags.
fn flag(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

impl Surveyor<'_> {
    /// Returns the layer of the hypervisor, below every disk that it provides.
    pub(super) fn hypervisor(&mut self) -> String {
        let guest = self.guest().clone();
        let known = guest.name.as_deref().filter(|name| *name != NAMELESS).map(str::to_owned);
        let name = known.as_ref().map_or_else(|| NAMELESS.to_owned(), |name| format!("hypervisor {name}"));
        self.ensure(&name, |_| {
            let mut node = Node::new(LayerKind::Hypervisor, name.clone());
            node.cache = Cache::Unknown;
            node.evidence = guest.evidence;
            node.mark(Mark::Guest { name: known.unwrap_or_else(|| "of an unknown make".to_owned()) });
            node
        });
        name
    }
}

#[cfg(test)]
mod tests {
    use plumb_linux::tree::RecordedTree;

    use super::*;

    fn name(files: &[(&str, &str)]) -> Option<String> {
        let mut tree = RecordedTree::new();
        for (path, text) in files {
            tree.put_text(path, text);
        }
        Guest::detect(&tree).name
    }

    const FLAGS: (&str, &str) = ("/proc/cpuinfo", "processor: 0\nflags\t\t: fpu hypervisor lm\n");
    const KVM: (&str, &str) =
        ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock \n");

    #[test]
    fn hypervisors_are_told_by_what_they_leave() {
        assert_eq!(name(&[]), None);
        assert_eq!(name(&[("/proc/cpuinfo", "flags : fpu\n")]), None);
        assert_eq!(name(&[FLAGS]).as_deref(), Some("hypervisor"));
        assert_eq!(name(&[FLAGS, KVM]).as_deref(), Some("KVM"));
        assert_eq!(
            name(&[FLAGS, KVM, ("/sys/class/dmi/id/sys_vendor", "QEMU")]).as_deref(),
            Some("QEMU/KVM")
        );
        assert_eq!(name(&[FLAGS, ("/sys/class/dmi/id/sys_vendor", "QEMU")]).as_deref(), Some("QEMU"));
        assert_eq!(
            name(&[FLAGS, ("/sys/class/dmi/id/sys_vendor", "VMware, Inc.")]).as_deref(),
            Some("VMware")
        );
        assert_eq!(
            name(&[FLAGS, KVM, ("/proc/sys/kernel/osrelease", "6.1.1-fc-v9")]).as_deref(),
            Some("Firecracker/KVM")
        );
        let signed = ("/sys/firmware/acpi/tables/FACP", "FACPllllrcFIRECKFCMVFADT");
        assert_eq!(name(&[FLAGS, KVM, signed]).as_deref(), Some("Firecracker/KVM"));
    }

    #[test]
    fn metal_and_dom0_are_no_guests() {
        let metal = ("/proc/cpuinfo", "flags : fpu\n");
        assert_eq!(name(&[metal, ("/sys/class/dmi/id/sys_vendor", "Amazon EC2")]), None);
        let arm =
            [("/sys/class/dmi/id/sys_vendor", "Amazon EC2"), ("/sys/class/dmi/id/product_name", "m7g.metal")];
        assert_eq!(name(&arm), None);
        assert_eq!(name(&arm[..1]).as_deref(), Some("Amazon EC2 Nitro"));
        let dom0 = [FLAGS, ("/sys/hypervisor/type", "xen"), ("/proc/xen/capabilities", "control_d\n")];
        assert_eq!(name(&dom0), None);
        assert_eq!(name(&[FLAGS, ("/sys/hypervisor/type", "xen")]).as_deref(), Some("Xen"));
    }
}
