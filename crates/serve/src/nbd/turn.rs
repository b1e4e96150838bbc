//! Turns of a connection as a step function: the result of one, and the events to wait for before the next.

use plumb_block::Nanos;

/// Events that a connection waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// Data to read, or the end.
    pub read: bool,
    /// Room to write.
    pub write: bool,
    /// Number of requests at the device.
    pub in_flight: usize,
    /// Latest time of the next turn.
    pub until: Option<Nanos>,
}

impl Wants {
    /// Returns true if only the other side can cause progress.
    pub(super) const fn is_for_bytes_alone(&self) -> bool {
        self.read && !self.write && self.in_flight == 0 && self.until.is_none()
    }
}

/// State of a connection after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something was received, sent or completed; another turn may make progress without a wait.
    Moved(Wants),
    /// Nothing changed: wait for what is wanted.
    Idle(Wants),
    /// The client left, or was disconnected.
    Over,
}

impl Turn {
    pub(super) const fn new(has_moved: bool, wants: Wants) -> Self {
        if has_moved { Self::Moved(wants) } else { Self::Idle(wants) }
    }
}
