//! Turns of a connection that is a step function: how one ended, and what the next one waits for.

use plumb_block::Nanos;

/// Events that a connection waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// Bytes to read, or the end.
    pub read: bool,
    /// Room to write.
    pub write: bool,
    /// Number of requests that the device has.
    pub in_flight: usize,
    /// Latest time of the next turn, whatever happens.
    pub until: Option<Nanos>,
}

impl Wants {
    /// Returns true if only the other side can bring the connection forward.
    pub(super) const fn is_for_bytes_alone(&self) -> bool {
        self.read && !self.write && self.in_flight == 0 && self.until.is_none()
    }
}

/// State of a connection after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something was received, sent or completed; another turn may lead further without any wait.
    Moved(Wants),
    /// Nothing changed: wait for what is wanted.
    Idle(Wants),
    /// The client left, or was sent away.
    Over,
}

impl Turn {
    pub(super) const fn new(has_moved: bool, wants: Wants) -> Self {
        if has_moved { Self::Moved(wants) } else { Self::Idle(wants) }
    }
}
