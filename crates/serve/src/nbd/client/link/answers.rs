//! Processing of received answers, and their effects on jobs and mail.

use std::io;

use plumb_block::{Clock as _, Errno, Nanos, Outcome};

use super::{Common, Lost, Mail, State, broken};
use crate::nbd::client::jobs::{JobWaiter, Phase};
use crate::nbd::client::replies::Answer;
use crate::nbd::wire::{Command, CommandFlags};

/// Returns true if a FUA write with this error may have failed in its flush on the server.
fn may_be_of_the_flush(errno: Errno) -> bool {
    !matches!(errno, Errno::EPERM | Errno::EINVAL | Errno::EOPNOTSUPP)
}

impl State {
    /// Receives and processes available data.
    pub(super) fn receive(&mut self, common: &Common) -> Result<(), Lost> {
        loop {
            let Self { replies, transport, commands, jobs, answers, .. } = self;
            let received = match replies.receive(&mut **transport, commands, jobs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                other => other.map_err(|error| broken(&error))?,
            };
            let understood = replies.advance(commands, jobs, answers);
            let mut answers = std::mem::take(answers);
            let now = common.time.now();
            for answer in answers.drain(..) {
                self.answered(answer, common, now);
            }
            self.answers = answers;
            understood.map_err(|broken| Lost(broken.to_string()))?;
            match received {
                Some(true) => {}
                Some(false) if self.replies.is_midway() => {}
                Some(false) => return Ok(()),
                None => return Err(Lost("the server closed the connection".to_owned())),
            }
        }
    }

    /// Processes the answer to a command.
    #[inline]
    fn answered(&mut self, answer: Answer, common: &Common, now: Nanos) {
        let Answer { asked, outcome } = answer;
        let is_flush = asked.command == Command::FLUSH;
        let is_durable = is_flush || asked.flags.has(CommandFlags::FUA);
        // A failed flush latches even if nobody waits for it.
        if let Err(errno) = outcome
            && is_durable
            && (is_flush || may_be_of_the_flush(errno))
        {
            common.flush_failed(errno, now);
        }
        let Some(job) = self.jobs.get(asked.job) else { return };
        job.pieces -= 1;
        job.status = asked.status;
        let outcome = match outcome {
            // A concurrent flush may have failed meanwhile.
            Ok(()) if is_flush => common.latch.get().map_or(Ok(()), |latch| Err(latch.errno)),
            other => other,
        };
        if let Err(errno) = outcome
            && job.failed.replace(errno).is_none()
            && !is_flush
            && job.staged < job.plan.length
        {
            self.to_stage.retain(|waiting| *waiting != asked.job);
        }
        let Some(job) = self.jobs.get(asked.job) else { return };
        if job.pieces > 0 || !job.is_staged() {
            return;
        }
        if job.plan.then_flush && job.phase == Phase::Itself && job.failed.is_none() {
            job.phase = Phase::Flush;
            self.to_stage.push_back(asked.job);
            return;
        }
        self.finish(asked.job, now);
    }

    /// Ends a job.
    #[inline]
    pub(super) fn finish(&mut self, number: u32, now: Nanos) {
        let Some(job) = self.jobs.remove(number) else { return };
        let to = job.port;
        match job.wanted {
            JobWaiter::Yes => {}
            JobWaiter::TooLate => return self.post(to, Mail::Released),
            // The port of this job may belong to another queue by now.
            JobWaiter::No => return,
        }
        let mail = match (job.plan.command, job.failed) {
            (Command::BLOCK_STATUS, failed) => Mail::Status(failed.map_or(Ok(job.status), Err)),
            (_, failed) => {
                Mail::Ended(job.into_completion(failed.map_or(Outcome::Done, Outcome::Failed), now))
            }
        };
        self.post(to, mail);
    }
}
