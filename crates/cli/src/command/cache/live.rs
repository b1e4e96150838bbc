//! `plumb cache status --tui`: live view of client requests and destaging.

use std::sync::atomic::Ordering;
use std::time::Duration;

use plumb_block::{Clock as _, FailureKind, RealClock};
use plumb_report::tui::{LiveSample, LiveTerminal, LiveView};

use super::status;
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// Interval between two readings of the caches.
const REFRESH_EVERY: Duration = Duration::from_millis(500);

pub(super) fn run(name: Option<&str>) -> anyhow::Result<Exit> {
    let (first, _) = status::all(name)?;
    let stop = stop::on_signals()?;
    let mut terminal = LiveTerminal::open().map_err(|error| {
        Refusal::new(FailureKind::Usage, format!("--tui: there is no live view: {error}"))
    })?;
    let mut view = LiveView::new("plumb cache status", terminal::style_of_stderr());
    let clock = RealClock::start();
    view.feed(LiveSample::of_caches(&first, 0.0));
    while !stop.load(Ordering::Acquire) {
        terminal.draw(&view)?;
        if terminal.asks_to_stop(REFRESH_EVERY)? {
            break;
        }
        let now: Vec<_> = first.iter().filter_map(|known| status::read(&known.name).ok()).collect();
        view.feed(LiveSample::of_caches(&now, clock.now().as_secs_f64()));
    }
    Ok(Exit::Done)
}
