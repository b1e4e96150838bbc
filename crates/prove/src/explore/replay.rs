//! The moments of a recording at which a cut is made.

use std::ops::ControlFlow;

use plumb_block::Op;
use plumb_crash::{FuaKept, Kind, Landing, Promise, Window};

use super::image::Image;
use crate::recording::{CommandId, Event, Recording};

/// Moment at which the power may fail.
pub(super) struct Moment<'a> {
    /// Event before which the power fails.
    pub(super) event: usize,
    /// Commands that a cut may take, for each drive.
    pub(super) windows: &'a [Window<CommandId>],
    /// Durable image.
    pub(super) image: &'a Image,
    /// Number of the last acknowledgement.
    pub(super) required: Option<u64>,
}

/// Part of a recording in which cuts happen, and the guarantees of the drive.
#[derive(Clone, Copy)]
pub(super) struct Replay<'a> {
    pub(super) recording: &'a Recording,
    /// Guarantees of the drive.
    pub(super) promise: Promise,
    /// Guarantees of the further drives, if they differ.
    pub(super) further: &'a [Promise],
    /// First event before which a cut may happen.
    pub(super) from: usize,
    /// Event after which no cut happens.
    pub(super) until: usize,
}

impl Replay<'_> {
    /// Calls `cut` just before each event that makes something durable, and at the end.
    pub(super) fn cuts(&self, cut: &mut impl FnMut(&Moment<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let Self { recording, promise, further, from, until } = *self;
        let until = until.min(recording.events.len());
        let further = further.iter().copied().chain(std::iter::repeat(promise));
        let promises = std::iter::once(promise).chain(further).take(1 + recording.further_drives.len());
        let mut windows: Vec<_> = promises.map(Window::new).collect();
        let mut image = Image::default();
        let drive_of = |id: &CommandId| recording.drive_of(recording.commands[id.0 as usize].range.lba.0);
        let (mut required, mut has_grown) = (None, true);
        for (event, (_, happened)) in recording.events.iter().enumerate().take(until) {
            let makes_durable = match happened {
                Event::Completed(id) => {
                    let command = &recording.commands[id.0 as usize];
                    let op = command.op;
                    op == Op::Flush || op.is_fua() || !windows[drive_of(id)].promise().volatile
                }
                Event::Persisted(_) => true,
                _ => false,
            };
            if has_grown && event >= from && makes_durable {
                cut(&Moment { event, windows: &windows, image: &image, required })?;
                has_grown = false;
            }
            match happened {
                Event::Submitted(id) => {
                    let command = &recording.commands[id.0 as usize];
                    let window = &mut windows[drive_of(id)];
                    match kind(command.op, window.promise().discard_zeroes) {
                        Some(kind) if command.range.nlb > 0 => {
                            window.submit(u64::from(id.0), kind, command.range, *id);
                            has_grown = true;
                        }
                        _ => window.submit_flush(u64::from(id.0)),
                    }
                }
                Event::Completed(id) => {
                    let mut store =
                        |range, id: &CommandId| image.apply(range, &recording.commands[id.0 as usize]);
                    let window = &mut windows[drive_of(id)];
                    window.complete(u64::from(id.0), Landing::Unknown, &mut store);
                    // The kernel sends a flush after a FUA write to a drive without FUA.
                    if recording.commands[id.0 as usize].op.is_fua()
                        && window.promise().fua == FuaKept::Ignored
                    {
                        let flush = u64::MAX - u64::from(id.0);
                        window.submit_flush(flush);
                        window.complete(flush, Landing::Unknown, &mut store);
                    }
                }
                Event::Persisted(id) => {
                    let mut store =
                        |range, id: &CommandId| image.apply(range, &recording.commands[id.0 as usize]);
                    windows[drive_of(id)].destage(u64::from(id.0), &mut store);
                }
                Event::Failed(id) => {
                    windows[drive_of(id)].fail(u64::from(id.0));
                    has_grown = true;
                }
                Event::Acknowledged(number) => {
                    required = Some(*number);
                    has_grown = true;
                }
                Event::Marked(_) => {}
            }
        }
        if !has_grown || until < from {
            return ControlFlow::Continue(());
        }
        cut(&Moment { event: until, windows: &windows, image: &image, required })
    }
}

const fn kind(op: Op, zeroes: bool) -> Option<Kind> {
    match op {
        Op::Write { fua } => Some(Kind::Write { fua }),
        Op::WriteZeroes { fua, .. } => Some(Kind::WriteZeroes { fua }),
        Op::Discard => Some(Kind::Discard { zeroes }),
        Op::Read | Op::Flush => None,
    }
}
