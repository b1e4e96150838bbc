//! State of a survey: facts that are read once and used by all layers.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use plumb_linux::probe::{Probe, ProbedDevice, Refusal, Reply, Request};
use plumb_linux::tree::mountinfo::Mount;
use plumb_linux::tree::{DeviceNumber, Tree};

use super::guest::Guest;
use super::mounts::{Elsewhere, Mounts};
use crate::facts::{Mark, Node};
use crate::model::Survey;

/// Maximum depth, larger than that of any working stack of devices; prevents a hostile recording from
/// exhausting the stack.
const DEPTH_MAX: usize = 100;

/// A survey in progress. Every node is built once, even if several paths share it.
pub(super) struct Surveyor<'a> {
    pub(super) tree: &'a dyn Tree,
    pub(super) probe: &'a dyn Probe,
    pub(super) nodes: BTreeMap<String, Node>,
    /// Mount of each file system, by node name.
    pub(super) systems: BTreeMap<String, Mount>,
    /// Survey of the host's virtual machines, if this machine is one of them and a survey was given.
    pub(super) host: Option<&'a Survey>,
    /// Nodes under construction: a chain that leads back to one of them is a cycle.
    pub(super) building: BTreeSet<String>,
    mounts: OnceCell<Mounts>,
    elsewhere: OnceCell<Elsewhere>,
    guest: OnceCell<Guest>,
    kernel_log: OnceCell<Reply>,
}

impl<'a> Surveyor<'a> {
    pub(super) fn new(tree: &'a dyn Tree, probe: &'a dyn Probe) -> Self {
        Self {
            tree,
            probe,
            nodes: BTreeMap::new(),
            systems: BTreeMap::new(),
            host: None,
            building: BTreeSet::new(),
            mounts: OnceCell::new(),
            elsewhere: OnceCell::new(),
            guest: OnceCell::new(),
            kernel_log: OnceCell::new(),
        }
    }

    /// Returns the mount table, read once.
    pub(super) fn mounts(&self) -> &Mounts {
        self.mounts.get_or_init(|| Mounts::read(self.tree))
    }

    /// Returns the mounts of other mount namespaces, read once.
    pub(super) fn elsewhere(&self) -> &Elsewhere {
        self.elsewhere.get_or_init(|| Elsewhere::read(self.tree))
    }

    /// Returns the hypervisor that this machine runs on, detected once.
    pub(super) fn guest(&self) -> &Guest {
        self.guest.get_or_init(|| Guest::detect(self.tree))
    }

    /// Returns true if the user is root: the effective user in /proc/self/status.
    fn is_root(&self) -> bool {
        let status = self.tree.text("/proc/self/status").unwrap_or_default();
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        users.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
    }

    /// Returns the kernel log's messages about flushes, read once.
    pub(super) fn kernel_log(&self) -> &Reply {
        self.kernel_log.get_or_init(|| {
            let machine = ProbedDevice { name: "kernel", number: DeviceNumber { major: 0, minor: 0 } };
            self.probe.ask(machine, Request::KernelLog)
        })
    }

    /// Queries a drive. A refusal that root would not get is recorded in the node.
    pub(super) fn ask(&self, node: &mut Node, number: DeviceNumber, request: Request, what: &str) -> Reply {
        let name = node.name.clone();
        let reply = self.probe.ask(ProbedDevice { name: &name, number }, request);
        match reply {
            Err(Refusal::Denied) => node.mark(self.refused(format!("{name}: {what}"))),
            Err(refusal) if refusal != Refusal::NotRecorded && !refusal.is_unsupported_by_device() => {
                node.saw(format!("{what} of {name}"), refusal.to_string(), "the question was not answered");
            }
            _ => {}
        }
        reply
    }

    /// Returns the mark for a query that the kernel refuses to this user.
    pub(super) fn refused(&self, question: String) -> Mark {
        match self.is_root() {
            true => Mark::RefusedToRoot { question },
            false => Mark::NeedsRoot { question },
        }
    }

    /// Builds the node called `name` with `build`, unless it exists already or leads back to itself.
    pub(super) fn ensure(&mut self, name: &str, build: impl FnOnce(&mut Self) -> Node) {
        if self.nodes.contains_key(name) || self.building.len() >= DEPTH_MAX {
            return;
        }
        if !self.building.insert(name.to_owned()) {
            return;
        }
        let node = build(self);
        self.building.remove(name);
        self.nodes.insert(name.to_owned(), node);
    }
}
