//! Virtual machines on this host, and the write path of each of their disks, which begins at the hypervisor's
//! process.
//!
//! The hypervisor's command line determines the cache presented to the guest and the fate of its flushes on
//! the host. For QEMU this is based on its code; for others on their documentation, which the evidence
//! states.
//!
//! Limitations: not found are disks added later through a monitor or an API, disks in a configuration file of
//! QEMU (`-readconfig`), disks of vhost-user, and an image given without an option. With `-snapshot` QEMU
//! keeps no writes of a guest, so no disk is shown.

mod command_line;
mod disk;
mod others;
mod qemu;

use plumb_linux::tree::Tree;
use plumb_linux::tree::process::numbers;

use self::disk::{Caching, GuestDisk};
use super::assemble::page_cache;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node, Untorn};
use crate::model::{LayerKind, WritePath};
use crate::rules;

/// Function that reads a file named on a hypervisor's command line.
type ReadFile<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A hypervisor that runs one process for each machine.
struct Hypervisor {
    name: &'static str,
    /// Prefix of the hypervisor's program name.
    program: &'static str,
    disks: fn(&[String], ReadFile<'_>) -> Vec<GuestDisk>,
    /// Extracts the name of the machine from the command line.
    machine: fn(&[String]) -> Option<String>,
    /// True if the behaviour is known only from the hypervisor's documentation.
    is_declared: bool,
}

const HYPERVISORS: [Hypervisor; 6] = [
    Hypervisor { program: "qemu-system-", ..QEMU },
    Hypervisor { program: "qemu-kvm", ..QEMU },
    Hypervisor { program: KVM, ..QEMU },
    Hypervisor {
        name: "Firecracker",
        program: "firecracker",
        disks: others::firecracker,
        machine: others::firecracker_id,
        is_declared: true,
    },
    Hypervisor {
        name: "Cloud Hypervisor",
        program: "cloud-hypervisor",
        disks: others::cloud_hypervisor,
        machine: |_| None,
        is_declared: true,
    },
    Hypervisor {
        name: "crosvm",
        program: "crosvm",
        disks: others::crosvm,
        machine: |_| None,
        is_declared: true,
    },
];

/// Name of QEMU on Debian and Proxmox VE, too short for a prefix.
const KVM: &str = "kvm";

const QEMU: Hypervisor =
    Hypervisor { name: "QEMU", program: "", disks: qemu::disks, machine: qemu::machine, is_declared: false };

impl Hypervisor {
    /// Returns true if `program` is the hypervisor's program name.
    fn is_run_by(&self, program: &str) -> bool {
        program.starts_with(self.program) && (self.program != KVM || program == KVM)
    }
}

impl Surveyor<'_> {
    /// Returns the path of each disk of each virtual machine whose process this user may inspect.
    pub(super) fn guests(&mut self) -> Vec<WritePath> {
        let mut paths = Vec::new();
        for process in numbers(self.tree, "/proc") {
            let Ok(line) = self.tree.read(&format!("/proc/{process}/cmdline")) else { continue };
            let words: Vec<String> = line
                .split(|byte| *byte == 0)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .filter(|word| !word.is_empty())
                .collect();
            let program = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
            let known = HYPERVISORS.iter().find(|hypervisor| hypervisor.is_run_by(program));
            let Some(hypervisor) = known else { continue };
            let tree = self.tree;
            let file = |path: &str| tree.text(&seen_by(tree, process, path)).ok();
            let machine = (hypervisor.machine)(&words).unwrap_or_else(|| format!("process {process}"));
            for disk in (hypervisor.disks)(&words, &file) {
                paths.push(self.guest_disk(hypervisor, process, &machine, &disk));
            }
        }
        paths
    }

    fn guest_disk(
        &mut self,
        hypervisor: &Hypervisor,
        process: u32,
        machine: &str,
        disk: &GuestDisk,
    ) -> WritePath {
        let target = format!("{machine}, disk {}: {}", disk.name, disk.image);
        let mut node = Node::new(LayerKind::VirtualMachine, format!("{} for {machine}", hypervisor.name));
        node.identity.clone_from(&disk.serial);
        node.untorn =
            Untorn::unknown("whether the hypervisor writes a page of its guest in one piece is not known");
        let declared = if hypervisor.is_declared { ", by its documentation" } else { "" };
        let Caching { is_direct, drops_flushes, flushes_writes } = disk.caching;
        let source = format!("/proc/{process}/cmdline");
        let writes = match (is_direct, flushes_writes) {
            (_, true) => "each write of the guest is flushed before it is acknowledged",
            (true, false) => "writes of the guest go past this host's page cache",
            (false, false) => "writes of the guest are acknowledged from this host's page cache",
        };
        node.saw(&source, &disk.options, format!("{writes}{declared}"));
        if drops_flushes {
            let why = "the hypervisor sends no flush of the guest on";
            node.saw(&source, &disk.options, format!("{why}{declared}"));
            node.mark(Mark::SendsNoFlush { why: why.to_owned() });
        }
        if flushes_writes {
            node.mark(Mark::FlushesWrites);
        }
        let image = seen_by(self.tree, process, &disk.image);
        match self.find(&image) {
            Ok(top) => {
                let above = match is_direct {
                    true => Vec::new(),
                    false => vec![page_cache(&top.node)],
                };
                node.below = vec![above.first().map_or(top.node.clone(), |cache| cache.name.clone())];
                let nodes = self.nodes_under([vec![node], above].concat(), &top.node);
                rules::judge(&target, &nodes)
            }
            Err(error) => {
                node.mark(Mark::Unseen { what: format!("the image {}: {error}", disk.image) });
                rules::judge(&target, &[node])
            }
        }
    }
}

/// Returns a path by which this process reaches the file that another one calls `path`: unchanged in the same
/// mount namespace, else through the other process's root, or its working directory for a relative path.
fn seen_by(tree: &dyn Tree, process: u32, path: &str) -> String {
    let namespace = |process: &str| tree.link(&format!("/proc/{process}/ns/mnt")).ok();
    match path.starts_with('/') {
        false => format!("/proc/{process}/cwd/{path}"),
        true if namespace(&process.to_string()) == namespace("self") => path.to_owned(),
        true => format!("/proc/{process}/root{path}"),
    }
}
