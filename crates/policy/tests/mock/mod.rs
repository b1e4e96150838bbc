//! A machine of mock disks: a [`Gateway`] for tests of this crate and of others (cargo feature `mock`).
//!
//! Modelled: each [`MockDisk`] has a drive (its cache, the states that it saves, refuses or only pretends to
//! set) and the kernel's view of it, as a tree of /sys and answers to probes. Changes affect both as in Linux
//! 6.12: `cache_type` sets and reads again (or, "temporary", only changes the view), a raw MODE SELECT leaves
//! the kernel's view stale, libata reads again 23 ms after SET FEATURES, `queue/write_cache` is a flag of the
//! kernel alone that survives everything else, dm copies the state below when its table is loaded. Time is
//! virtual: only [`Gateway::sleep`] advances it.
//!
//! Not modelled: data. Flushes are counted, and [`MockGateway::flush_arrives`] tells whether a flush from the
//! top of a stack would arrive, but nothing is written or lost.

mod answer;
mod change;
mod disk;
pub mod encode;
mod files;
mod layout;
mod machine;
mod stack;
pub mod udev;

use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use plumb_block::Nanos;
use plumb_linux::probe::{Probe, ProbedDevice, Reply, Request};
use plumb_linux::tree::{Answer, Stat, Tree};

use crate::gateway::{Change, Disk, Gateway, GatewayError, Query};
use machine::Machine;

pub use disk::{Kernel, MockDisk, MockKind, Trap};

/// Function called before each change with its number, counted from 0, the disk and the change.
pub type Watcher = Box<dyn FnMut(usize, &Disk, &Change) + Send>;

/// Point at which a run is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// Kill before the change with this number, counted from 0, is executed.
    Before(usize),
    /// Kill after the change was executed, before the call returns.
    After(usize),
}

/// Payload of the unwinding that [`Kill`] causes, for `catch_unwind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KillPayload(pub Kill);

/// A machine of mock disks.
pub struct MockGateway {
    machine: Arc<RwLock<Machine>>,
    tree: MockTree,
    probe: MockProbe,
    control: Mutex<Control>,
}

#[derive(Default)]
struct Control {
    log: Vec<(Disk, Change)>,
    kill: Option<Kill>,
    fail: Option<(usize, GatewayError)>,
    watcher: Option<Watcher>,
}

/// Takes a lock that a killed run may have left.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns exclusive access to the machine.
fn alone(machine: &RwLock<Machine>) -> RwLockWriteGuard<'_, Machine> {
    machine.write().unwrap_or_else(PoisonError::into_inner)
}

impl MockGateway {
    /// Creates a machine with these disks.
    pub fn new(disks: impl IntoIterator<Item = MockDisk>) -> Self {
        let machine = Arc::new(RwLock::new(Machine::new(disks)));
        Self {
            tree: MockTree(Arc::clone(&machine)),
            probe: MockProbe(Arc::clone(&machine)),
            machine,
            control: Mutex::default(),
        }
    }

    /// Returns all executed changes in order, including those that failed in the device.
    pub fn log(&self) -> Vec<(Disk, Change)> {
        locked(&self.control).log.clone()
    }

    /// Returns the number of changes so far, which is the number of the next one.
    pub fn changes(&self) -> usize {
        locked(&self.control).log.len()
    }

    /// Unwinds with [`KillPayload`] at this change, once, which leaves the state of a SIGKILL.
    pub fn kill(&self, kill: Kill) {
        locked(&self.control).kill = Some(kill);
    }

    /// Lets the change with this number, counted from 0, fail with `error` and without effect, once.
    pub fn fail_at(&self, number: usize, error: GatewayError) {
        locked(&self.control).fail = Some((number, error));
    }

    /// Calls `watcher` before each change; it may use this gateway's other methods through an `Arc`.
    pub fn before_change(&self, watcher: impl FnMut(usize, &Disk, &Change) + Send + 'static) {
        locked(&self.control).watcher = Some(Box::new(watcher));
    }

    /// Returns the present state of the disk called `name`, with the kernel's view of it.
    pub fn disk(&self, name: &str) -> Option<MockDisk> {
        let mut machine = alone(&self.machine);
        machine.settle();
        machine.disk(name).cloned()
    }

    /// Changes a disk without notice, as another program, a firmware or a person would.
    pub fn meddle(&self, name: &str, change: impl FnOnce(&mut MockDisk)) {
        alone(&self.machine).meddle(name, change);
    }

    /// Removes the disk.
    pub fn vanish(&self, name: &str) {
        alone(&self.machine).vanish(name);
    }

    /// Adds a disk.
    pub fn appear(&self, disk: MockDisk) {
        alone(&self.machine).add(disk);
    }

    /// Adds a controller for the NVMe namespace called `name`, which is in a subsystem.
    pub fn nvme_path(&self, name: &str, controller: &str) {
        alone(&self.machine).nvme_path(name, controller);
    }

    /// Adds a dm device called `name` over `below`, with this uuid. It copies the present state below (trap
    /// H4 if a cache is switched on later).
    pub fn device_mapper(&self, name: &str, uuid: &str, below: &[&str]) {
        alone(&self.machine).device_mapper(name, uuid, below);
    }

    /// Adds an idle md array of this level over `below`.
    pub fn md(&self, name: &str, level: &str, below: &[&str]) {
        alone(&self.machine).md(name, level, below);
    }

    /// Sets the action of the array: `idle`, `resync`, `check`.
    pub fn md_action(&self, name: &str, action: &str) {
        alone(&self.machine).md_action(name, action);
    }

    /// Adds a partition called `name` of a disk, with the name `label` in its table.
    pub fn partition(&self, disk: &str, name: &str, label: &str) {
        alone(&self.machine).partition(disk, name, label);
    }

    /// Adds a block device that is not a disk: `loop0`, `zram0`.
    pub fn pseudo(&self, name: &str) {
        alone(&self.machine).pseudo(name);
    }

    /// Adds the write-back cache `name` of plumb, in this mode, attached as the loop device `device`, with
    /// these disks as its log and its backing device.
    pub fn cache(&self, device: &str, name: &str, mode: &str, log_and_backing: [&str; 2]) {
        alone(&self.machine).cache(device, name, mode, log_and_backing);
    }

    /// Adds a loop device over a file of the file system on `disk`.
    pub fn loop_over(&self, device: &str, file: &str, disk: &str) {
        alone(&self.machine).loop_over(device, file, disk);
    }

    /// Mounts a file system without a block device of this machine: `nfs4` of `server:/export`.
    pub fn mount_elsewhere(&self, point: &str, kind: &str, source: &str) {
        alone(&self.machine).mount_elsewhere(point, kind, source);
    }

    /// Sets the text of a file of /sys or /proc.
    pub fn put_text(&self, path: &str, text: &str) {
        alone(&self.machine).tree.put_text(path, text);
    }

    /// Makes a file or directory of /sys or /proc unreadable.
    pub fn deny(&self, path: &str) {
        alone(&self.machine).tree.deny(path);
    }

    /// Mounts a file system of this type on the device called `name`, with these options.
    pub fn mount(&self, name: &str, point: &str, kind: &str, options: &str) {
        alone(&self.machine).mount(name, point, kind, options);
    }

    /// Returns the number of flushes that the drive has received.
    pub fn flushes(&self, name: &str) -> u64 {
        alone(&self.machine).disk(name).map_or(0, |disk| disk.flushes)
    }

    /// Returns true if a flush from the device called `name` arrives at every drive below it whose cache is
    /// on.
    pub fn flush_arrives(&self, name: &str) -> bool {
        alone(&self.machine).flush_arrives(name)
    }

    /// Cuts and restores the power: drives start with their saved state or their default, and the kernel
    /// starts anew. Stacks are set up again over the new state.
    pub fn power_cycle(&self) {
        alone(&self.machine).power_cycle();
    }

    /// Restarts the kernel without a power cut: drives keep their states.
    pub fn reboot(&self) {
        alone(&self.machine).reboot();
    }
}

impl Gateway for MockGateway {
    fn tree(&self) -> &dyn Tree {
        &self.tree
    }

    fn probe(&self) -> &dyn Probe {
        &self.probe
    }

    fn ask(&self, disk: &Disk, query: &Query) -> Result<Vec<u8>, GatewayError> {
        alone(&self.machine).query(disk, query)
    }

    fn carry_out(&self, disk: &Disk, change: &Change) -> Result<(), GatewayError> {
        let number = self.changes();
        let watcher = locked(&self.control).watcher.take();
        if let Some(mut watcher) = watcher {
            watcher(number, disk, change);
            locked(&self.control).watcher.get_or_insert(watcher);
        }
        self.kill_if(Kill::Before(number));
        let failure = locked(&self.control).fail.take_if(|(at, _)| *at == number);
        if let Some((_, error)) = failure {
            return Err(error);
        }
        let outcome = alone(&self.machine).carry_out(disk, change);
        if !matches!(outcome, Err(GatewayError::Gone { .. } | GatewayError::OtherDisk { .. })) {
            locked(&self.control).log.push((disk.clone(), change.clone()));
        }
        self.kill_if(Kill::After(number));
        outcome
    }

    fn now(&self) -> Nanos {
        alone(&self.machine).now()
    }

    fn sleep(&self, time: Nanos) {
        alone(&self.machine).sleep(time);
    }
}

impl MockGateway {
    fn kill_if(&self, here: Kill) {
        let killed = locked(&self.control).kill.take_if(|kill| *kill == here);
        if let Some(kill) = killed {
            // Without the message of a panic, since the kill is intended.
            panic::resume_unwind(Box::new(KillPayload(kill)));
        }
    }
}

struct MockTree(Arc<RwLock<Machine>>);

impl MockTree {
    fn ask<A>(&self, question: impl FnOnce(&dyn Tree) -> A) -> A {
        let machine = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if machine.is_settled() {
            return question(machine.tree());
        }
        drop(machine);
        let mut machine = alone(&self.0);
        machine.settle();
        question(machine.tree())
    }
}

impl Tree for MockTree {
    fn read(&self, path: &str) -> Answer<Vec<u8>> {
        self.ask(|tree| tree.read(path))
    }

    fn list(&self, path: &str) -> Answer<Vec<String>> {
        self.ask(|tree| tree.list(path))
    }

    fn link(&self, path: &str) -> Answer<String> {
        self.ask(|tree| tree.link(path))
    }

    fn stat(&self, path: &str) -> Answer<Stat> {
        self.ask(|tree| tree.stat(path))
    }

    fn canonical(&self, path: &str) -> Answer<String> {
        self.ask(|tree| tree.canonical(path))
    }
}

struct MockProbe(Arc<RwLock<Machine>>);

impl Probe for MockProbe {
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply {
        alone(&self.0).probe(device, request)
    }
}
