//! A single request on a connection, for queries outside of any queue.

use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use plumb_block::{Clock as _, Completion, Errno, Nanos, Outcome, PollFlags, Poller, Request, Tag, wait_any};

use super::link::{Link, Lost, Mail};
use super::wakeups::Wakeups;
use crate::nbd::wire::BlockDescriptor;

/// Executes `request` and waits for the answer, which may be a failure. Fails if the connection ends before,
/// or after `until`.
pub(super) fn request(link: &Arc<Link>, request: Request, until: Nanos) -> Result<Completion, Lost> {
    let mut port = Port::open(link)?;
    port.requests.push_back(request);
    match port.answer(until)? {
        Mail::Ended(ended) if ended.outcome != Outcome::Unknown => Ok(ended),
        _ => Err(Lost("it ended the connection without an answer".to_owned())),
    }
}

/// Requests the block status of `length` bytes from `offset` on, and returns the answer.
pub(super) fn status(
    link: &Arc<Link>,
    offset: u64,
    length: u32,
    until: Nanos,
) -> Result<Result<Vec<BlockDescriptor>, Errno>, Lost> {
    let port = Port::open(link)?;
    link.ask_status(port.number, Request::flush(Tag(0)), offset, length);
    match port.answer(until)? {
        Mail::Status(answer) => Ok(answer),
        other => Err(Lost(format!("an answer to nothing: {other:?}"))),
    }
}

/// A port for a single request.
struct Port<'a> {
    link: &'a Arc<Link>,
    wakeups: Option<Arc<Wakeups>>,
    number: u32,
    requests: VecDeque<Request>,
}

impl<'a> Port<'a> {
    fn open(link: &'a Arc<Link>) -> Result<Self, Lost> {
        let wakeups = link.wakeups().map_err(|error| Lost(error.to_string()))?;
        let number = link.join(wakeups.as_ref()).ok_or_else(|| Lost("the connection is lost".to_owned()))?;
        Ok(Self { link, wakeups, number, requests: VecDeque::new() })
    }

    fn answer(mut self, until: Nanos) -> Result<Mail, Lost> {
        let time = self.link.time().clone();
        let mut mail = Vec::new();
        loop {
            let outcome = self.link.exchange(self.number, &mut self.requests, true, &mut mail);
            if let Some(answer) = mail.pop() {
                return Ok(answer);
            }
            let to_write = outcome?;
            if time.now() >= until {
                return Err(Lost("no answer in time".to_owned()));
            }
            let waited = match &self.wakeups {
                None => wait_any([], Some(until), &mut &time),
                Some(wakeups) => {
                    wakeups.update(false, to_write, None);
                    let mut poller = Poller::new(&time).watching(wakeups.as_fd(), PollFlags::IN);
                    wait_any([], Some(until), &mut poller)
                }
            };
            waited.map_err(|error| Lost(error.to_string()))?;
        }
    }
}

impl Drop for Port<'_> {
    fn drop(&mut self) {
        self.link.leave(self.number);
    }
}
