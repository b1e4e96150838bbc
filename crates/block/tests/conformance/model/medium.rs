//! The blocks of the model: what is visible, and the versions that a power cut chooses from.

use std::collections::BTreeMap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::bug::Bug;
use crate::conformance::crash_rules::{History, Moment, Version};
use crate::info::ExtentState;
use crate::units::Bytes;

/// Content of a version, and its queue.
#[derive(Debug, Clone)]
pub(super) struct StoredVersion {
    pub(super) bytes: Vec<u8>,
    pub(super) queue: u64,
    pub(super) is_discard: bool,
}

/// One logical block.
struct Block {
    history: History<StoredVersion>,
    visible: Vec<u8>,
    is_readable: bool,
    state: ExtentState,
}

/// All blocks. Blocks never written are holes of zeroes.
pub(super) struct Medium {
    blocks: BTreeMap<u64, Block>,
    logical_block: usize,
    bug: Option<Bug>,
}

/// Effect of a version when its request completes.
pub(super) struct Effect {
    /// Moment of submission, which identifies the version.
    pub(super) submitted: Moment,
    /// Moment of completion; `None` for an abandoned version, which lands without completing.
    pub(super) completed: Option<Moment>,
    /// True if it is durable by itself.
    pub(super) is_durable: bool,
    /// True if reads see it; a discard may leave the block as it was.
    pub(super) is_visible: bool,
    /// State of the block once the version has landed.
    pub(super) state: ExtentState,
}

impl Medium {
    pub(super) fn new(logical_block: Bytes, bug: Option<Bug>) -> Self {
        Self { blocks: BTreeMap::new(), logical_block: logical_block.0 as usize, bug }
    }

    fn block(&mut self, lba: u64) -> &mut Block {
        let length = self.logical_block;
        self.blocks.entry(lba).or_insert_with(|| {
            let zeroes = vec![0; length];
            Block {
                history: History::starting_with(StoredVersion {
                    bytes: zeroes.clone(),
                    queue: u64::MAX,
                    is_discard: false,
                }),
                visible: zeroes,
                is_readable: true,
                state: ExtentState::Hole,
            }
        })
    }

    /// Records that a request has reached the device: from now on it may land.
    pub(super) fn begin(&mut self, lba: u64, version: Version<StoredVersion>) {
        self.block(lba).history.versions.push(version);
    }

    /// Applies a version.
    pub(super) fn land(&mut self, lba: u64, effect: &Effect) {
        let block = self.block(lba);
        let found = block.history.versions.iter_mut().find(|version| version.submitted == effect.submitted);
        let Some(version) = found else { return };
        version.completed = effect.completed;
        version.is_durable |= effect.is_durable;
        if effect.is_visible {
            block.visible.clone_from(&version.content.bytes);
            block.is_readable = true;
        }
        block.state = effect.state;
    }

    /// Removes a version that was refused and never takes effect.
    pub(super) fn withdraw(&mut self, lba: u64, submitted: Moment) {
        self.block(lba).history.versions.retain(|version| version.submitted != submitted);
    }

    /// Reads a block as `queue` sees it; `None` if it is unreadable.
    pub(super) fn read(&mut self, lba: u64, queue: u64) -> Option<Vec<u8>> {
        let stale = self.bug == Some(Bug::StaleReadAcrossQueues);
        let block = self.block(lba);
        if stale {
            let mut known = block.history.versions.iter().rev();
            let known = known.find(|version| {
                version.completed.is_some() && (version.is_durable || version.content.queue == queue)
            });
            return known.map(|version| version.content.bytes.clone());
        }
        block.is_readable.then(|| block.visible.clone())
    }

    pub(super) fn state(&mut self, lba: u64) -> ExtentState {
        self.block(lba).state
    }

    /// Records that a flush submitted at `submitted` through `queue` has completed.
    pub(super) fn flushed(&mut self, submitted: Moment, queue: u64) {
        for block in self.blocks.values_mut() {
            if self.bug == Some(Bug::FlushCoversOwnQueueOnly) {
                for version in &mut block.history.versions {
                    let mine = version.content.queue == queue;
                    version.is_durable |= mine && version.completed.is_some_and(|done| done < submitted);
                }
            } else {
                block.history.flushed(submitted);
            }
        }
    }

    /// Cuts the power at `cut`: each block becomes one of its survivors, which replaces its history.
    pub(super) fn lose_power(&mut self, cut: Moment, random: &mut Xoshiro256PlusPlus) {
        let bug = self.bug;
        for block in self.blocks.values_mut() {
            let survivors = block.history.survivors(cut);
            let versions = &block.history.versions;
            let mut choice = survivors.versions;
            match bug {
                Some(Bug::OlderOverDurable) => choice = (0..versions.len()).collect(),
                Some(Bug::DiscardOverNewerDurable) => {
                    let done = |index: &usize| versions[*index].completed.is_some();
                    choice.extend(
                        (0..versions.len()).filter(|index| versions[*index].content.is_discard).filter(done),
                    );
                }
                _ => {}
            }
            let chosen = choice[(random.next_u64() % choice.len() as u64) as usize];
            let mut bytes = versions[chosen].content.bytes.clone();
            if bug == Some(Bug::TearInsideBlock) && choice.len() > 1 {
                let other = choice[(random.next_u64() % choice.len() as u64) as usize];
                let half = bytes.len() / 2;
                bytes[half..].copy_from_slice(&versions[other].content.bytes[half..]);
            }
            block.is_readable = !(survivors.may_be_unreadable && random.next_u64().is_multiple_of(4));
            block.visible.clone_from(&bytes);
            block.history =
                History::starting_with(StoredVersion { bytes, queue: u64::MAX, is_discard: false });
        }
    }
}
