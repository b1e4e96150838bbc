//! The commands that may still change what is on the medium: in flight, answered and at risk, lost track of, and the
//! durable ones that something older could still be laid over.
//!
//! ```text
//!   heads: page ───────► Node ──next──► Node ...      one node: the blocks of one command in this page
//!                         │              │
//!                         ▼              ▼
//!                       Pending        Pending        one command
//! ```

use std::collections::VecDeque;

use plumb_block::LbaRange;

use super::ids::Ids;
use super::medium::What;
use super::slab::Slab;
use super::table::Table;
use super::wide::Wide;
use crate::command::CommandId;
use crate::rules::{Moment, Span};

/// What kind of command it is, and what has become of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    /// By its range in [`Wide`], with no nodes.
    pub(super) is_wide: bool,
    /// It is durable, and stays only for what is older or was in flight with it.
    pub(super) is_durable: bool,
    /// The host asked for FUA.
    pub(super) asked_fua: bool,
    /// FUA is done.
    pub(super) is_fua: bool,
    /// A write of data: it may be atomic.
    pub(super) is_write: bool,
    /// A discard.
    pub(super) is_discard: bool,
    /// A discard that does nothing.
    pub(super) is_idle: bool,
    /// It failed or was not answered.
    pub(super) is_given_up: bool,
    /// It was destaged before it was answered.
    pub(super) was_destaged: bool,
}

/// One command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) id: CommandId,
    pub(super) range: LbaRange,
    /// For the first block of the range.
    pub(super) what: What,
    pub(super) span: Span,
    /// When its blocks took the place of what was there: somewhere in its span. Of two that were in flight together the
    /// one that landed later is visible.
    pub(super) landed: Moment,
    /// How many nodes it has.
    pub(super) live: u32,
    pub(super) state: State,
}

impl Pending {
    /// Whether a cut may take it.
    pub(super) const fn is_at_risk(&self) -> bool {
        self.span.is_completed() && !self.state.is_durable
    }
}

/// The part of a command in one page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// The next one of the page; 0 for none.
    pub(super) next: u32,
    pub(super) pending: u32,
    /// The bytes; 0 if they are none.
    pub(super) slot: u32,
    /// The blocks that something newer and durable has not displaced.
    pub(super) mask: u8,
}

/// A flush in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlightFlush {
    pub(super) id: CommandId,
    pub(super) submitted: Moment,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) pendings: Slab<Pending>,
    pub(super) nodes: Slab<Node>,
    /// By page: the newest of the parts of commands that touch it and may still change.
    pub(super) heads: Table,
    /// By the number that the drive gave it: the command.
    pub(super) ids: Ids,
    pub(super) wide: Wide,
    /// Durable ones of `wide` that wait for something older or in flight over them.
    pub(super) stuck: Vec<u32>,
    /// Answered ones in the order of their answers, with their submission; some may be durable or gone by now.
    pub(super) answered: VecDeque<(u32, Moment)>,
    /// How many of them are at risk.
    pub(super) at_risk: usize,
    /// Their length in blocks.
    pub(super) at_risk_blocks: u64,
    /// Those lost track of that have not landed yet.
    pub(super) late: Vec<u32>,
    pub(super) flushes: Vec<InFlightFlush>,
    /// The submissions of answered flushes that have not taken effect: the last ones of a liar.
    pub(super) unkept: VecDeque<Moment>,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            pendings: Slab::new(),
            nodes: Slab::new(),
            heads: Table::new(),
            ids: Ids::new(),
            wide: Wide::new(),
            stuck: Vec::new(),
            answered: VecDeque::new(),
            at_risk: 0,
            at_risk_blocks: 0,
            late: Vec::new(),
            flushes: Vec::new(),
            unkept: VecDeque::new(),
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.pendings.clear();
        self.nodes.clear();
        self.heads.clear();
        self.ids.clear();
        self.wide.clear();
        self.stuck.clear();
        self.answered.clear();
        self.at_risk = 0;
        self.at_risk_blocks = 0;
        self.late.clear();
        self.flushes.clear();
        self.unkept.clear();
    }

    /// Notes that a command was answered and is not durable.
    #[inline]
    pub(super) fn put_at_risk(&mut self, number: u32) {
        let pending = &self.pendings[number];
        self.at_risk += 1;
        self.at_risk_blocks += pending.range.nlb;
        self.answered.push_back((number, pending.span.submitted));
        // Most are destaged in about the order of their answers: they go at the front. Those in the middle are not looked
        // for; they go when they are the many.
        while let Some((number, submitted)) = self.answered.front().copied()
            && !self.is_waiting(number, submitted)
        {
            self.answered.pop_front();
        }
        if self.answered.len() > 4 * self.at_risk + 1024 {
            let pendings = &self.pendings;
            self.answered.retain(|(number, submitted)| {
                pendings.get(*number).is_some_and(|one| one.span.submitted == *submitted && one.is_at_risk())
            });
        }
    }

    /// Whether an entry of `answered` still means something.
    fn is_waiting(&self, number: u32, submitted: Moment) -> bool {
        self.pendings.get(number).is_some_and(|one| one.span.submitted == submitted && one.is_at_risk())
    }

    /// What is known of the command of this number is going to be asked for soon: memory is slow, and other work can be
    /// done until it is here.
    #[inline]
    pub(super) fn approach(&self, number: u32, page_of: impl Fn(u64) -> u64) {
        if let Some(pending) = self.pendings.get(number).filter(|one| one.live > 0) {
            let head = self.heads.get(page_of(pending.range.lba.0));
            std::hint::black_box(self.nodes.get(head).map(|node| node.next));
        }
    }

    /// Notes that it is not at risk any more.
    #[inline]
    pub(super) fn take_from_risk(&mut self, number: u32) {
        self.at_risk -= 1;
        self.at_risk_blocks -= self.pendings[number].range.nlb;
    }

    /// Forgets a command that has no nodes left.
    #[inline]
    pub(super) fn forget(&mut self, number: u32) {
        let Some(pending) = self.pendings.get(number) else { return };
        let id = pending.id.0;
        if pending.is_at_risk() {
            self.take_from_risk(number);
        }
        self.ids.take(id);
        self.pendings.discard(number);
    }

    /// Puts a node in front of those of its page.
    #[inline]
    pub(super) fn link(&mut self, page: u64, node: Node) {
        let number = self.nodes.insert(node);
        let next = self.heads.set(page, number);
        if next != 0 {
            self.nodes[number].next = next;
        }
    }

    /// The nodes from `head` on, with their numbers.
    pub(super) fn chain(&self, head: u32) -> impl Iterator<Item = (u32, &Node)> {
        let next = move |number: &u32| self.nodes.get(*number).map(|node| node.next);
        std::iter::successors((head != 0).then_some(head), next)
            .filter_map(|number| Some((number, self.nodes.get(number)?)))
    }
}
