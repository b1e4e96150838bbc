//! How a discard of a long run becomes durable: in O(what was written there), as one extent.

use super::drive_side::Contents;
use super::window::{Node, Pending};
use crate::rules::planted::{Bug, planted};

impl Contents {
    /// Brings the durable wide commands to the medium that nothing holds back any more.
    pub(super) fn settle_stuck(&mut self) {
        while let Some(place) = self.window.stuck.iter().position(|number| !self.is_held_back(*number)) {
            let number = self.window.stuck.swap_remove(place);
            self.settle_wide(number);
        }
    }

    /// Whether another wide command is over it that may have to come before it.
    fn is_held_back(&self, number: u32) -> bool {
        let one = self.window.pendings[number];
        let mut others = self.window.wide.over(one.range).filter(|other| *other != number);
        others.any(|other| {
            let other = &self.window.pendings[other];
            !other.state.is_idle && comes_first(other, &one)
        })
    }

    fn settle_wide(&mut self, number: u32) {
        let pending = self.window.pendings[number];
        self.window.wide.remove(pending.range, number);
        let crowded = self.window.heads.within(self.geometry.pages(pending.range));
        self.medium.store_run(pending.range, pending.what, &crowded);
        // Where others are, it goes on as one of them, page by page.
        for page in &crowded {
            let mask = self.geometry.mask(*page, pending.range);
            self.window.link(*page, Node { next: 0, pending: number, slot: 0, mask });
        }
        let one = &mut self.window.pendings[number];
        one.state.is_wide = false;
        one.live = crowded.len() as u32;
        if crowded.is_empty() {
            return self.window.forget(number);
        }
        for page in crowded {
            self.settle(page);
        }
    }

    /// Takes a command out as if it had never been there.
    pub(super) fn withdraw(&mut self, number: u32) {
        let Some(pending) = self.window.pendings.get(number).copied() else { return };
        if pending.state.is_wide {
            self.window.wide.remove(pending.range, number);
            self.window.forget(number);
            for page in self.window.heads.within(self.geometry.pages(pending.range)) {
                self.settle(page);
            }
            return self.settle_stuck();
        }
        if pending.live == 0 {
            return self.window.forget(number);
        }
        for page in self.geometry.pages(pending.range) {
            self.unlink(page, number);
            self.settle(page);
        }
    }

    /// Takes the node of a command out of a page's chain.
    pub(super) fn unlink(&mut self, page: u64, pending: u32) {
        let head = self.window.heads.get(page);
        let mut before = 0;
        let found = self.window.chain(head).find(|(number, node)| {
            let is_it = node.pending == pending;
            if !is_it {
                before = *number;
            }
            is_it
        });
        let Some((number, next)) = found.map(|(number, node)| (number, node.next)) else { return };
        if before == 0 {
            self.window.heads.set(page, next);
        } else {
            self.window.nodes[before].next = next;
        }
        self.drop_node(number);
    }
}

/// Whether `other` may have to be on the medium before `one`, which is durable, gets there.
fn comes_first(other: &Pending, one: &Pending) -> bool {
    if planted(Bug::DiscardOverNewer) || one.span.is_older_than(other.span) {
        return false;
    }
    let lands_above = other.state.is_durable && other.landed > one.landed;
    !lands_above
}
