//! Laying out files of a log in this process: progress on stderr, as for the files of a load, and
//! interruption by a signal.

use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Bytes, FailureKind};
use plumb_caches::LayoutObserver;
use plumb_load::Phase;
use plumb_report::progress::Bar;

use crate::exit::Refusal;

/// Runs `lay_out` with a progress bar. An interruption is an error with its own exit code, after changes have
/// been undone.
pub(super) fn watched<R>(
    interrupted: &AtomicBool,
    lay_out: impl FnOnce(&mut LayoutObserver<'_>) -> plumb_targets::Result<R>,
) -> anyhow::Result<R> {
    let (mut bar, mut shown) = (Bar::on_stderr(), None);
    let mut progress = |path: &str, done: Bytes, size: Bytes| {
        if shown.as_deref() != Some(path) {
            bar.phase(0, &Phase::LayingOut { path: path.to_owned(), size }, None);
            shown = Some(path.to_owned());
        }
        bar.bytes(done);
    };
    let ended = lay_out(&mut LayoutObserver { stop: interrupted, progress: &mut progress });
    bar.finish();
    ended.map_err(|error| match interrupted.load(Ordering::Acquire) {
        true => Refusal::new(FailureKind::NotMeasured, format!("interrupted: {error}")).into(),
        false => error.into(),
    })
}
