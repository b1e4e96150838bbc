//! Conversion of jobs to commands, and sending as far as there is room.

use plumb_block::{Clock as _, Payload};

use super::{Common, Lost, State, broken};
use crate::nbd::client::commands::PendingCommand;
use crate::nbd::wire::{Command, CommandFlags, Cookie, RequestHeader};

fn header(command: Command, flags: CommandFlags, cookie: Cookie, offset: u64, length: u32) -> RequestHeader {
    RequestHeader { flags, command, cookie, offset, length }
}

impl State {
    /// Stages and sends until nothing is left or the socket is full. Returns true if nothing is left.
    pub(super) fn send(&mut self, common: &Common) -> Result<bool, Lost> {
        loop {
            self.stage(common);
            let Self { output, transport, .. } = self;
            output.send(&mut **transport).map_err(|error| broken(&error))?;
            if !output.is_empty() || !transport.hand_over().map_err(|error| broken(&error))? {
                return Ok(false);
            }
            if self.to_stage.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Creates commands from jobs while there is room.
    fn stage(&mut self, common: &Common) {
        if self.to_stage.is_empty() {
            return;
        }
        let now = common.time.now();
        while let Some(number) = self.to_stage.front().copied()
            && !self.output.is_full()
        {
            let Some(job) = self.jobs.get(number) else {
                self.to_stage.pop_front();
                continue;
            };
            job.submitted_at.get_or_insert(now);
            if job.is_at_flush() {
                self.to_stage.pop_front();
                match common.latch.get() {
                    None => self.stage_flush(number),
                    Some(latch) => {
                        job.failed = Some(latch.errno);
                        self.finish(number, now);
                    }
                }
            } else if self.stage_piece(number) {
                self.to_stage.pop_front();
            }
        }
    }

    fn stage_flush(&mut self, number: u32) {
        let Some(job) = self.jobs.get(number) else { return };
        job.pieces += 1;
        let asked = PendingCommand::new(number, Command::FLUSH, CommandFlags::default(), 0, 0);
        let cookie = self.commands.enter(asked);
        self.output.head(&header(Command::FLUSH, CommandFlags::default(), cookie, 0, 0).encode());
    }

    /// Creates a command from the next piece of a job. Returns true if it was the last.
    #[inline]
    fn stage_piece(&mut self, number: u32) -> bool {
        let Some(job) = self.jobs.get(number) else { return true };
        let plan = job.plan;
        let (start, length) = job.next_piece();
        let (offset, size) = (plan.offset + start, length as usize);
        let asked = PendingCommand::new(number, plan.command, plan.flags, offset, length as u32);
        let cookie = self.commands.enter(asked);
        self.output.head(&header(plan.command, plan.flags, cookie, offset, length as u32).encode());
        if plan.sends_zeroes {
            self.output.bytes(vec![0; size]);
        } else if plan.command == Command::WRITE {
            match &job.request.payload {
                Payload::Bytes(bytes) if size == bytes.len() => self.output.buffer(bytes.clone(), number),
                Payload::Bytes(bytes) => {
                    let start = start as usize;
                    self.output.buffer(bytes.slice(start..start + size), number);
                }
                Payload::Pattern(pattern) => {
                    let block = plan.length / job.request.range.nlb;
                    let mut part = *pattern;
                    part.lba = part.lba + start / block;
                    let mut bytes = vec![0; size];
                    part.fill(block as usize, &mut bytes);
                    self.output.bytes(bytes);
                }
                // Writes without data were refused on admission.
                Payload::None | Payload::Into(_) => {}
            }
        }
        job.staged += length;
        job.pieces += 1;
        job.is_staged()
    }
}
