//! Interface between a test and the kit: a device and its surroundings.

use std::sync::Arc;

use crate::clock::Clock;
use crate::device::{Device, QueueOptions};
use crate::error::Result;
use crate::request::LbaRange;
use crate::units::Lba;

/// Reason why the rig cannot stage an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotStage(pub String);

/// A device under test with its surroundings. An event whose method is not overridden cannot be staged, and
/// the checks that need it are skipped with that reason.
pub trait Rig {
    /// Returns a description of the device in one line, with the rig's own seed if it has one.
    fn describe(&self) -> String;

    /// Returns the device in working order: powered, not latched, nothing in flight. Called at the start of
    /// each check, when all queues of the one before are gone. Contents may be anything.
    ///
    /// # Errors
    /// If there is no device; the check then fails.
    fn renew(&mut self) -> Result<Arc<dyn Device>>;

    /// Returns the options with which queues are opened. The pool needs at least twice as many buffers as the
    /// depth, of at least eight logical blocks each, aligned for the device.
    fn queue_options(&self) -> QueueOptions;

    /// Returns the clock of the device's queues.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Returns the blocks that the kit may overwrite: at least 64.
    fn range(&self) -> LbaRange {
        LbaRange::new(Lba(0), 64)
    }

    /// Returns true if reads and writes are copied from and to a page cache, the device's own or one beneath
    /// it. Then a read in flight with a write may return a mixture of both, even within a logical block.
    fn is_page_cached(&self) -> bool {
        false
    }

    /// Lets time pass in virtual time until something may have happened. Real time passes by itself.
    fn let_time_pass(&mut self) {}

    /// Cuts the power, restores it, and returns the device afterwards. Requests in flight end as
    /// [`PowerLost`](crate::Outcome::PowerLost).
    ///
    /// # Errors
    /// If the rig cannot.
    fn cut_power(&mut self) -> std::result::Result<Arc<dyn Device>, CannotStage> {
        Err(CannotStage("this rig cannot cut the power".to_owned()))
    }

    /// Makes the next flush of any queue fail.
    ///
    /// # Errors
    /// If the rig cannot.
    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        Err(CannotStage("this rig cannot make a flush fail".to_owned()))
    }

    /// Leaves the next request of any queue unanswered until [`release_held`](Rig::release_held).
    ///
    /// # Errors
    /// If the rig cannot.
    fn hold_next_request(&mut self) -> std::result::Result<(), CannotStage> {
        Err(CannotStage("this rig cannot leave a request unanswered".to_owned()))
    }

    /// Lets the held request be answered after all.
    fn release_held(&mut self) {}
}
