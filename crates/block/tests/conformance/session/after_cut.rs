//! The end of a session: the power is cut, and the state afterwards is judged by the crash rules.

use std::collections::BTreeMap;

use super::seen::BlockContent;
use super::{CheckResult, PATIENCE, POLL_WAIT, Session, fail};
use crate::conformance::crash_rules::{Content, Moment};
use crate::device::Wait;
use crate::error::Errno;
use crate::request::{Completion, LbaRange, Op, Outcome, Payload, Request, Tag};
use crate::units::Lba;

impl Session<'_> {
    /// Cuts the power, and judges the state afterwards. Ends the session: all blocks were read once.
    pub(in crate::conformance) fn cut_and_judge(mut self) -> CheckResult {
        let cut = self.tick();
        let reborn = self.rig.cut_power()?;
        self.gather_after_cut(cut)?;
        let allowed: BTreeMap<Lba, (Vec<Content>, bool)> = self
            .blocks
            .iter()
            .map(|(lba, history)| {
                let survivors = history.survivors(cut);
                let contents = survivors.versions.iter().map(|index| history.versions[*index].content);
                (*lba, (contents.collect(), survivors.may_be_unreadable))
            })
            .collect();
        self.device = reborn;
        self.queues.clear();
        self.open_queues(1)?;
        for (lba, (contents, may_be_unreadable)) in allowed {
            match self.read_raw(lba)? {
                Some(seen) if seen.is_one_of(&contents) => {}
                Some(seen) => {
                    return fail(format!(
                        "after a power cut LBA {} reads as {seen:?}, allowed is {contents:?}",
                        lba.0
                    ));
                }
                None if may_be_unreadable => {}
                None => {
                    return fail(format!(
                        "after a power cut LBA {} is unreadable, though nothing was in flight there",
                        lba.0
                    ));
                }
            }
        }
        Ok(())
    }

    /// Collects the answers that the old queues still return: a request is done if the device answered it
    /// before the cut, otherwise it lost its power. A queue may also only return an error.
    fn gather_after_cut(&mut self, cut: Moment) -> CheckResult {
        for queue in 0..self.queues.len() {
            let mut completions = Vec::new();
            if self.queues[queue].poll(Wait::NONE, &mut completions).is_err() {
                continue;
            }
            let after = self.moment;
            // All answers were given before the cut.
            self.moment = cut - 1;
            for completion in completions {
                if !matches!(completion.outcome, Outcome::Done | Outcome::PowerLost | Outcome::Failed(_)) {
                    return fail(format!("a request in flight at the cut ended as {:?}", completion.outcome));
                }
                if self.pending.get(&completion.tag).is_some_and(|pending| pending.op != Op::Read) {
                    self.accept(queue, &completion)?;
                    self.moment = cut - 1;
                }
            }
            self.moment = after;
        }
        Ok(())
    }

    /// Returns one block as it is, `None` if it cannot be read.
    fn read_raw(&mut self, lba: Lba) -> CheckResult<Option<BlockContent>> {
        let Some(buffer) = self.pool.take(self.info.logical_block) else {
            return fail("the pool has no buffer left after the cut");
        };
        let request = Request::read_into(Tag(u64::MAX), LbaRange::new(lba, 1), buffer);
        if self.queues[0].submit(request).is_err() {
            return fail("an empty queue is full");
        }
        let mut completions = Vec::new();
        for _ in 0..PATIENCE {
            let deadline = self.rig.clock().now().saturating_add(POLL_WAIT);
            self.queues[0]
                .poll(Wait::one_until(deadline), &mut completions)
                .or_else(|error| fail(format!("polling after the cut: {error}")))?;
            match completions.pop() {
                Some(Completion { outcome: Outcome::Done, payload: Payload::Into(buffer), .. }) => {
                    return Ok(Some(BlockContent::from_bytes(&buffer, self.seed, lba)));
                }
                Some(Completion { outcome: Outcome::Failed(Errno::EIO), .. }) => return Ok(None),
                Some(other) => return fail(format!("reading after the cut ended as {:?}", other.outcome)),
                None => self.rig.let_time_pass(),
            }
        }
        fail(format!("LBA {} is not answered after the cut", lba.0))
    }
}
