//! From answers to mail: what is received, and what it means for the jobs.

use std::io;

use plumb_block::{Errno, Nanos, Outcome};

use super::{Common, Lost, Mail, State, broken};
use crate::nbd::client::durability::Epoch;
use crate::nbd::client::jobs::{Phase, Wanted};
use crate::nbd::client::replies::Answer;
use crate::nbd::wire::{Command, CommandFlags};

/// Whether a write with FUA that failed like this may have failed in the flush that the server made of it.
fn may_be_of_the_flush(errno: Errno) -> bool {
    !matches!(errno, Errno::EPERM | Errno::EINVAL | Errno::EOPNOTSUPP)
}

impl State {
    /// Receives and understands what is there.
    pub(super) fn receive(&mut self, common: &Common, epoch: Epoch) -> Result<(), Lost> {
        loop {
            let Self { replies, transport, commands, jobs, answers, .. } = self;
            let received = match replies.receive(transport, commands, jobs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                other => other.map_err(|error| broken(&error))?,
            };
            let understood = replies.advance(commands, jobs, answers);
            let mut answers = std::mem::take(answers);
            let now = common.clock.now();
            let mut acknowledged = 0;
            for answer in answers.drain(..) {
                acknowledged += u64::from(self.answered(answer, common, now));
            }
            self.answers = answers;
            if acknowledged > 0 {
                // Before anyone can see the completions: a flush submitted after one of them covers it.
                common.durability.acknowledge(epoch, acknowledged);
            }
            understood.map_err(|broken| Lost(broken.to_string()))?;
            match received {
                Some(true) => {}
                Some(false) if self.replies.is_midway() => {}
                Some(false) => return Ok(()),
                None => return Err(Lost("the server closed the connection".to_owned())),
            }
        }
    }

    /// A command was answered; whether that acknowledges a change that a flush has to vouch for.
    #[inline]
    fn answered(&mut self, answer: Answer, common: &Common, now: Nanos) -> bool {
        let Answer { asked, outcome } = answer;
        let is_flush = asked.command == Command::FLUSH;
        let is_durable = is_flush || asked.flags.has(CommandFlags::FUA);
        // Also if nobody waits for it any more: a flush that failed has failed.
        if let Err(errno) = outcome
            && is_durable
            && (is_flush || may_be_of_the_flush(errno))
        {
            common.durability.flush_failed(errno, now);
        }
        let Some(job) = self.jobs.get(asked.job) else { return false };
        job.pieces -= 1;
        job.status = asked.status;
        let outcome = match outcome {
            Ok(()) if is_flush => common.durability.flushed(job.covered),
            other => other,
        };
        if let Err(errno) = outcome
            && job.failed.replace(errno).is_none()
            && !is_flush
            && job.staged < job.plan.length
        {
            self.to_stage.retain(|waiting| *waiting != asked.job);
        }
        let Some(job) = self.jobs.get(asked.job) else { return false };
        if job.pieces > 0 || !job.is_staged() {
            return false;
        }
        if job.plan.then_flush && job.phase == Phase::Itself && job.failed.is_none() {
            job.phase = Phase::Flush;
            self.to_stage.push_back(asked.job);
            return false;
        }
        self.finish(asked.job, now)
    }

    /// A job is over; whether that acknowledges a change that a flush has to vouch for.
    #[inline]
    pub(super) fn finish(&mut self, number: u32, now: Nanos) -> bool {
        let Some(job) = self.jobs.remove(number) else { return false };
        let to = job.port;
        match job.wanted {
            Wanted::Yes => {}
            Wanted::TooLate => {
                self.post(to, Mail::Released);
                return false;
            }
            // Its port may belong to another queue by now.
            Wanted::No => return false,
        }
        let acknowledges = job.failed.is_none() && job.plan.needs_flush;
        let mail = match (job.plan.command, job.failed) {
            (Command::BLOCK_STATUS, failed) => Mail::Status(failed.map_or(Ok(job.status), Err)),
            (_, failed) => {
                Mail::Ended(job.into_completion(failed.map_or(Outcome::Done, Outcome::Failed), now))
            }
        };
        self.post(to, mail);
        acknowledges
    }
}
