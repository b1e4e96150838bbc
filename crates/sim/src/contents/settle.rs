//! How a command becomes durable: it displaces what is older, and reaches the medium once nothing that remains over its
//! blocks could come before it.

use plumb_block::LbaRange;

use super::drive_side::Contents;
use super::medium::Part;
use super::window::Pending;
use crate::rules::planted::{Bug, planted};

/// A version of some blocks of a page.
struct Version {
    /// 0: by its range.
    node: u32,
    pending: Pending,
    mask: u8,
    /// The blocks of it that go to the medium now.
    stored: u8,
}

impl Contents {
    /// A command at risk is durable from now on.
    pub(super) fn make_durable(&mut self, number: u32) {
        self.window.take_from_risk(number);
        self.be_durable(number);
    }

    /// A command that is not counted among those at risk is durable from now on.
    #[inline]
    pub(super) fn be_durable(&mut self, number: u32) {
        let pending = &mut self.window.pendings[number];
        pending.state.is_durable = true;
        let (state, range) = (pending.state, pending.range);
        if state.is_wide {
            self.window.stuck.push(number);
            return self.settle_stuck();
        }
        for page in self.geometry.pages(range) {
            self.settle(page);
        }
    }

    /// Brings to the medium what of a page can be.
    #[inline]
    pub(super) fn settle(&mut self, page: u64) {
        let Some((head, spot)) = self.window.heads.find(page) else { return };
        let node = self.window.nodes[head];
        if node.next != 0 || !self.window.wide.is_empty() {
            return self.settle_crowded(page, head);
        }
        let pending = &mut self.window.pendings[node.pending];
        if !pending.state.is_durable {
            return;
        }
        pending.live -= 1;
        let is_last = pending.live == 0;
        let what = pending.what.shifted(self.geometry.first_block(page).wrapping_sub(pending.range.lba.0));
        self.window.heads.take(spot);
        self.window.nodes.discard(head);
        self.medium.store(page, Part { what, slot: node.slot, mask: node.mask, gives_slot: true });
        if is_last {
            self.window.forget(node.pending);
        }
    }

    /// The same, where several commands meet.
    fn settle_crowded(&mut self, page: u64, head: u32) {
        let mut versions = self.versions(page, head);
        for block in 0..self.geometry.blocks_per_page() as usize {
            displace(&mut versions, 1 << block);
            retire(&mut versions, 1 << block);
        }
        if planted(Bug::PersistDropsInFlight) && versions.iter().any(|one| one.stored != 0) {
            let in_flight = versions.iter_mut().filter(|one| !one.pending.span.is_completed());
            in_flight.for_each(|one| one.mask = 0);
        }
        self.window.heads.set(page, 0);
        let mut next = 0;
        for version in versions.into_iter().rev().filter(|version| version.node != 0) {
            self.store(page, &version);
            if version.mask == 0 {
                self.drop_node(version.node);
                continue;
            }
            let node = &mut self.window.nodes[version.node];
            node.mask = version.mask;
            node.next = next;
            next = version.node;
        }
        self.window.heads.set(page, next);
    }

    /// All that is over a page and not on the medium.
    fn versions(&self, page: u64, head: u32) -> Vec<Version> {
        let chain = self.window.chain(head).map(|(number, node)| {
            let pending = self.window.pendings[node.pending];
            Version { node: number, pending, mask: node.mask, stored: 0 }
        });
        let range: LbaRange = self.geometry.page_range(page);
        let wide = self.window.wide.over(range).map(|number| {
            let pending = self.window.pendings[number];
            Version { node: 0, pending, mask: self.geometry.mask(page, pending.range), stored: 0 }
        });
        let wide = wide.filter(|version| !version.pending.state.is_idle);
        chain.chain(wide).collect()
    }

    fn store(&mut self, page: u64, version: &Version) {
        if version.stored == 0 {
            return;
        }
        let node = self.window.nodes[version.node];
        let gives_slot = version.mask == 0 && node.slot != 0;
        let what = self.what_in(&version.pending, page);
        self.medium.store(page, Part { what, slot: node.slot, mask: version.stored, gives_slot });
        if gives_slot {
            self.window.nodes[version.node].slot = 0;
        }
    }

    /// Takes a node away that is in no chain any more, and its command if it was the last.
    pub(super) fn drop_node(&mut self, number: u32) {
        let Some(node) = self.window.nodes.remove(number) else { return };
        self.medium.slots.give_back(node.slot);
        let pending = &mut self.window.pendings[node.pending];
        pending.live -= 1;
        if pending.live == 0 && !pending.state.is_wide {
            self.window.forget(node.pending);
        }
    }
}

/// Of one block: what is older than something durable is gone for good.
fn displace(versions: &mut [Version], bit: u8) {
    if planted(Bug::OlderOverDurable) {
        return;
    }
    for index in 0..versions.len() {
        let span = versions[index].pending.span;
        let has_displacer = versions.iter().any(|newer| {
            newer.mask & bit != 0 && newer.pending.state.is_durable && span.is_older_than(newer.pending.span)
        });
        if has_displacer && versions[index].node != 0 {
            versions[index].mask &= !bit;
        }
    }
}

/// Of one block: durable versions leave once all others are newer; the one that landed last is on the medium then.
fn retire(versions: &mut [Version], bit: u8) {
    let here = |version: &Version| version.mask & bit != 0;
    let is_durable =
        |version: &Version| here(version) && version.node != 0 && version.pending.state.is_durable;
    let answered = versions.iter().filter(|one| is_durable(one)).map(|one| one.pending.span.completed).max();
    let Some(last) = answered else { return };
    let all_newer = versions
        .iter()
        .filter(|one| here(one) && !is_durable(one))
        .all(|one| one.pending.span.submitted > last);
    let forgets = planted(Bug::DurableForgottenEarly)
        || planted(Bug::DiscardOverNewer)
        || planted(Bug::OlderOverDurable);
    if !all_newer && !forgets {
        return;
    }
    let durable = (0..versions.len()).filter(|index| is_durable(&versions[*index]));
    let landed = |index: &usize| versions[*index].pending.landed;
    let winner =
        if planted(Bug::PersistOverNewer) { durable.min_by_key(landed) } else { durable.max_by_key(landed) };
    if let Some(winner) = winner {
        versions[winner].stored |= bit;
    }
    for version in versions.iter_mut().filter(|one| is_durable(one)) {
        version.mask &= !bit;
    }
}
