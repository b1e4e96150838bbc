//! Cache of the machine's answers, for a plan, which reflects one moment and changes nothing.
//!
//! The survey, the reading of a disk and the creation of its steps query the same files and drive pages. With
//! a thousand real disks every saved command matters, and a plan is consistent if all three see the same
//! answers.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock};

use plumb_block::Nanos;
use plumb_linux::probe::{Probe, ProbedDevice, Reply, Request};
use plumb_linux::tree::{Answer, DeviceNumber, Stat, Tree};

use crate::gateway::{Change, Disk, Gateway, GatewayError, Query};

/// Cached answers.
struct AnswerCache<K, A>(RwLock<HashMap<K, A>>);

impl<K: Eq + Hash, A: Clone> AnswerCache<K, A> {
    fn new() -> Self {
        Self(RwLock::new(HashMap::new()))
    }

    /// Returns the cached answer, or queries it. The lock is not held during the query, which may cause
    /// further queries and be slow. If two threads query concurrently, both get the first answer.
    fn get<Q>(&self, key: &Q, ask: impl FnOnce() -> A) -> A
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return known.clone();
        }
        let answer = ask();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(key.to_owned()).or_insert(answer).clone()
    }
}

/// The machine with cached answers.
pub(super) struct Once<'a> {
    machine: &'a dyn Gateway,
    files: AnswerCache<String, Answer<Vec<u8>>>,
    lists: AnswerCache<String, Answer<Vec<String>>>,
    links: AnswerCache<String, Answer<String>>,
    stats: AnswerCache<String, Answer<Stat>>,
    canonical: AnswerCache<String, Answer<String>>,
    replies: AnswerCache<(DeviceNumber, Request), Reply>,
}

impl<'a> Once<'a> {
    pub(super) fn new(machine: &'a dyn Gateway) -> Self {
        Self {
            machine,
            files: AnswerCache::new(),
            lists: AnswerCache::new(),
            links: AnswerCache::new(),
            stats: AnswerCache::new(),
            canonical: AnswerCache::new(),
            replies: AnswerCache::new(),
        }
    }
}

impl Tree for Once<'_> {
    fn read(&self, path: &str) -> Answer<Vec<u8>> {
        self.files.get(path, || self.machine.tree().read(path))
    }

    fn list(&self, path: &str) -> Answer<Vec<String>> {
        self.lists.get(path, || self.machine.tree().list(path))
    }

    fn link(&self, path: &str) -> Answer<String> {
        self.links.get(path, || self.machine.tree().link(path))
    }

    fn stat(&self, path: &str) -> Answer<Stat> {
        self.stats.get(path, || self.machine.tree().stat(path))
    }

    fn canonical(&self, path: &str) -> Answer<String> {
        self.canonical.get(path, || self.machine.tree().canonical(path))
    }
}

impl Probe for Once<'_> {
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply {
        self.replies.get(&(device.number, request), || self.machine.probe().ask(device, request))
    }
}

impl Gateway for Once<'_> {
    fn tree(&self) -> &dyn Tree {
        self
    }

    fn probe(&self) -> &dyn Probe {
        self
    }

    fn ask(&self, disk: &Disk, query: &Query) -> Result<Vec<u8>, GatewayError> {
        self.machine.ask(disk, query)
    }

    /// Refuses changes: a plan makes none, and cached answers would be wrong afterwards.
    fn carry_out(&self, disk: &Disk, _: &Change) -> Result<(), GatewayError> {
        Err(GatewayError::Os {
            step: format!("planning for {}", disk.name),
            errno: plumb_block::Errno::EPERM,
        })
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }

    fn sleep(&self, time: Nanos) {
        self.machine.sleep(time);
    }
}
