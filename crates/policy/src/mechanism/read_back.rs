//! Reading back of the device's and the kernel's state, and comparison with the goal.

use std::fmt;

use plumb_block::Nanos;
use plumb_linux::command::sense;
use plumb_linux::probe::wire::{ata_identify, caching_page, nvme};
use plumb_linux::probe::{PageControl, ProbedDevice, Request};
use plumb_linux::tree::Tree;
use serde::{Deserialize, Serialize};

use super::{Goal, Kind, Material};
use crate::gateway::{Gateway, Query};
use crate::state::{State, on_off};
use crate::wire::{ata, sct};

/// Maximum wait for agreement. libata reads a drive again within 32 ms of a change; slow adapters take
/// longer.
pub(crate) const SETTLE_MAX: Nanos = Nanos(2_000_000_000);
pub(crate) const POLL: Nanos = Nanos(4_000_000);

/// State reported by the device and the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// True if the drive's cache is enabled; null if the drive did not answer.
    pub wce: Option<bool>,
    /// State of the cache after a power cut: the saved value, or for ATA the state forced by SCT.
    pub saved: Option<bool>,
    /// queue/write_cache.
    pub write_cache: Option<String>,
    /// cache_type.
    pub cache_type: Option<String>,
    /// Names of dm devices above that drop flushes.
    pub dropping_above: Vec<String>,
}

/// A difference from the goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// Name of the property.
    pub what: String,
    /// Value that was found.
    pub found: String,
    /// Value that was expected.
    pub expected: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, expected {}", self.what, self.found, self.expected)
    }
}

/// Result of waiting for agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Last state read.
    pub found: ReadBack,
    /// Differences from the goal; empty if it is met.
    pub disagreements: Vec<Disagreement>,
    /// Time waited.
    pub waited: Nanos,
}

/// Reads the state from the device and the kernel.
pub fn read_back(gateway: &dyn Gateway, material: &Material) -> ReadBack {
    let text = |path: &str| gateway.tree().text(path).ok();
    let asked = ReadBackQuery { gateway, material };
    ReadBack {
        wce: asked.wce(),
        saved: asked.saved(),
        write_cache: text(&material.write_cache),
        cache_type: material.cache_type.as_deref().and_then(text),
        dropping_above: dropping(gateway.tree(), material),
    }
}

fn dropping(tree: &dyn Tree, material: &Material) -> Vec<String> {
    let dropping =
        material.above.iter().filter(|above| tree.text(&above.write_cache).as_deref() == Ok("write through"));
    dropping.map(|above| above.disk.name.clone()).collect()
}

struct ReadBackQuery<'a> {
    gateway: &'a dyn Gateway,
    material: &'a Material,
}

impl ReadBackQuery<'_> {
    fn probe(&self, request: Request) -> Option<Vec<u8>> {
        let disk = &self.material.disk;
        self.gateway.probe().ask(ProbedDevice { name: &disk.name, number: disk.number }, request).ok()
    }

    fn wce(&self) -> Option<bool> {
        match self.material.kind {
            Kind::Scsi => {
                let answer = self.probe(Request::CachingPage(PageControl::Current))?;
                caching_page::parse(&answer).map(|page| page.write_cache)
            }
            Kind::Ata => ata_identify::parse(&self.probe(Request::AtaIdentify)?)?.write_cache_enabled,
            Kind::Nvme => {
                nvme::write_cache_enabled(&self.probe(Request::NvmeWriteCache(PageControl::Current))?)
            }
            Kind::Virtio => {
                let says = self.gateway.tree().text(self.material.cache_type.as_deref()?).ok()?;
                match says.as_str() {
                    "write back" => Some(true),
                    "write through" => Some(false),
                    _ => None,
                }
            }
        }
    }

    fn saved(&self) -> Option<bool> {
        if !self.material.saveable {
            return None;
        }
        match self.material.kind {
            Kind::Scsi => {
                let answer = self.probe(Request::CachingPage(PageControl::Saved))?;
                caching_page::parse(&answer).map(|page| page.write_cache)
            }
            Kind::Nvme => {
                nvme::write_cache_enabled(&self.probe(Request::NvmeWriteCache(PageControl::Saved))?)
            }
            Kind::Ata => {
                let query =
                    Query::ScsiSense { cdb: ata::write_log(sct::LOG).to_vec(), data: sct::ask_state() };
                let sensed = self.gateway.ask(&self.material.disk, &query).ok()?;
                match sct::state(sense::ata_status(&sensed)?)? {
                    sct::WriteCache::ForcedOn => Some(true),
                    sct::WriteCache::ForcedOff => Some(false),
                    sct::WriteCache::AtaControlled => None,
                }
            }
            Kind::Virtio => None,
        }
    }
}

/// Returns the differences between `found` and `goal`.
pub fn disagreements(kind: Kind, goal: Goal, found: &ReadBack) -> Vec<Disagreement> {
    let mut list = Vec::new();
    let mut expect = |what: &str, holds: bool, said: String, expected: &str| {
        if !holds {
            list.push(Disagreement { what: what.to_owned(), found: said, expected: expected.to_owned() });
        }
    };
    let word = |value| on_off(value, "no answer");
    let on = goal.state != State::Off;
    expect(
        "the write cache of the device",
        found.wce == Some(on),
        word(found.wce).to_owned(),
        word(Some(on)),
    );
    if goal.saved.is_some() {
        let holds = found.saved == goal.saved;
        expect("what the device starts with", holds, word(found.saved).to_owned(), word(goal.saved));
    }
    let says = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
    if let Some(cache_type) = &found.cache_type {
        let holds = cache_type.starts_with("write back") == on;
        expect("cache_type", holds, cache_type.clone(), if on { "write back" } else { "write through" });
    }
    let queue = found.write_cache.as_deref();
    match goal.state {
        // The kernel never learns that the cache of an NVMe drive is disabled (H7), and sends unnecessary
        // flushes.
        State::Off if kind == Kind::Nvme => {}
        State::Off | State::Protected => {
            expect(
                "queue/write_cache",
                queue == Some("write through"),
                says(&found.write_cache),
                "write through",
            );
        }
        State::On => {
            expect("queue/write_cache", queue == Some("write back"), says(&found.write_cache), "write back");
        }
    }
    if goal.state == State::On {
        for name in &found.dropping_above {
            expect(&format!("queue/write_cache of {name}"), false, "write through".to_owned(), "write back");
        }
    }
    list
}

/// Reads back until device and kernel match `goal`, at most two seconds.
pub fn settle(gateway: &dyn Gateway, material: &Material, goal: Goal) -> Outcome {
    settle_until(gateway, material, |found| {
        let disagreements = disagreements(material.kind, goal, found);
        let enough = if disagreements.is_empty() { Nanos::ZERO } else { SETTLE_MAX };
        (disagreements, enough)
    })
}

/// Reads back while `judge`, which also returns the differences, asks to wait.
pub(crate) fn settle_until(
    gateway: &dyn Gateway,
    material: &Material,
    judge: impl Fn(&ReadBack) -> (Vec<Disagreement>, Nanos),
) -> Outcome {
    let start = gateway.now();
    loop {
        let found = read_back(gateway, material);
        let (disagreements, enough) = judge(&found);
        let waited = gateway.now().since(start);
        if waited >= enough {
            return Outcome { found, disagreements, waited };
        }
        gateway.sleep(POLL);
    }
}
