//! One question to a connection, and waiting for its answer: for what is not asked through a queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_block::{Completion, Errno, Nanos, Outcome, Request, Tag};

use super::link::{Link, Lost, Mail};
use super::wait::{Awaited, wait_for_any};
use super::wake::Wake;
use crate::nbd::wire::BlockDescriptor;

/// Carries `request` out. The server's answer, which may be that it failed; a connection that ends before is none.
pub(super) fn request(link: &Arc<Link>, request: Request, until: Instant) -> Result<Completion, Lost> {
    let mut visit = Visit::begin(link)?;
    visit.requests.push_back(request);
    match visit.answer(until)? {
        Mail::Ended(ended) if ended.outcome != Outcome::Unknown => Ok(ended),
        _ => Err(Lost("it ended the connection without an answer".to_owned())),
    }
}

/// What is behind `length` bytes from `offset` on.
pub(super) fn status(
    link: &Arc<Link>,
    offset: u64,
    length: u32,
    until: Instant,
) -> Result<Result<Vec<BlockDescriptor>, Errno>, Lost> {
    let visit = Visit::begin(link)?;
    link.ask_status(visit.port, Request::flush(Tag(0)), offset, length);
    match visit.answer(until)? {
        Mail::Status(answer) => Ok(answer),
        other => Err(Lost(format!("an answer to nothing: {other:?}"))),
    }
}

/// A port for one question.
struct Visit<'a> {
    link: &'a Arc<Link>,
    wake: Arc<Wake>,
    port: u32,
    requests: VecDeque<Request>,
}

impl<'a> Visit<'a> {
    fn begin(link: &'a Arc<Link>) -> Result<Self, Lost> {
        let wake = Arc::new(Wake::new().map_err(|error| Lost(error.to_string()))?);
        let port = link.join(&wake).ok_or_else(|| Lost("the connection is lost".to_owned()))?;
        Ok(Self { link, wake, port, requests: VecDeque::new() })
    }

    fn answer(mut self, until: Instant) -> Result<Mail, Lost> {
        let mut mail = Vec::new();
        loop {
            let outcome = self.link.exchange(self.port, &mut self.requests, true, &mut mail);
            if let Some(answer) = mail.pop() {
                return Ok(answer);
            }
            let to_write = outcome?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Lost("no answer in time".to_owned()));
            }
            let awaited = Awaited { socket: Some((self.link.socket(), to_write)), wake: &self.wake };
            wait_for_any(&awaited, Some(Nanos::from(left.max(Duration::from_millis(1)))))
                .map_err(|error| Lost(error.to_string()))?;
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.link.leave(self.port);
    }
}
