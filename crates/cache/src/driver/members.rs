//! The queues of the members, and what waits for room in them.

use std::collections::{HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Completion, Outcome, Payload, Queue, Request, Result, Tag, Wait};

use super::wake::{add, set_of_descriptors};
use crate::{Action, ActionId, Member};

/// Number of actions that one member has in flight at most; the core keeps destaging far below.
pub(super) const DEPTH: u32 = 64;

pub(super) struct FinishedAction {
    pub(super) id: ActionId,
    pub(super) outcome: Outcome,
    pub(super) payload: Payload,
}

/// How the members stand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemberState {
    /// Something is in flight.
    pub(super) is_busy: bool,
    /// Whoever waits for the members is woken by all of them.
    pub(super) is_signalled: bool,
}

pub(super) struct MemberQueues {
    queues: Vec<(Member, MemberQueue)>,
    /// Readable when one of them may have answered; none in virtual time.
    answered: Option<Arc<OwnedFd>>,
    /// Actions that have ended, and that the core was not notified of.
    unreported: Vec<FinishedAction>,
    /// Kept for its memory.
    completions: Vec<Completion>,
}

struct MemberQueue {
    queue: Box<dyn Queue>,
    backlog: VecDeque<Request>,
    /// Tags of the requests that the member has, so that all of them can be answered if its queue breaks.
    in_flight: HashSet<Tag>,
    is_broken: bool,
}

impl MemberQueues {
    /// Creates an empty set of members.
    ///
    /// # Errors
    /// If the kernel has no descriptor to give.
    pub(super) fn new(is_virtual: bool) -> Result<Self> {
        let answered = if is_virtual { None } else { Some(Arc::new(set_of_descriptors()?)) };
        Ok(Self { queues: Vec::new(), answered, unreported: Vec::new(), completions: Vec::new() })
    }

    /// Adds the queue of a member.
    ///
    /// # Errors
    /// If the kernel cannot wait for it.
    pub(super) fn add(&mut self, member: Member, queue: Box<dyn Queue>) -> Result<()> {
        if let (Some(answered), Some(descriptor)) = (&self.answered, queue.wake_fd()) {
            add(answered, descriptor)?;
        }
        let queue =
            MemberQueue { queue, backlog: VecDeque::new(), in_flight: HashSet::new(), is_broken: false };
        self.queues.push((member, queue));
        Ok(())
    }

    /// Returns the descriptor that is readable when a member may have answered; none in virtual time.
    pub(super) fn answered(&self) -> Option<Arc<OwnedFd>> {
        self.answered.clone()
    }

    /// Takes away the queue of a member. What it has not answered is answered as one that nobody knows of.
    pub(super) fn remove(
        &mut self,
        member: Member,
        ended: &mut Vec<FinishedAction>,
    ) -> Option<Box<dyn Queue>> {
        let place = self.queues.iter().position(|(known, _)| *known == member)?;
        let (_, mut queue) = self.queues.remove(place);
        queue.break_off(self.answered.as_deref(), ended);
        Some(queue.queue)
    }

    /// Hands an action to its member, at the next [`poll`](Self::poll) at the latest. A member that is
    /// missing leaves it unanswered for ever, so it is answered at once as one that nobody knows of.
    pub(super) fn submit(&mut self, action: Action, ended: &mut Vec<FinishedAction>) {
        let Action { id, member, mut request, .. } = action;
        request.tag = Tag(id.0);
        match self.queues.iter_mut().find(|(known, queue)| *known == member && !queue.is_broken) {
            Some((_, queue)) => queue.backlog.push_back(request),
            None => ended.push(FinishedAction { id, outcome: Outcome::Unknown, payload: request.payload }),
        }
    }

    /// Hands over what waits, and takes what was answered.
    pub(super) fn poll(&mut self, ended: &mut Vec<FinishedAction>) {
        let Self { queues, completions, answered, unreported } = self;
        ended.append(unreported);
        // The idle ones, too: a descriptor that stays readable would wake whoever waits again and again.
        for (_, member) in queues.iter_mut().filter(|(_, member)| !member.is_broken) {
            member.hand_over();
            if member.queue.poll(Wait::NONE, completions).is_err() {
                member.break_off(answered.as_deref(), ended);
            }
            for Completion { tag, outcome, payload, .. } in completions.drain(..) {
                if member.in_flight.remove(&tag) {
                    ended.push(FinishedAction { id: ActionId(tag.0), outcome, payload });
                }
            }
        }
    }

    /// Takes back ended actions; the core is to be notified of them after the next [`poll`](Self::poll).
    pub(super) fn put_back(&mut self, ended: Vec<FinishedAction>) {
        self.unreported = ended;
    }

    /// Returns their state after the last [`poll`](Self::poll).
    pub(super) fn state(&self) -> MemberState {
        MemberState {
            is_busy: self.queues.iter().any(|(_, member)| member.is_busy()),
            is_signalled: self.queues.iter().all(|(_, member)| member.queue.wake_fd().is_some()),
        }
    }
}

impl MemberQueue {
    fn is_busy(&self) -> bool {
        !self.in_flight.is_empty() || !self.backlog.is_empty()
    }

    fn hand_over(&mut self) {
        while let Some(request) = self.backlog.pop_front() {
            let tag = request.tag;
            if let Err(full) = self.queue.submit(request) {
                return self.backlog.push_front(full.0);
            }
            self.in_flight.insert(tag);
        }
    }

    /// Marks the queue as broken: the outcome of the requests in flight is unknown.
    fn break_off(&mut self, answered: Option<&OwnedFd>, ended: &mut Vec<FinishedAction>) {
        self.is_broken = true;
        if let (Some(answered), Some(descriptor)) = (answered, self.queue.wake_fd()) {
            // Nobody clears it any more. It is gone from the set with its last descriptor, too.
            rustix::event::epoll::delete(answered, descriptor).ok();
        }
        let unanswered =
            |tag: Tag, payload| FinishedAction { id: ActionId(tag.0), outcome: Outcome::Unknown, payload };
        ended.extend(self.in_flight.drain().map(|tag| unanswered(tag, Payload::None)));
        ended.extend(self.backlog.drain(..).map(|request| unanswered(request.tag, request.payload)));
    }
}
