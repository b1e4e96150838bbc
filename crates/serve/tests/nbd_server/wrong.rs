//! Wrong servers, one mistake each, for the tests of the judge: a layer between a correct server and the
//! device changes requests and answers as a wrong server would.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use plumb_block::{
    Completion, Device, DeviceInfo, Errno, Extent, Latch, LbaRange, Nanos, Op, Outcome, Payload, Queue,
    QueueFull, QueueOptions, Request, Result, Tag, Wait,
};

/// A broken promise of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A flush is answered when it was handed to the device, not when the device has completed it.
    FlushAnsweredEarly,
    /// A flush is sent to the device only if this connection has written.
    FlushOfOwnWritesOnly,
    /// The FUA flag of a write is not passed on.
    FuaOfWriteDropped,
    /// The FUA flag of a write of zeroes is not passed on.
    FuaOfZeroesDropped,
    /// A trim with FUA is answered without the flush.
    FuaOfTrimDropped,
    /// A failed flush is answered as done.
    FlushErrorSwallowed,
    /// A write in several pieces is answered when the first is done.
    SplitAnsweredAtFirstPiece,
    /// Only the first piece of a write in several pieces can fail it.
    SplitErrorForgotten,
    /// The last block counts as outside.
    LastBlockRefused,
    /// Zeroes that must keep the space are discarded instead.
    ZeroesAsDiscard,
    /// FAST_ZERO is not passed on.
    FastZeroIgnored,
    /// The reply to a read carries a buffer into which nothing was read.
    ReadFromStaleBuffer,
    /// A request with an unknown outcome is answered as done.
    UnknownAnsweredAsDone,
    /// Writes to a read-only export are executed.
    ReadOnlyIgnored,
}

impl Mistake {
    pub(crate) const ALL: [Self; 14] = [
        Self::FlushAnsweredEarly,
        Self::FlushOfOwnWritesOnly,
        Self::FuaOfWriteDropped,
        Self::FuaOfZeroesDropped,
        Self::FuaOfTrimDropped,
        Self::FlushErrorSwallowed,
        Self::SplitAnsweredAtFirstPiece,
        Self::SplitErrorForgotten,
        Self::LastBlockRefused,
        Self::ZeroesAsDiscard,
        Self::FastZeroIgnored,
        Self::ReadFromStaleBuffer,
        Self::UnknownAnsweredAsDone,
        Self::ReadOnlyIgnored,
    ];
}

/// A device behind a layer with a mistake.
pub(crate) struct Wrong {
    pub(crate) inner: Arc<dyn Device>,
    pub(crate) mistake: Mistake,
}

impl Device for Wrong {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let inner = self.inner.open_queue(options)?;
        let (mistake, blocks) = (self.mistake, self.info().blocks());
        Ok(Box::new(WrongQueue {
            inner,
            mistake,
            blocks,
            before: None,
            has_written: false,
            early: Vec::new(),
        }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        self.inner.extents(range)
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.inner.set_wce(enabled)
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

/// Tag of requests that are answered already.
const ANSWERED: Tag = Tag(u64::MAX);

struct WrongQueue {
    inner: Box<dyn Queue>,
    mistake: Mistake,
    blocks: u64,
    /// Request that was submitted last.
    before: Option<(Op, LbaRange)>,
    has_written: bool,
    /// Requests that are answered without the device.
    early: Vec<(Tag, Payload, Outcome)>,
}

impl WrongQueue {
    /// Returns true if `request` is a further piece: it starts where the previous one ended.
    fn is_further_piece(&self, request: &Request) -> bool {
        self.before.is_some_and(|(op, range)| op == request.op && range.end() == request.range.lba)
    }

    fn is_early(&self, request: &Request) -> bool {
        match self.mistake {
            Mistake::FlushAnsweredEarly => request.op == Op::Flush,
            Mistake::FlushOfOwnWritesOnly => request.op == Op::Flush && !self.has_written,
            Mistake::FuaOfTrimDropped => {
                request.op == Op::Flush && matches!(self.before, Some((Op::Discard, _)))
            }
            Mistake::SplitAnsweredAtFirstPiece | Mistake::SplitErrorForgotten => {
                matches!(request.op, Op::Write { .. }) && self.is_further_piece(request)
            }
            Mistake::ReadFromStaleBuffer => request.op == Op::Read,
            _ => false,
        }
    }

    fn wrong_op(&self, op: Op) -> Op {
        match (self.mistake, op) {
            (Mistake::FuaOfWriteDropped, Op::Write { .. }) => Op::Write { fua: false },
            (Mistake::FuaOfZeroesDropped, Op::WriteZeroes { no_hole, fast_only, .. }) => {
                Op::WriteZeroes { fua: false, no_hole, fast_only }
            }
            (Mistake::ZeroesAsDiscard, Op::WriteZeroes { no_hole: true, .. }) => Op::Discard,
            (Mistake::FastZeroIgnored, Op::WriteZeroes { fua, no_hole, .. }) => {
                Op::WriteZeroes { fua, no_hole, fast_only: false }
            }
            (_, op) => op,
        }
    }
}

impl Queue for WrongQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        let is_early = self.is_early(&request);
        self.before = Some((request.op, request.range));
        self.has_written |= matches!(request.op, Op::Write { .. });
        request.op = self.wrong_op(request.op);
        if self.mistake == Mistake::LastBlockRefused && request.range.end().0 == self.blocks {
            self.early.push((request.tag, request.payload, Outcome::Failed(Errno::EINVAL)));
            return Ok(());
        }
        if !is_early {
            return self.inner.submit(request);
        }
        let payload = match request.op {
            Op::Read => std::mem::replace(&mut request.payload, Payload::None),
            _ => Payload::None,
        };
        self.early.push((request.tag, payload, Outcome::Done));
        // The device executes the request anyway.
        let goes_on = matches!(
            self.mistake,
            Mistake::FlushAnsweredEarly | Mistake::SplitAnsweredAtFirstPiece | Mistake::SplitErrorForgotten
        );
        if goes_on { self.inner.submit(Request { tag: ANSWERED, ..request }) } else { Ok(()) }
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let before = completions.len();
        self.inner.poll(wait, completions)?;
        let mut index = before;
        while let Some(completion) = completions.get_mut(index) {
            if completion.tag == ANSWERED {
                completions.remove(index);
                continue;
            }
            let is_swallowed = match self.mistake {
                Mistake::FlushErrorSwallowed => {
                    matches!(completion.outcome, Outcome::Failed(Errno::EIO))
                }
                Mistake::UnknownAnsweredAsDone => {
                    matches!(completion.outcome, Outcome::Unknown | Outcome::PowerLost)
                }
                _ => false,
            };
            if is_swallowed {
                completion.outcome = Outcome::Done;
            }
            index += 1;
        }
        for (tag, payload, outcome) in self.early.drain(..) {
            let at = Nanos::ZERO;
            completions.push(Completion { tag, outcome, submitted_at: at, completed_at: at, payload });
        }
        Ok(completions.len() - before)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wake_fd()
    }
}
