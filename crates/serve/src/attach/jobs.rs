//! Requests between a kernel transport and the device ([`Requests`]).
//!
//! Invariant: every started request that needs an answer gets one when it has ended.

use std::sync::Arc;

use plumb_block::{BufferMut, Bytes, Errno, LbaRange, Op, Payload};
use rustix::io::Errno as Os;

use super::plan::{Plan, Zeroing};
use super::served::ServedLoop;
use super::wire::Answer;
use crate::requests::{FinishedRequest, Memory, Requests};

/// Kernel side of a worker.
pub(super) trait Transport {
    /// Identifier of a request to be answered.
    type Id: Copy;

    /// Answers a request.
    ///
    /// # Errors
    /// If the connection is gone.
    fn answer(&mut self, id: Self::Id, answer: Result<&[u8], Errno>) -> Result<(), Os>;
}

/// A kernel request at the device.
#[derive(Debug)]
pub(super) struct Job<I> {
    id: I,
    kind: JobKind,
}

#[derive(Debug)]
enum JobKind {
    Read,
    Write {
        bytes: u32,
    },
    Flush,
    /// Zeroing of a range, with the remaining part.
    Zero(Zeroing),
}

/// Requests of one transport at the device.
pub(super) struct Jobs<T: Transport> {
    pub(super) served: Arc<ServedLoop>,
    pub(super) transport: T,
    pub(super) requests: Requests<Job<T::Id>>,
    pub(super) memory: Memory,
}

impl<T: Transport> Jobs<T> {
    /// Opens a device queue for `depth` requests, and then the transport, which may wait for the queue's
    /// completions.
    ///
    /// # Errors
    /// If the device cannot open a queue, there is no memory, or `transport` fails.
    pub(super) fn open(
        served: Arc<ServedLoop>,
        depth: u32,
        transport: impl FnOnce(&Requests<Job<T::Id>>) -> crate::error::Result<T>,
    ) -> crate::error::Result<Self> {
        let memory = Memory::new(served.pool_shape(depth))?;
        let requests =
            Requests::open(Arc::clone(&served.device), Arc::clone(&served.known), depth, memory.pool())?;
        let transport = transport(&requests)?;
        Ok(Self { served, transport, requests, memory })
    }

    /// Starts a request that came with `payload`. Returns the payload if the device does not need it.
    ///
    /// # Errors
    /// If the connection is gone.
    pub(super) fn begin(
        &mut self,
        id: T::Id,
        plan: Plan,
        payload: Option<BufferMut>,
    ) -> Result<Option<BufferMut>, Os> {
        let answer = match plan {
            Plan::Silence => return Ok(payload),
            Plan::Write(range) => {
                let bytes = (range.nlb * u64::from(self.served.geometry.block)) as usize;
                let kind = JobKind::Write { bytes: bytes as u32 };
                let payload =
                    payload.map_or(Payload::None, |memory| Payload::Bytes(memory.freeze().slice(0..bytes)));
                self.requests.submit(Job { id, kind }, Op::Write { fua: false }, range, payload);
                return Ok(None);
            }
            Plan::Read(range) => {
                // The kernel knows the maximum read, so the buffer suffices for the request and is available
                // for the next.
                drop(payload);
                let length = Bytes(range.nlb * u64::from(self.served.geometry.block));
                let Some(buffer) = self.memory.take_or_renew(length) else {
                    return self.transport.answer(id, Err(Errno::EINVAL)).map(|()| None);
                };
                let job = Job { id, kind: JobKind::Read };
                self.requests.submit(job, Op::Read, range, Payload::Into(buffer));
                return Ok(None);
            }
            Plan::Flush => {
                let job = Job { id, kind: JobKind::Flush };
                self.requests.submit(job, Op::Flush, LbaRange::EMPTY, Payload::None);
                return Ok(payload);
            }
            Plan::Zero(zeroing) => return self.zero(id, zeroing).map(|()| payload),
            Plan::Control { length } => self.served.control(payload.as_deref().unwrap_or_default(), length),
            Plan::Answer(answer) => Ok(answer),
            Plan::Refuse(errno) => Err(errno),
            Plan::Init { major, minor, flags } => self.served.agree(major, minor, flags),
            Plan::Seek { offset, whence } => self.served.seek(offset, whence),
        };
        self.transport.answer(id, answer.as_ref().map(Answer::bytes).map_err(|errno| *errno))?;
        Ok(payload)
    }

    fn zero(&mut self, id: T::Id, mut zeroing: Zeroing) -> Result<(), Os> {
        let op = zeroing.op;
        let Some(piece) = zeroing.next() else { return self.transport.answer(id, Ok(&[])) };
        let job = Job { id, kind: JobKind::Zero(zeroing) };
        self.requests.submit(job, op, piece, Payload::None);
        Ok(())
    }

    /// Answers ended requests. Returns true if there were any.
    pub(super) fn answer_ended(&mut self) -> Result<bool, Os> {
        let mut has_answered = false;
        while let Some(FinishedRequest { asked: Job { id, kind }, result, payload }) =
            self.requests.next_ended()
        {
            has_answered = true;
            if let Err(failure) = result {
                self.transport.answer(id, Err(failure.errno()))?;
                continue;
            }
            match (kind, payload) {
                (JobKind::Flush, _) => self.transport.answer(id, Ok(&[]))?,
                (JobKind::Zero(rest), _) => self.zero(id, rest)?,
                (JobKind::Write { bytes }, _) => {
                    self.transport.answer(id, Ok(Answer::written(bytes).bytes()))?;
                }
                (JobKind::Read, Payload::Into(bytes)) => self.transport.answer(id, Ok(&bytes))?,
                (JobKind::Read, _) => self.transport.answer(id, Err(Errno::EIO))?,
            }
        }
        Ok(has_answered)
    }
}
