//! Queues of the members, and actions that wait for room in them.

use std::collections::{HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Completion, Outcome, Payload, Queue, Request, Result, Tag, Wait};

use super::wake::{add, set_of_descriptors};
use crate::{Action, ActionId, Member};

/// Maximum number of actions in flight on one member; destaging stays far below it.
pub(super) const DEPTH: u32 = 64;

pub(super) struct FinishedAction {
    pub(super) id: ActionId,
    pub(super) outcome: Outcome,
    pub(super) payload: Payload,
}

/// State of the members.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemberState {
    /// True if something is in flight.
    pub(super) is_busy: bool,
    /// True if every member has a descriptor that wakes a waiting thread.
    pub(super) is_signalled: bool,
}

pub(super) struct MemberQueues {
    queues: Vec<(Member, MemberQueue)>,
    /// Descriptor that is readable when a member may have completed something; none in virtual time.
    answered: Option<Arc<OwnedFd>>,
    /// Finished actions that have not been reported to the core.
    unreported: Vec<FinishedAction>,
    /// Buffer for completions, kept to reuse its memory.
    completions: Vec<Completion>,
}

struct MemberQueue {
    queue: Box<dyn Queue>,
    backlog: VecDeque<Request>,
    /// Tags of the requests in the queue, so that all can be answered if it breaks.
    in_flight: HashSet<Tag>,
    is_broken: bool,
}

impl MemberQueues {
    /// Creates an empty set of members.
    ///
    /// # Errors
    /// If the kernel cannot create a descriptor.
    pub(super) fn new(is_virtual: bool) -> Result<Self> {
        let answered = if is_virtual { None } else { Some(Arc::new(set_of_descriptors()?)) };
        Ok(Self { queues: Vec::new(), answered, unreported: Vec::new(), completions: Vec::new() })
    }

    /// Adds the queue of a member.
    ///
    /// # Errors
    /// If the kernel cannot watch its descriptor.
    pub(super) fn add(&mut self, member: Member, queue: Box<dyn Queue>) -> Result<()> {
        if let (Some(answered), Some(descriptor)) = (&self.answered, queue.wake_fd()) {
            add(answered, descriptor)?;
        }
        let queue =
            MemberQueue { queue, backlog: VecDeque::new(), in_flight: HashSet::new(), is_broken: false };
        self.queues.push((member, queue));
        Ok(())
    }

    /// Returns the descriptor that is readable when a member may have completed something; none in virtual
    /// time.
    pub(super) fn answered(&self) -> Option<Arc<OwnedFd>> {
        self.answered.clone()
    }

    /// Removes the queue of a member. Its unanswered actions end with an unknown outcome.
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

    /// Submits an action to its member, at the next [`poll`](Self::poll) at the latest. An action for a
    /// missing member ends at once with an unknown outcome.
    pub(super) fn submit(&mut self, action: Action, ended: &mut Vec<FinishedAction>) {
        let Action { id, member, mut request, .. } = action;
        request.tag = Tag(id.0);
        match self.queues.iter_mut().find(|(known, queue)| *known == member && !queue.is_broken) {
            Some((_, queue)) => queue.backlog.push_back(request),
            None => ended.push(FinishedAction { id, outcome: Outcome::Unknown, payload: request.payload }),
        }
    }

    /// Submits waiting actions and collects completions.
    pub(super) fn poll(&mut self, ended: &mut Vec<FinishedAction>) {
        let Self { queues, completions, answered, unreported } = self;
        ended.append(unreported);
        // Poll idle members, too: a descriptor that stays readable would wake waiting threads again and
        // again.
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

    /// Puts back ended actions, to be reported to the core after the next [`poll`](Self::poll).
    pub(super) fn put_back(&mut self, ended: Vec<FinishedAction>) {
        self.unreported = ended;
    }

    /// Returns the state after the last [`poll`](Self::poll).
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

    /// Marks the queue as broken: requests in flight have an unknown outcome.
    fn break_off(&mut self, answered: Option<&OwnedFd>, ended: &mut Vec<FinishedAction>) {
        self.is_broken = true;
        if let (Some(answered), Some(descriptor)) = (answered, self.queue.wake_fd()) {
            // Nothing clears the descriptor any more. It also leaves the set when it is closed.
            rustix::event::epoll::delete(answered, descriptor).ok();
        }
        let unanswered =
            |tag: Tag, payload| FinishedAction { id: ActionId(tag.0), outcome: Outcome::Unknown, payload };
        ended.extend(self.in_flight.drain().map(|tag| unanswered(tag, Payload::None)));
        ended.extend(self.backlog.drain(..).map(|request| unanswered(request.tag, request.payload)));
    }
}
